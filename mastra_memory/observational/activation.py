"""Activation: chunks that were prepared in advance become part of the log. It calls no model."""

from datetime import datetime
from typing import Any, Literal

from mastra_memory.db import times
from mastra_memory.observational import commits, events, thresholds, timeline
from mastra_memory.observational.claims import Claim
from mastra_memory.observational.commits import Activation
from mastra_memory.observational.status import ObservationStatus
from mastra_memory.observational.work import Work

Trigger = Literal["threshold", "ttl", "provider_change", "manual"]


def count_chunks(status: ObservationStatus, *, everything: bool = False) -> int:
    """Return how many chunks to activate, oldest first."""
    if everything:
        return status.chunk_count
    return thresholds.choose_chunks(
        status.chunk_tokens, pending=status.pending_tokens, settings=status.settings
    )


def activate(
    job: Work,
    count: int,
    status: ObservationStatus,
    *,
    triggered_by: Trigger,
    claim: Claim | None = None,
    last_activity: datetime | None = None,
) -> int:
    """Activate the oldest `count` chunks, and return how many were activated.

    Hints that a chunk carries are applied; without them, earlier ones are kept.

    Raises:
        ClaimLost: Another worker took over, or the record was deleted.
    """
    if count <= 0:
        return 0
    activation = commits.activate_chunks(job.key, count, claim=claim)
    if activation is None:
        return 0
    data = _describe(activation, status, triggered_by)
    if last_activity is not None:
        data["lastActivityAt"] = times.format_time(last_activity)
    thread_id = activation.record.thread_id
    events.record_event(
        activation.record, "activation", thread_id=thread_id, user_name=job.user_name, data=data
    )
    return len(activation.chunks)


def _describe(
    activation: Activation, status: ObservationStatus, triggered_by: Trigger
) -> dict[str, Any]:
    """Return what Mastra's marker contains."""
    record = activation.record
    return {
        "operationType": "observation",
        "recordId": record.pk,
        "threadId": record.thread_id,
        "generationCount": record.generation_count,
        "activatedAt": times.format_time(times.now()),
        "chunksActivated": len(activation.chunks),
        "tokensActivated": activation.tokens,
        "messagesActivated": len(activation.message_ids),
        "observationTokens": sum(chunk.token_count for chunk in activation.chunks),
        "observations": "\n\n".join(chunk.observations for chunk in activation.chunks),
        "config": timeline.describe_config(status.settings),
        "triggeredBy": triggered_by,
    }
