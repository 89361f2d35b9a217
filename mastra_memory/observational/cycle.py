"""Do all the work that is due for one record: activate, observe or buffer, then reflect.

No transaction and no lock is open while a model is called. A worker holds a lease instead, and
commits a result only while the lease is still its own.
"""

import logging
from dataclasses import dataclass
from datetime import datetime

from mastra_memory import conf
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.exceptions import (
    AgentNotFound,
    ClaimLost,
    InvalidInput,
    MemoryNotConfigured,
    ProviderRefused,
    ProviderUnavailable,
    UsageLimitReached,
)
from mastra_memory.models import ObservationalRecord
from mastra_memory.observational import (
    activation,
    buffering,
    claims,
    events,
    generations,
    observing,
    reflecting,
    status,
    timeline,
    tracking,
)
from mastra_memory.observational.activation import Trigger
from mastra_memory.observational.claims import Claim
from mastra_memory.observational.keys import RecordKey
from mastra_memory.observational.status import ObservationStatus
from mastra_memory.observational.work import Work

logger = logging.getLogger(__name__)

RETRY_DELAYS = (30, 120, 600, 1_800, 3_600)
"""Seconds to wait after the first, second, … failure in a row."""
MAX_ATTEMPTS = 5
"""Failures in a row after which a refused request is repeated only for new messages."""


@dataclass(slots=True, kw_only=True)
class CycleResult:
    """What a cycle did."""

    chunks_activated: int = 0
    messages_observed: int = 0
    messages_buffered: int = 0
    reflected: bool = False
    is_busy: bool = False
    """Another worker was at work on the record, so nothing was done."""
    waits_for_reflection: bool = False
    """A reflection is due, but another worker has the claim to reflect."""

    @property
    def has_changed(self) -> bool:
        """Whether anything was done."""
        return bool(
            self.chunks_activated
            or self.messages_observed
            or self.messages_buffered
            or self.reflected
        )


def run_due_cycle(record_id: str) -> float | None:
    """Run a cycle for the live generation of this record, if work is due.

    Running it twice, or in two workers at once, does no work twice.

    Returns:
        The seconds after which to run again, or None if nothing is left to do.
    """
    records = ObservationalRecord.objects.defer("active_observations")
    given = records.filter(pk=record_id).first()
    record = generations.find_live_state(RecordKey.of_record(given)) if given else None
    if record is None or record.due_at is None:
        return None
    job, due_at = find_work(record), record.due_at
    if job is None:
        claims.finish_work(RecordKey.of_record(record), due_at)
        return None
    try:
        result = run_cycle(job)
    except (ClaimLost, UsageLimitReached):
        return None  # The work stays due.
    except (ProviderUnavailable, ProviderRefused, InvalidInput) as error:
        return _record_failure(record, error)
    except Exception as error:
        # An unexpected failure must not be repeated every few seconds.
        _record_failure(record, error)
        raise
    if result.is_busy or result.waits_for_reflection:
        return None  # The work stays due, in case the other worker was killed.
    if (
        result.messages_observed
        and status.read_status_without_log(job.key, job.options).should_observe
    ):
        return 0.0  # In resource scope, a cycle observes only the largest threads.
    return None if claims.finish_work(job.key, due_at) else 0.0


def find_work(record: ObservationalRecord) -> Work | None:
    """Return the work with the options of the agent that requested it.

    None means that the agent does not observe this kind of record, or does not exist any more.
    """
    try:
        options = conf.get_agent_options(record.agent_id)
    except (AgentNotFound, MemoryNotConfigured):
        return None
    observational = options.observational_memory
    if observational is None or observational.scope != record.scope:
        return None
    return Work.build(RecordKey.of_record(record), options, agent_id=record.agent_id)


def _record_failure(record: ObservationalRecord, error: Exception) -> float | None:
    """Store the failure on the record, and return when to try again."""
    is_permanent = isinstance(error, ProviderRefused | InvalidInput)
    attempt = record.attempts + 1
    retry_after: float | None = RETRY_DELAYS[min(attempt, len(RETRY_DELAYS)) - 1]
    if is_permanent and attempt >= MAX_ATTEMPTS:
        retry_after = None
    claims.fail_work(
        RecordKey.of_record(record), timeline.describe_error(error), retry_after=retry_after
    )
    logger.warning(
        "Observation failed (record=%s attempt=%d retry_after=%s): %s",
        record.pk,
        attempt,
        retry_after,
        type(error).__name__,
    )
    return retry_after


def run_cycle(
    job: Work, *, everything: bool = False, result: CycleResult | None = None
) -> CycleResult:
    """Do what the thresholds ask for.

    Args:
        job: The thread or resource, which must have a record, and the options of the agent.
        everything: Observe all messages, whatever the thresholds are.
        result: Where to note what was done, also if the cycle ends with an exception.

    Raises:
        ClaimLost: Another worker took over, or the record was deleted. Nothing is lost.
        ProviderUnavailable: A model did not answer; try again later.
        ProviderRefused: A model refused the request, or its answer was not usable.
    """
    result = result or CycleResult()
    tracking.track_missing(job.key)
    current = status.read_status_without_log(job.key, job.options)
    if current.record is None:
        return result
    events.end_expired_claims(current.record)
    _store_pending(current)
    is_due = current.should_observe or (everything and current.pending_messages > 0)
    if is_due or current.should_buffer:
        claim = claims.claim_observing(current.record, "observing" if is_due else "buffering")
        if claim is None:
            result.is_busy = True
            return result
        try:
            events.close_abandoned(claim)
            _observe(job, claim, result, everything=everything)
        finally:
            claims.release(claim)
    reflected = reflecting.maybe_reflect(job)
    result.reflected, result.waits_for_reflection = bool(reflected), reflected is None
    return result


@retry_conflicts
def _store_pending(current: ObservationStatus) -> None:
    """Store the count for clients that read the record. Nothing here depends on it."""
    record = current.record
    if record is not None and record.pending_message_tokens != current.pending_tokens:
        records = ObservationalRecord.objects.live().filter(pk=record.pk)
        records.update(pending_message_tokens=current.pending_tokens)


def _observe(job: Work, claim: Claim, result: CycleResult, *, everything: bool) -> None:
    """Activate, then observe or buffer.

    The status is read again, because only this worker has the claim now.
    """
    current = status.read_status_without_log(job.key, job.options)
    if current.can_activate and (everything or current.should_observe):
        count = activation.count_chunks(current, everything=everything)
        result.chunks_activated += activation.activate(
            job, count, current, triggered_by="threshold", claim=claim
        )
        current = status.read_status_without_log(job.key, job.options)
    if current.should_observe or (everything and current.pending_messages):
        # Even without the activated chunks, the threshold is reached. All messages are observed, so
        # the chunks before them must become visible first.
        result.chunks_activated += activation.activate(
            job, current.chunk_count, current, triggered_by="threshold", claim=claim
        )
        for count in observing.observe_pending(job, claim, everything=everything):
            result.messages_observed += count
    elif current.should_buffer:
        result.messages_buffered += buffering.buffer_pending(job, claim)


def activate_all(job: Work, *, triggered_by: Trigger, last_activity: datetime | None = None) -> int:
    """Activate all chunks of a record, and return how many there were.

    Raises:
        ClaimLost: The record was deleted.
    """
    current = status.read_status_without_log(job.key, job.options)
    return activation.activate(
        job, current.chunk_count, current, triggered_by=triggered_by, last_activity=last_activity
    )
