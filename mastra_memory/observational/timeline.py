"""Record an operation as an event of the record's timeline, however it ends."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from mastra_memory.db import times
from mastra_memory.exceptions import ClaimLost, MastraMemoryError
from mastra_memory.llm.summaries import UsageTotals
from mastra_memory.models import ObservationalRecord
from mastra_memory.observational import events
from mastra_memory.observational.config import ObservationSettings

TIME_UNITS = 1_000


@dataclass(slots=True)
class RunningEvent:
    """An operation that runs now. What is set here is stored when it ends."""

    cycle_id: str
    data: dict[str, Any] = field(default_factory=dict)
    usage: UsageTotals = field(default_factory=UsageTotals)


@contextmanager
def record_operation(
    record: ObservationalRecord,
    operation: str,
    *,
    cycle_id: str,
    thread_id: str | None = None,
    user_name: str = "",
    data: Mapping[str, Any] | None = None,
) -> Iterator[RunningEvent]:
    """Store the start of the block, and how it ended: done, failed, or discarded.

    Args:
        record: The live record.
        operation: An `ObservationEvent.Operation`.
        cycle_id: Identifies the call of the model.
        thread_id: The thread, if the operation is about one.
        user_name: The person who asked for it.
        data: What Mastra's start marker contains.
    """
    started = times.now()
    event_id = events.start(
        record,
        operation,
        cycle_id=cycle_id,
        thread_id=thread_id,
        user_name=user_name,
        data={
            "cycleId": cycle_id,
            "recordId": record.pk,
            "startedAt": times.format_time(started),
            **(data or {}),
        },
    )
    running = RunningEvent(cycle_id)
    try:
        yield running
    except ClaimLost as error:
        events.finish(
            event_id, "discarded", data=_end(started, "failedAt"), error=str(error),
            usage=running.usage,
        )  # fmt: skip
        raise
    except BaseException as error:
        events.finish(
            event_id, "failed", data=_end(started, "failedAt"), error=describe_error(error),
            usage=running.usage,
        )  # fmt: skip
        raise
    end = _end(started, "completedAt") | running.data
    events.finish(event_id, "done", data=end, usage=running.usage)


def _end(started: datetime, name: str) -> dict[str, Any]:
    now = times.now()
    duration = round((now - started).total_seconds() * TIME_UNITS)
    return {name: times.format_time(now), "durationMs": duration}


def describe_error(error: BaseException) -> str:
    """Return the messages of an exception and its causes, for people who may read the memory.

    The texts of unexpected exceptions may contain data, so only their types are named.
    """
    texts: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(texts) < 5:
        known = isinstance(cause, MastraMemoryError)
        texts.append(str(cause) if known else type(cause).__name__)
        cause = cause.__cause__
    return ": ".join(texts)


def describe_config(settings: ObservationSettings) -> dict[str, Any]:
    """Return the thresholds as Mastra's markers contain them."""
    return {
        "messageTokens": settings.message_tokens,
        "observationTokens": settings.observation_tokens,
        "scope": settings.scope,
    }
