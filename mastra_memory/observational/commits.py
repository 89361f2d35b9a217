"""Store the results of the Observer and the Reflector, in short transactions.

A model call takes seconds, so nothing is locked during it. Each function here looks again: it locks
the thread and then the live record, and checks that the claim is still valid. The new log is
composed and counted before that. If the log changes again and again, it is composed under the lock,
so that no result is lost.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from mastra_memory.content import tokens
from mastra_memory.db import json_text, routing, sql, times
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.exceptions import ClaimLost
from mastra_memory.models import ObservationalRecord, ObservationChunk, Scope
from mastra_memory.models.fields import new_id
from mastra_memory.observational import generations, log, queries, thread_metadata, tracking
from mastra_memory.observational.claims import Claim
from mastra_memory.observational.keys import RecordKey
from mastra_memory.observational.source_messages import SourceMessages
from mastra_memory.observational.thread_metadata import Hints, LockedThread, MergeExtracted
from mastra_memory.types import StoredMessage

CURSOR_STEP = timedelta(milliseconds=1)
"""A chunk stores the time of its newest message plus this, as in Mastra."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A stored result of the Observer."""

    record: ObservationalRecord
    chunk: ObservationChunk
    title_change: tuple[str, str] | None = None
    """The old and the new title of the thread, if the title was changed."""
    dropped_chunk_ids: tuple[str, ...] = ()
    """Buffered chunks that were dropped, because some of their messages were observed at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """Buffered chunks that became part of the observations."""

    record: ObservationalRecord
    chunks: Sequence[ObservationChunk]
    message_ids: Sequence[str]
    tokens: int
    """The tokens of the messages."""


@retry_conflicts
def commit_observation(
    claim: Claim,
    text: str,
    messages: Sequence[StoredMessage],
    *,
    hints: Hints | None = None,
    cycle_id: str = "",
    group_id: str = "",
    title: str = "",
    merge_extracted: MergeExtracted | None = None,
) -> Commit:
    """Append observations to the log, and mark their messages as observed.

    Args:
        claim: The claim on observing.
        text: The observations. Nothing is appended if they are blank, but the messages are
            observed.
        messages: The messages of one thread that the Observer has read, unchanged, as
            `tracking.list_unobserved` returned them. One that was edited since stays pending.
        hints: The hints for the thread's metadata. Those that are missing are removed.
        cycle_id: Identifies the call of the Observer.
        group_id: The id of the observation group in the text.
        title: A title to set.
        merge_extracted: Adds extracted values to the thread's metadata.

    Raises:
        ClaimLost: Another worker has taken over, the record was deleted, or no message is left.
    """
    text = json_text.clean_text(text)
    hints = hints or Hints()
    source = SourceMessages.read(messages)
    moment = messages[-1].created_at

    def compose(record: ObservationalRecord) -> tuple[str, int]:
        composed = log.append_observations(record.active_observations, text, moment)
        return composed, _count_changed(record, composed)

    attempts = 0
    while True:
        attempts += 1
        live = generations.get_live(claim.key)
        new_log = compose(live)
        with routing.atomic():
            thread = thread_metadata.lock_thread(source.thread_id)
            locked = generations.lock_live(claim.key, claim)
            if not generations.is_unchanged(live, locked):
                if attempts < generations.MAX_UNLOCKED_ATTEMPTS:
                    continue
                new_log = compose(locked)
            return _store_observation(
                locked,
                new_log,
                text,
                source,
                hints,
                (cycle_id, group_id),
                thread,
                title,
                merge_extracted,
            )


def _store_observation(
    record: ObservationalRecord,
    new_log: tuple[str, int],
    text: str,
    source: SourceMessages,
    hints: Hints,
    ids: tuple[str, str],
    thread: LockedThread | None,
    title: str,
    merge_extracted: MergeExtracted | None,
) -> Commit:
    dropped = _drop_overlapping_chunks(record, source)
    chunk = _insert_chunk(record, text, source, hints, *ids, activated_at=times.now())
    _append(record, new_log, _get_newest(chunk))
    record.total_tokens_observed += chunk.message_tokens
    record.save()
    change = None
    if thread is not None:
        metadata = thread_metadata.set_hints(thread.metadata, hints, remove_missing=True)
        metadata = merge_extracted(metadata) if merge_extracted else metadata
        _save_cursor(thread, metadata, record, chunk)
        change = thread_metadata.apply_title(thread, title)
    return Commit(record=record, chunk=chunk, title_change=change, dropped_chunk_ids=tuple(dropped))


@retry_conflicts
def commit_chunk(
    claim: Claim,
    text: str,
    messages: Sequence[StoredMessage],
    *,
    hints: Hints | None = None,
    cycle_id: str = "",
    group_id: str = "",
    title: str = "",
    merge_extracted: MergeExtracted | None = None,
    pending_tokens: int = 0,
) -> Commit:
    """Store observations as a buffered chunk of the live record.

    Args:
        claim: The claim on buffering.
        text: The observations.
        messages: The messages of one thread that the Observer has read, unchanged.
        hints: The hints, which stay in the chunk until it is activated.
        cycle_id: Identifies the call of the Observer.
        group_id: The id of the observation group in the text.
        title: A title to set.
        merge_extracted: Adds extracted values to the thread's metadata.
        pending_tokens: The number of unobserved tokens, for `lastBufferedAtTokens`.

    Raises:
        ClaimLost: Another worker has taken over, the record was deleted, or no message is left.
    """
    text = json_text.clean_text(text)
    source = SourceMessages.read(messages)
    with routing.atomic():
        thread = thread_metadata.lock_thread(source.thread_id)
        locked = generations.lock_live(claim.key, claim)
        chunk = _insert_chunk(locked, text, source, hints or Hints(), cycle_id, group_id)
        locked.last_buffered_at_tokens = pending_tokens
        locked.last_buffered_at_time = max(
            filter(None, (locked.last_buffered_at_time, chunk.last_observed_at))
        )
        locked.updated_at = times.now()
        locked.save(
            update_fields=["last_buffered_at_tokens", "last_buffered_at_time", "updated_at"]
        )
        change = None
        if thread is not None:
            if merge_extracted is not None:
                thread_metadata.save_metadata(thread, merge_extracted(dict(thread.metadata)))
            change = thread_metadata.apply_title(thread, title)
    return Commit(record=locked, chunk=chunk, title_change=change)


@retry_conflicts
def activate_chunks(key: RecordKey, count: int, *, claim: Claim | None = None) -> Activation | None:
    """Append the first `count` buffered chunks to the log, and mark their messages as observed.

    Args:
        key: The thread or resource.
        count: How many chunks; those that are stored now, even if others were activated meanwhile.
        claim: The claim on observing, if the caller has one.

    Returns:
        What was activated, or None if there are no chunks.

    Raises:
        ClaimLost: Another worker has taken over, or the record was deleted.
    """

    def compose(record: ObservationalRecord) -> tuple[list[ObservationChunk], tuple[str, int]]:
        chunks = record.buffered_chunks[:count]
        texts = [chunk.observations.strip() for chunk in chunks]
        newest = max(map(_get_newest, chunks), default=record.created_at)
        text = "\n\n".join(filter(None, texts))
        composed = log.append_observations(record.active_observations, text, newest)
        return chunks, (composed, _count_changed(record, composed))

    attempts = 0
    while True:
        attempts += 1
        live = generations.get_live(key)
        chunks, new_log = compose(live)
        if not chunks:
            return None
        with routing.atomic():
            thread = thread_metadata.lock_thread(live.thread_id or chunks[-1].thread_id)
            locked = generations.lock_live(key, claim)
            stored = [chunk.id for chunk in locked.buffered_chunks[:count]]
            is_same = stored == [chunk.id for chunk in chunks]
            if not (is_same and generations.is_unchanged(live, locked)):
                if attempts < generations.MAX_UNLOCKED_ATTEMPTS:
                    continue
                chunks, new_log = compose(locked)
                if not chunks:
                    return None
            return _activate(locked, chunks, new_log, thread)


def _activate(
    record: ObservationalRecord,
    chunks: Sequence[ObservationChunk],
    new_log: tuple[str, int],
    thread: LockedThread | None,
) -> Activation:
    counts = tracking.count_pending(RecordKey.of_record(record)).chunk_tokens[: len(chunks)]
    ids = [chunk.id for chunk in chunks]
    ObservationChunk.objects.filter(id__in=ids).update(activated_at=times.now())
    _append(record, new_log, max(map(_get_newest, chunks)))
    record.total_tokens_observed += sum(counts)
    record.last_buffered_at_tokens = 0
    record.save()
    if thread is not None:
        metadata = dict(thread.metadata)
        for chunk in chunks:
            metadata = thread_metadata.set_hints(metadata, _read_hints(chunk), remove_missing=False)
        _save_cursor(thread, metadata, record, chunks[-1])
    rows = sql.fetch_all(queries.LIST_MESSAGES_OF_CHUNKS, [ids])
    return Activation(
        record=record,
        chunks=chunks,
        message_ids=[message_id for (message_id,) in rows],
        tokens=sum(counts),
    )


def _count_changed(live: ObservationalRecord, composed: str) -> int:
    """Return the tokens of the new log. The stored number is used if the log does not change."""
    if composed == live.active_observations:
        return live.observation_token_count
    return tokens.get_token_counter().text(composed)


def _append(record: ObservationalRecord, new_log: tuple[str, int], newest: datetime) -> None:
    """Set the log, the cursor and the pending tokens. The cursor never moves backwards."""
    record.active_observations, record.observation_token_count = new_log
    record.last_observed_at = max(filter(None, (record.last_observed_at, newest)))
    pending = tracking.count_pending(RecordKey.of_record(record))
    record.pending_message_tokens = pending.tokens
    record.updated_at = times.now()


def _drop_overlapping_chunks(record: ObservationalRecord, source: SourceMessages) -> list[str]:
    """Drop the buffered chunks that contain some of the messages, and return their ids.

    Otherwise their text would repeat what is observed now.
    """
    if not record.buffered_chunks:
        return []
    params = [record.id, record.scope, source.ids]
    rows = sql.fetch_all(queries.DROP_OVERLAPPING_CHUNKS, params)
    dropped = list(dict.fromkeys(chunk_id for (chunk_id,) in rows))
    ObservationChunk.objects.filter(id__in=dropped).delete()
    return dropped


def _insert_chunk(
    record: ObservationalRecord,
    text: str,
    source: SourceMessages,
    hints: Hints,
    cycle_id: str,
    group_id: str,
    *,
    activated_at: datetime | None = None,
) -> ObservationChunk:
    """Insert the chunk and give it its messages. Raise `ClaimLost` if none of them is left."""
    row = sql.fetch_one(queries.NEXT_POSITION, [record.id])
    assert row is not None
    chunk_id = new_id()
    origins = ObservationChunk.Origin
    chunk = ObservationChunk(
        id=f"ombuf-{chunk_id}",
        record=record,
        position=row[0],
        origin=origins.OBSERVATION if activated_at else origins.BUFFERING,
        thread_id=source.thread_id,
        cycle_id=cycle_id or chunk_id,
        group_id=group_id,
        range=source.range,
        observations=text,
        token_count=tokens.get_token_counter().text(text),
        message_tokens=0,
        last_observed_at=times.now(),
        hints=hints.to_chunk(),
        activated_at=activated_at,
        created_at=times.now(),
    )
    chunk.save(force_insert=True)
    _assign_messages(chunk, record.scope, source)
    return chunk


def _assign_messages(chunk: ObservationChunk, scope: str, source: SourceMessages) -> None:
    lists = [source.ids, source.hashes, source.token_counts]
    may_take_over = chunk.activated_at is not None
    rows = sql.fetch_all(
        queries.ASSIGN_MESSAGES,
        [chunk.id, source.thread_id, chunk.record.resource_id, scope, *lists, may_take_over],
    )
    if not rows:
        raise ClaimLost("All messages were deleted, moved, edited or observed meanwhile.")
    chunk.message_ids = [message_id for message_id, _, _ in rows]
    chunk.message_tokens = sum(count for _, count, _ in rows) + tokens.TOKENS_PER_LIST
    chunk.last_observed_at = times.parse_time(rows[-1][2]) + CURSOR_STEP
    chunk.save(update_fields=["message_ids", "message_tokens", "last_observed_at"])


def _get_newest(chunk: ObservationChunk) -> datetime:
    """Return the time of the newest message of a chunk."""
    newest: datetime = chunk.last_observed_at - CURSOR_STEP
    return newest


def _read_hints(chunk: ObservationChunk) -> Hints:
    return Hints(
        current_task=chunk.hints.get("currentTask"),
        suggested_response=chunk.hints.get("suggestedContinuation"),
        thread_title=chunk.hints.get("threadTitle"),
    )


def _save_cursor(
    thread: LockedThread,
    metadata: dict[str, object],
    record: ObservationalRecord,
    chunk: ObservationChunk,
) -> None:
    """Store the metadata of a thread with the cursor at the newest message of the chunk."""
    newest = times.format_time(_get_newest(chunk))
    cursor = metadata.get("lastObservedMessageCursor")
    stored = cursor.get("createdAt") if isinstance(cursor, dict) else None
    if chunk.message_ids and (not isinstance(stored, str) or stored <= newest):
        metadata["lastObservedMessageCursor"] = {"createdAt": newest, "id": chunk.message_ids[-1]}
    if record.scope == Scope.RESOURCE:
        previous = metadata.get("lastObservedAt")
        later = isinstance(previous, str) and previous > newest
        metadata["lastObservedAt"] = previous if later else newest
    thread_metadata.save_metadata(thread, metadata)
