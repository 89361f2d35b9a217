"""Track messages in the statement that saves them, and request work where a threshold is reached.

A save must not be slower with observational memory, so everything happens in its one statement.
Only two rare cases need more statements: messages that were saved again with different content, and
records for which the statement cannot tell whether work is due.
"""

from collections.abc import Sequence
from typing import Protocol

from mastra_memory.content import tokens
from mastra_memory.db import json_text, sql
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.observational import claims, generations, saving_queries, status, tracking
from mastra_memory.observational.config import resolve_settings
from mastra_memory.observational.keys import RecordKey, ScopeName
from mastra_memory.observational.thresholds import get_half_chunk_threshold
from mastra_memory.options import ObservationalMemoryOptions


class UnsavedMessage(Protocol):
    """The attributes of a message that `extend_save` needs."""

    @property
    def id(self) -> str:
        """The id of the message."""

    @property
    def role(self) -> str:
        """The role of its author."""

    @property
    def content_json(self) -> str:
        """Its content as JSON text."""

    @property
    def signal(self) -> str:
        """Its signal type; empty for an ordinary message."""


def extend_save(
    messages: Sequence[UnsavedMessage],
    options: ObservationalMemoryOptions,
    *,
    agent_id: str | None,
) -> sql.Extension:
    """Return the SQL to add to the statement that saves these messages.

    It marks them as pending with their token counts. Messages that were saved before keep their
    state. Where a threshold is reached, it requests work; a record is created when there is work
    for the first time, not earlier. It reads only counts of pending messages, whatever the length
    of the threads is.
    """
    counter = tokens.get_token_counter()
    counts = {
        message.id: counter.message(message.role, json_text.loads(message.content_json))
        for message in messages
        if message.signal != tracking.STATE_SIGNAL
    }
    settings = resolve_settings(options)
    size = settings.buffer_tokens if settings.asynchronous else None
    budget = settings.message_tokens + settings.observation_tokens
    params = [
        json_text.dumps(counts),
        agent_id,
        settings.message_tokens,
        budget if settings.share_token_budget else None,
        None if size is None else float(size),
        None if size is None else float(get_half_chunk_threshold(settings)),
    ]
    return sql.Extension(*saving_queries.track_saved(options.scope), params)


def finish_save(
    columns: sql.SqlRow, options: ObservationalMemoryOptions, *, agent_id: str | None
) -> list[str]:
    """Complete what the statement left open, and return the ids of the records with work due.

    Recount the tokens of messages that were saved again, and decide the undecided cases.

    Args:
        columns: The columns that the extension returned.
        options: The options of the agent.
        agent_id: The agent.
    """
    subjects_json, saved_again = columns
    if saved_again:
        tracking.count_again(saved_again, scope=options.scope)
    due = []
    for subject_id, resource_id, record_id in json_text.loads(subjects_json or "[]"):
        key = _build_key(options.scope, subject_id, resource_id)
        if record_id is None:
            record_id = _request_if_due(key, options, agent_id)
        if record_id is not None:
            due.append(record_id)
    return due


def _build_key(scope: ScopeName, subject_id: str, resource_id: str) -> RecordKey:
    if scope == "thread":
        return RecordKey.about_thread(subject_id, resource_id)
    return RecordKey.about_resource(resource_id)


@retry_conflicts
def _request_if_due(
    key: RecordKey, options: ObservationalMemoryOptions, agent_id: str | None
) -> str | None:
    """Request work if a threshold is reached. Return the id of the record if there is work."""
    pending = tracking.count_pending(key)
    record = generations.find_live_state(key)
    is_due = pending.uncounted or status.build_status(record, options, pending).needs_work
    if not is_due and (record is not None or not tracking.has_untracked(key)):
        return None
    if record is None:
        record = generations.get_or_create_live(key, agent_id=agent_id)
    return claims.request_work(key, agent_id) or record.pk
