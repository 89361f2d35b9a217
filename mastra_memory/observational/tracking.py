"""Track which messages are unobserved, and count their tokens without reading them.

Each message has one row per scope, see `MessageObservation`. New messages get it when they are
saved, see `saving`. Messages that were imported, or saved by an agent without observational
memory, have none; those after the cursor of the record get it at the beginning of each cycle of
work.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from mastra_memory.content import tokens
from mastra_memory.db import sql
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.models import ObservationalRecord, ObservationChunk, Scope
from mastra_memory.observational import generations, tracking_queries
from mastra_memory.observational.batches import ThreadSize
from mastra_memory.observational.keys import RecordKey, ScopeName
from mastra_memory.types import StoredMessage

COUNT_BATCH_SIZE = 500
"""How many messages without a token count are read at a time."""
STATE_SIGNAL = "state"
"""The signal type of working-memory state, which is never observed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCount:
    """The unobserved messages of a thread or resource."""

    tokens: int
    """The tokens of all unobserved messages, the buffered ones included."""
    messages: int
    unbuffered_tokens: int
    """The tokens that remain without the messages of buffered chunks."""
    chunk_tokens: tuple[int, ...] = ()
    """For each buffered chunk, the tokens of its messages that still exist, oldest chunk first."""
    uncounted: int = 0
    """How many messages have no token count yet; `track_missing` counts them."""


def count_tokens(messages: Sequence[StoredMessage]) -> list[int]:
    """Return the number of tokens of each message."""
    counter = tokens.get_token_counter()
    return [counter.message(message.role, message.content) for message in messages]


@retry_conflicts
def track_missing(key: RecordKey) -> int:
    """Track the messages after the cursor that have no row, and count tokens that are missing.

    Returns:
        How many messages were new or counted again.
    """
    head = generations.find_live_state(key)
    if head is None:
        return 0
    in_thread = head.scope == Scope.THREAD
    sql.execute(
        tracking_queries.TRACK_MISSING_OF_THREAD
        if in_thread
        else tracking_queries.TRACK_MISSING_OF_RESOURCE,
        [head.id],
    )
    total = 0
    while count := _count_uncounted(key):
        total += count
    return total


def has_untracked(key: RecordKey) -> bool:
    """Return whether a thread or resource without a record has messages without a row."""
    row = sql.fetch_one(tracking_queries.has_untracked(key), [key.subject_id, key.scope])
    return row is not None and bool(row[0])


def _count_uncounted(key: RecordKey) -> int:
    subject = key.subject_id
    statement = tracking_queries.list_uncounted(key)
    rows = sql.fetch_all(statement, [subject, subject, COUNT_BATCH_SIZE])
    return _set_token_counts(rows, key.scope)


@retry_conflicts
def count_again(message_ids: Sequence[str], *, scope: ScopeName) -> None:
    """Count the tokens of those messages whose content has changed since they were counted."""
    rows = sql.fetch_all(tracking_queries.LIST_UNCOUNTED_OF, [scope, list(message_ids)])
    _set_token_counts(rows, scope)


def _set_token_counts(rows: Sequence[sql.SqlRow], scope: ScopeName) -> int:
    """Count tokens and store the counts. Return how many messages have not changed meanwhile."""
    if not rows:
        return 0
    messages = [StoredMessage(*row) for row in rows]
    ids, hashes = [message.id for message in messages], hash_contents(messages)
    counts = count_tokens(messages)
    return sql.execute(tracking_queries.SET_TOKEN_COUNTS, [ids, hashes, counts, scope])


def hash_contents(messages: Sequence[StoredMessage]) -> list[str]:
    """Return the MD5 of each content, to notice messages that are edited meanwhile."""
    contents = (message.content_json.encode() for message in messages)
    return [hashlib.md5(content, usedforsecurity=False).hexdigest() for content in contents]


def count_pending(key: RecordKey) -> PendingCount:
    """Return the number of unobserved messages and of their tokens, in one statement.

    Like Mastra's counts, they include the overhead of a list: one per thread and one per chunk.
    """
    subject = key.subject_id
    (row,) = sql.fetch_all_prepared(tracking_queries.count_pending(key), [subject, subject])
    messages, pending, uncounted, threads, chunk_messages, chunk_sums, chunk_uncounted = row
    total = messages + sum(chunk_messages)
    lists = threads if threads or not total else 1
    all_tokens = pending + sum(chunk_sums) + tokens.TOKENS_PER_LIST * lists
    chunk_tokens = tuple(
        count + tokens.TOKENS_PER_LIST if size else 0
        for size, count in zip(chunk_messages, chunk_sums, strict=True)
    )
    return PendingCount(
        tokens=all_tokens,
        messages=total,
        unbuffered_tokens=max(0, all_tokens - sum(chunk_tokens)),
        chunk_tokens=chunk_tokens,
        uncounted=uncounted + int(chunk_uncounted),
    )


def list_unobserved(
    key: RecordKey,
    *,
    thread_id: str | None = None,
    limit_tokens: int | None = None,
    exclude_buffered: bool = False,
) -> list[StoredMessage]:
    """Return the unobserved messages that are tracked, oldest first.

    Args:
        key: The thread or resource.
        thread_id: Only messages of this thread of a resource.
        limit_tokens: Stop at the message that reaches this many tokens.
        exclude_buffered: Leave out messages of buffered chunks.
    """
    subjects = [key.subject_id] * (1 if exclude_buffered else 2)
    rows = sql.fetch_all(
        tracking_queries.list_unobserved(
            key, exclude_buffered=exclude_buffered, in_thread=thread_id is not None
        ),
        [
            *subjects,
            *([] if thread_id is None else [thread_id]),
            sql.MAX_PAGE if limit_tokens is None else limit_tokens,
        ],
    )
    return [StoredMessage(*row) for row in rows]


def list_threads_with_unobserved(resource_id: str) -> list[ThreadSize]:
    """Return the threads of a resource that have unobserved messages, oldest message first."""
    key = RecordKey.about_resource(resource_id)
    rows = sql.fetch_all(tracking_queries.list_threads(key), [resource_id, resource_id])
    return [
        ThreadSize(thread_id, count + tokens.TOKENS_PER_LIST, oldest)
        for thread_id, count, oldest in rows
    ]


def filter_unobserved(
    where: sql.Where, record: ObservationalRecord, thread_id: str, cursor: datetime | None
) -> None:
    """Add the condition that messages `m` of a thread are unobserved, buffered ones included.

    Args:
        where: The conditions of a statement that selects messages of the thread.
        record: The live record.
        thread_id: The thread.
        cursor: The time up to which messages without a row are observed.
    """
    scope = record.scope
    if cursor is None:
        where.add(tracking_queries.IS_NOT_ACTIVATED, scope)
        if record.observed_message_ids:
            where.add("m.id <> ALL(%s)", record.observed_message_ids)
    else:
        params = [thread_id, scope, record.id, thread_id, scope, record.id, thread_id, cursor]
        where.add(tracking_queries.IS_UNOBSERVED, *params)


def read_token_counts(record: ObservationalRecord, thread_id: str) -> dict[str, int]:
    """Return the token counts of the unobserved messages of a thread, by message."""
    params = [thread_id, record.scope, record.id, thread_id, record.scope]
    return dict(sql.fetch_all(tracking_queries.READ_TOKEN_COUNTS, params))


def track_chunks(chunk_ids: Sequence[str]) -> int:
    """Track the messages of imported chunks, as far as they are stored. Return how many."""
    return sql.execute(tracking_queries.TRACK_CHUNKS, [list(chunk_ids)]) if chunk_ids else 0


def track_pending(record_id: str, message_ids: Sequence[str]) -> int:
    """Mark messages of the subject of a record as pending, unless they are tracked already."""
    return sql.execute(tracking_queries.TRACK_PENDING, [record_id, list(message_ids)])


def drop_stranded_chunks(record_ids: Sequence[str]) -> None:
    """Delete buffered chunks of superseded records. Their messages become pending."""
    if record_ids:
        sql.execute(tracking_queries.RELEASE_BUFFERED_MESSAGES, [list(record_ids)])
        ObservationChunk.objects.buffered().filter(record_id__in=record_ids).delete()


def list_pending_before_cursor(record_ids: Sequence[str]) -> dict[str, list[str]]:
    """Return the pending messages that are not later than the cursor, by live record."""
    ids = list(record_ids)
    return (
        dict(sql.fetch_all(tracking_queries.LIST_PENDING_BEFORE_CURSOR, [ids, ids])) if ids else {}
    )
