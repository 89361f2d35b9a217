"""Operations that somebody waits for: observe and reflect now, and finish a conversation."""

from dataclasses import dataclass

from mastra_memory.exceptions import ClaimLost
from mastra_memory.models import ObservationalRecord
from mastra_memory.observational import cycle, generations, reflecting
from mastra_memory.observational.cycle import CycleResult
from mastra_memory.observational.work import Work

BUSY_MESSAGE = "A worker is at work on these observations. Try again in a moment."
WAIT_SECONDS = 30.0
"""How long `finalize` waits for a worker that is buffering."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationOutcome:
    """What an operation did, and the current generation."""

    record: ObservationalRecord | None
    observed: bool = False
    activated: bool = False
    reflected: bool = False


def observe(job: Work) -> ObservationOutcome:
    """Observe all messages, whatever the thresholds are, and reflect if it is due.

    Raises:
        ClaimLost: Another worker is at work on the record, or took over.
        ProviderUnavailable: The model did not answer; try again later.
        ProviderRefused: The model refused the request, or its answer was not usable.
    """
    generations.get_or_create_live(job.key, agent_id=job.agent_id)
    return _describe(job, cycle.run_cycle(job, everything=True))


def reflect(job: Work, *, prompt: str = "") -> ObservationOutcome:
    """Condense the log, whatever its size is. An empty log stays as it is.

    Raises:
        ClaimLost: Another worker is reflecting, or took over.
        ProviderUnavailable: The model did not answer; try again later.
        ProviderRefused: The model refused the request, or its answer was not usable.
    """
    reflected = reflecting.reflect_now(job, prompt=prompt)
    return ObservationOutcome(record=generations.find_live(job.key), reflected=reflected)


def finalize(job: Work) -> ObservationOutcome:
    """Wait for buffering, activate all chunks, then observe and reflect if it is due.

    Raises:
        ClaimLost: Another worker is still at work on the record, or took over.
        ProviderUnavailable: The model did not answer; try again later.
        ProviderRefused: The model refused the request, or its answer was not usable.
    """
    key = job.key
    generations.get_or_create_live(key, agent_id=job.agent_id)
    generations.wait_for_buffering(
        key.scope, thread_id=key.thread_id, resource_id=key.resource_id, timeout=WAIT_SECONDS
    )
    activated = cycle.activate_all(job, triggered_by="manual")
    result = cycle.run_cycle(job)
    result.chunks_activated += activated
    return _describe(job, result)


def _describe(job: Work, result: CycleResult) -> ObservationOutcome:
    if result.is_busy:
        raise ClaimLost(BUSY_MESSAGE)
    return ObservationOutcome(
        record=generations.find_live(job.key),
        observed=result.messages_observed > 0,
        activated=result.chunks_activated > 0,
        reflected=result.reflected,
    )
