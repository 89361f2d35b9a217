"""Reflect: make the log shorter when it has grown too long."""

import logging
from collections.abc import Mapping
from typing import Any

from mastra_memory.content import tokens
from mastra_memory.db import leases
from mastra_memory.exceptions import ClaimLost, LogChanged, ProviderRefused
from mastra_memory.models import ObservationalRecord, Scope, Thread
from mastra_memory.models.fields import new_id
from mastra_memory.observational import (
    claims,
    events,
    extractors,
    generations,
    groups,
    log,
    observer_results,
    reflection_commits,
    reflector,
    thresholds,
    timeline,
)
from mastra_memory.observational.activation import Trigger
from mastra_memory.observational.claims import Claim
from mastra_memory.observational.config import ObservationSettings
from mastra_memory.observational.reflector import Reflection
from mastra_memory.observational.thread_metadata import Hints, MergeExtracted
from mastra_memory.observational.work import Work

logger = logging.getLogger(__name__)


def maybe_reflect(job: Work) -> bool | None:
    """Prepare, activate or make a reflection if the size of the log asks for it.

    An answer that cannot be used is logged and not raised: the log stays as it is, and the same
    log is not reflected again.

    Returns:
        Whether there is a new generation; None if it is due but another worker has the claim. That
        worker may be dead, so look again later.

    Raises:
        ProviderUnavailable: The model did not answer; try again later.
    """
    record = generations.find_live_state(job.key)
    if record is None:
        return False
    settings = job.get_settings(record)
    decision = thresholds.decide_reflection(
        tokens=record.observation_token_count,
        settings=settings,
        has_buffered=bool(record.buffered_reflection),
        in_progress=False,  # The claim decides that.
        unproductive_tokens=record.unproductive_reflection_tokens,
    )
    if decision == "none":
        return False
    is_buffered = decision == "buffer"
    claim = claims.claim_reflecting(record, "buffering" if is_buffered else "reflecting")
    if claim is None:
        return None
    try:
        events.close_abandoned(claim)
        if decision == "activate":
            return _activate(job, claim, record, settings)
        if is_buffered:
            _buffer(job, claim)
            return False
        return _reflect(job, claim)
    except (ProviderRefused, LogChanged) as error:
        logger.warning("Reflection failed (record=%s): %s", record.pk, type(error).__name__)
        if isinstance(error, ProviderRefused):
            reflection_commits.mark_unproductive(claim, record.observation_token_count)
        return False
    finally:
        claims.release(claim)


def activate_early(job: Work, *, triggered_by: Trigger) -> bool:
    """Activate a reflection that was prepared in advance, before the log has reached its threshold.

    It is kept if the log would hardly be shorter, or would lose too much.

    Returns:
        Whether there is a new generation.

    Raises:
        ClaimLost: The record was deleted.
    """
    record = generations.find_live(job.key)
    if record is None or not record.buffered_reflection:
        return False
    settings = job.get_settings(record)
    lines, reflection = record.reflected_observation_line_count or 0, record.buffered_reflection
    counter = tokens.get_token_counter()
    if not thresholds.may_activate_reflection_early(
        tail_tokens=counter.text(log.drop_lines(record.active_observations, lines)),
        reflection_tokens=record.buffered_reflection_tokens or 0,
        new_log_tokens=counter.text(
            log.replace_lines(record.active_observations, lines, reflection)
        ),
        settings=settings,
    ):
        return False
    claim = claims.claim_reflecting(record, "reflecting")
    if claim is None:
        return False
    try:
        events.close_abandoned(claim)
        return _activate(job, claim, record, settings, triggered_by=triggered_by)
    finally:
        claims.release(claim)


def reflect_now(job: Work, *, prompt: str = "") -> bool:
    """Condense the log, whatever its size is. An empty log stays as it is.

    Args:
        job: The thread or resource, and the options of the agent.
        prompt: Guidance from the person who asked for it.

    Returns:
        Whether there is a new generation.

    Raises:
        ClaimLost: Another worker is reflecting, or took over.
        ProviderUnavailable: The model did not answer; try again later.
        ProviderRefused: The model refused the request, or its answer was not usable.
    """
    record = generations.find_live(job.key)
    if record is None or not record.active_observations.strip():
        return False
    claim = claims.claim_reflecting(record, "reflecting")
    if claim is None:
        raise ClaimLost("A worker is reflecting on these observations. Try again in a moment.")
    try:
        events.close_abandoned(claim)
        return _reflect(job, claim, prompt=prompt, start_level=reflector.MANUAL_START_LEVEL)
    finally:
        claims.release(claim)


def _reflect(job: Work, claim: Claim, *, prompt: str = "", start_level: int | None = None) -> bool:
    record = generations.get_live(claim.key)
    settings = job.get_settings(record)
    read_log = record.active_observations
    target = settings.observation_tokens
    with timeline.record_operation(
        record,
        "reflection",
        cycle_id=new_id(),
        user_name=job.user_name,
        data=_describe_start(record, settings),
    ) as event:
        thread_id, values = _read_values(record, settings)
        with leases.keep_renewing(lambda: claims.renew(claim)):
            reflection = reflector.reflect_log(
                read_log,
                settings=settings,
                target_tokens=target,
                start_level=start_level,
                prompt=prompt,
                pinned=record.pinned,
                extracted=values,
                thread_id=record.thread_id,
                resource_id=record.resource_id,
            )
        event.usage = reflection.usage
        text = groups.restore_groups(reflection.text, read_log)
        count = tokens.get_token_counter().text(text)
        reflection_commits.commit_reflection(
            claim,
            read_log,
            text,
            hints=_get_hints(reflection),
            thread_id=thread_id,
            merge_extracted=_build_merge(settings, reflection),
            unproductive_tokens=count if count >= target else None,
        )
        event.data = {
            "tokensObserved": record.observation_token_count,
            "observationTokens": count,
            "observations": text,
            "level": reflection.level,
        }
    return True


def _buffer(job: Work, claim: Claim) -> None:
    """Reflect on the first lines of the log in advance."""
    record = generations.get_live(claim.key)
    settings = job.get_settings(record)
    lines, size, target = thresholds.plan_buffered_reflection(
        tokens=record.observation_token_count,
        lines=record.active_observations.count("\n") + 1,
        settings=settings,
    )
    lines = log.find_cut(record.active_observations, lines)
    read_lines = log.take_lines(record.active_observations, lines)
    with timeline.record_operation(
        record,
        "reflection_buffering",
        cycle_id=new_id(),
        user_name=job.user_name,
        data=_describe_start(record, settings) | {"tokensToBuffer": size},
    ) as event:
        with leases.keep_renewing(lambda: claims.renew(claim)):
            reflection = reflector.reflect_log(
                read_lines,
                settings=settings,
                target_tokens=target,
                pinned=record.pinned,
                with_hints=False,
                thread_id=record.thread_id,
                resource_id=record.resource_id,
            )
        event.usage = reflection.usage
        text = groups.restore_groups(reflection.text, read_lines)
        reflection_commits.commit_buffered_reflection(
            claim, read_lines, lines, text, input_tokens=size
        )
        event.data = {
            "tokensBuffered": size,
            "bufferedTokens": reflection.tokens,
            "observations": text,
            "level": reflection.level,
        }


def _activate(
    job: Work,
    claim: Claim,
    record: ObservationalRecord,
    settings: ObservationSettings,
    *,
    triggered_by: Trigger = "threshold",
) -> bool:
    """Replace the first lines of the log by the reflection that was prepared in advance."""
    following = reflection_commits.activate_reflection(
        job.key, claim=claim, unproductive_at=settings.observation_tokens
    )
    if following is None:
        return False
    events.record_event(
        following,
        "activation",
        user_name=job.user_name,
        data={
            "operationType": "reflection",
            "recordId": following.pk,
            "generationCount": following.generation_count,
            "tokensActivated": record.buffered_reflection_input_tokens,
            "observationTokens": following.observation_token_count,
            "config": timeline.describe_config(settings),
            "triggeredBy": triggered_by,
        },
    )
    return True


def _describe_start(record: ObservationalRecord, settings: ObservationSettings) -> dict[str, Any]:
    return {
        "operationType": "reflection",
        "tokensToObserve": record.observation_token_count,
        "config": timeline.describe_config(settings),
    }


def _read_values(
    record: ObservationalRecord, settings: ObservationSettings
) -> tuple[str | None, Mapping[str, Any]]:
    """Return the thread that gets the hints, and the stored values of its extractors.

    In resource scope that is the thread with the latest activity.
    """
    threads = Thread.objects.all()
    if record.scope == Scope.THREAD:
        threads = threads.filter(pk=record.thread_id)
    else:
        threads = threads.of_resource(record.resource_id).order_by("-updated_at", "pk")
    row = threads.values_list("pk", "metadata").first()
    if row is None:
        return None, {}
    metadata = observer_results.get_observer_metadata(row[1])
    return row[0], extractors.read_values(metadata, settings.reflection.extractors)


def _get_hints(reflection: Reflection) -> Hints:
    return Hints(
        current_task=reflection.current_task,
        suggested_response=reflection.suggested_response,
        extracted=reflection.extracted,
        extraction_failures=reflection.extraction_failures,
    )


def _build_merge(settings: ObservationSettings, reflection: Reflection) -> MergeExtracted | None:
    if not reflection.extracted:
        return None

    def merge(metadata: dict[str, Any]) -> dict[str, Any]:
        return extractors.merge_values(
            metadata, settings.reflection.extractors, reflection.extracted
        )

    return merge
