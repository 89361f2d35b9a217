"""Record what observational memory does: the timeline of a record, with tokens and cost."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from mastra_memory.db import json_text, sql, times
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.llm.summaries import UsageTotals
from mastra_memory.models import ObservationalRecord, ObservationEvent
from mastra_memory.models.fields import new_id
from mastra_memory.observational import claims, queries
from mastra_memory.observational.claims import Claim

MAX_ERROR_CHARACTERS = 2_000
_State = ObservationEvent.State


def start(
    record: ObservationalRecord,
    operation: str,
    *,
    cycle_id: str = "",
    thread_id: str | None = None,
    data: Mapping[str, Any] | None = None,
    user_name: str = "",
) -> int | None:
    """Record that an operation has started.

    Args:
        record: The live record.
        operation: An `ObservationEvent.Operation`.
        cycle_id: Identifies the cycle of work.
        thread_id: The thread, if the operation is about one.
        data: What Mastra's start marker contains.
        user_name: The person who started it; empty for automatic work.

    Returns:
        The id of the event, or None if the record was deleted.
    """
    return _insert(record, operation, _State.RUNNING, cycle_id, thread_id, data, user_name)


def record_event(
    record: ObservationalRecord,
    operation: str,
    *,
    cycle_id: str = "",
    thread_id: str | None = None,
    data: Mapping[str, Any] | None = None,
    user_name: str = "",
) -> int | None:
    """Record an operation that takes no time, such as an activation. See `start`."""
    return _insert(record, operation, _State.DONE, cycle_id, thread_id, data, user_name)


@retry_conflicts
def _insert(
    record: ObservationalRecord,
    operation: str,
    state: str,
    cycle_id: str,
    thread_id: str | None,
    data: Mapping[str, Any] | None,
    user_name: str,
) -> int | None:
    text = json_text.dumps(dict(data or {}))
    row = sql.fetch_one(
        queries.INSERT_EVENT,
        [
            cycle_id or new_id(),
            thread_id if thread_id is not None else record.thread_id,
            operation,
            state,
            text,
            user_name,
            state,
            record.id,
        ],
    )
    return row[0] if row else None


@retry_conflicts
def finish(
    event_id: int | None,
    state: str = "done",
    *,
    data: Mapping[str, Any] | None = None,
    error: str = "",
    usage: UsageTotals | None = None,
) -> None:
    """Record how an operation has ended. An event that has ended already does not change.

    Args:
        event_id: What `start` returned.
        state: `done`, `failed` or `discarded`.
        data: What Mastra's end or failed marker contains; it is added to that of the start.
        error: Why it failed or was discarded.
        usage: The tokens and the cost of the model calls.
    """
    if event_id is None:
        return
    usage = usage or UsageTotals()
    text = json_text.dumps(dict(data or {}))
    error = json_text.clean_text(error)[:MAX_ERROR_CHARACTERS]
    sql.execute(
        queries.FINISH_EVENT,
        [state, text, error, usage.input_tokens, usage.output_tokens, usage.cost, event_id],
    )


@retry_conflicts
def close_abandoned(claim: Claim) -> int:
    """Mark the running events of earlier claims on the same lease as failed; return how many.

    Call it right after a successful claim: their workers were killed or lost their claims.
    """
    operations = (
        ("observation", "buffering", "activation")
        if claim.lease == "lease"
        else ("reflection", "reflection_buffering")
    )
    condition, params = claim.key.record_condition("r")
    statement = queries.close_abandoned(condition)
    error = "The worker stopped before the end."
    return sql.execute(statement, [error, list(operations), *params])


def end_expired_claims(record: ObservationalRecord) -> None:
    """Release the claims of workers that were killed, and end their events in the timeline."""
    if record.lease_expires_at and record.lease_expires_at <= times.now():
        _end(claims.claim_observing(record, "buffering"))
    if record.reflection_expires_at and record.reflection_expires_at <= times.now():
        _end(claims.claim_reflecting(record, "buffering"))


def end_abandoned() -> int:
    """End the running events of workers that were killed, where no other work is due.

    Returns:
        The number of records that had such events.
    """
    ids = claims.list_abandoned_records()
    for record in ObservationalRecord.objects.live().filter(pk__in=ids):
        _end(claims.claim_observing(record, "buffering"))
        _end(claims.claim_reflecting(record, "buffering"))
    return len(ids)


def _end(claim: Claim | None) -> None:
    """Close the events of earlier claims, and release this one. It is None if a worker is alive."""
    if claim is not None:
        close_abandoned(claim)
        claims.release(claim)


def list_events(
    record: ObservationalRecord, *, limit: int = 100, before: datetime | None = None
) -> list[ObservationEvent]:
    """Return the events of all generations of a record, newest first."""
    events = ObservationEvent.objects.filter(
        record__scope=record.scope,
        record__thread_id=record.thread_id,
        record__resource_id=record.resource_id,
    )
    if before is not None:
        events = events.filter(started_at__lt=before)
    return list(events.order_by("-started_at", "-id")[:limit])
