"""Copy a thread, and find what was copied from what."""

import copy
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from mastra_memory import conf, threads, working_memory
from mastra_memory.content import limits
from mastra_memory.db import json_text, routing, sql, times
from mastra_memory.db.identifiers import check_id
from mastra_memory.exceptions import Conflict, ThreadNotFound
from mastra_memory.models import Scope, Thread
from mastra_memory.models.fields import new_id
from mastra_memory.observational import generations
from mastra_memory.options import WorkingMemoryOptions
from mastra_memory.types import CloneResult, MessageSelection, StoredMessage, StoredThread

MAX_BUFFERED_MESSAGES = 500
"""Beyond so many messages the copies are read in batches."""

_NOT_COPIED = ("clone", "workingMemory", "memoryTokenLimiter")


def clone_thread(
    source_id: str,
    *,
    clone_id: str | None = None,
    resource_id: str | None = None,
    title: str = "",
    metadata: Mapping[str, Any] | None = None,
    selection: MessageSelection | None = None,
    memory: WorkingMemoryOptions | None = None,
    with_messages: bool = True,
    shape: Callable[[StoredMessage], Any] | None = None,
) -> CloneResult:
    """Copy the thread with its messages, working memory and observations, in one transaction.

    Messages get new ids and keep content, order and times. Their content passes through Python
    only when `with_messages` asks for it; `shape` is what the result holds in place of each, made
    as it is read, so that nothing is held twice. Saves into the source wait meanwhile.
    Raises `ThreadNotFound` for the source, and `Conflict` when `clone_id` is taken.
    """
    clone_id = check_id(clone_id, "newThreadId") if clone_id else new_id()
    with routing.atomic():
        source = _locked_source(source_id)
        owner = check_id(resource_id, "resourceId") if resource_id else source.resource_id
        _insert_thread(source, clone_id, owner, title)
        id_map, messages = {}, []
        for old, new, *rest in _copy_messages(source.id, clone_id, owner, selection, with_messages):
            id_map[old] = new
            if with_messages:
                message = StoredMessage(new, clone_id, owner, *rest)
                messages.append(shape(message) if shape else message)
        stored = _describe(source, clone_id, metadata, id_map)
        _copy_working_memory(source, clone_id, owner, memory)
        generations.clone_head(
            source_id=source.id,
            source_resource_id=source.resource_id,
            clone_id=clone_id,
            clone_resource_id=owner,
            message_id_map=id_map,
        )
    if memory is not None and memory.enabled and memory.scope == Scope.THREAD:
        stored = threads.get_thread(clone_id)
    return CloneResult(stored, id_map, messages)


def _locked_source(source_id: str) -> StoredThread:
    """The source, held so that no save gets between the statements of the copy."""
    found = sql.fetch_one(
        f"""SELECT {threads.THREAD_COLUMNS} FROM mastra_memory_thread t
        WHERE t.id = %s FOR SHARE""",
        [json_text.clean_text(source_id)],
    )
    if found is None:
        raise ThreadNotFound(f"Source thread with id {source_id} not found")
    return StoredThread(*found)


def _insert_thread(source: StoredThread, clone_id: str, resource_id: str, title: str) -> None:
    title = limits.check_title(title) or (f"Clone of {source.title}" if source.title else "")
    made = sql.execute(
        """INSERT INTO mastra_memory_thread (id, resource_id, title, title_source, clone_source_id)
        VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING""",
        [clone_id, resource_id, title, Thread.TitleSource.MANUAL if title else "", source.id],
    )
    if not made:
        raise Conflict(f"Thread with id {clone_id} already exists")


def _copy_messages(
    source_id: str,
    clone_id: str,
    resource_id: str,
    selection: MessageSelection | None,
    with_messages: bool,
) -> Iterator[sql.SqlRow]:
    """Old id, new id, and with the messages what else a `StoredMessage` needs, in order.

    Two passes over the source in the order of its index: neither sorts nor keeps what it reads.
    Sequences are the source's, which tell the same order as the clone's own.
    """
    chosen = _selected(source_id, selection or MessageSelection())
    new_id, seed = _new_id_of("m.id"), [clone_id, _moment_prefix()]
    count = sql.execute(
        f"""INSERT INTO mastra_memory_message (id, thread_id, resource_id, role, type, signal,
            content, text, search, created_at, edited_at)
        SELECT {new_id}, %s, %s, m.role, m.type, m.signal, m.content, m.text, m.search,
            m.created_at, m.edited_at
        FROM {chosen} ORDER BY m.created_at, m.sequence""",
        [*seed, clone_id, resource_id, *chosen.params],
    )
    _copy_vectors(source_id, seed)
    created = sql.format_time("m.created_at")
    bodies = f", m.role, m.type, m.content::text, {created}, m.sequence, m.signal"
    read = f"""SELECT m.id, {new_id}{bodies if with_messages else ""}
        FROM {chosen} ORDER BY m.created_at, m.sequence"""
    if count <= MAX_BUFFERED_MESSAGES:
        yield from sql.fetch_all(read, [*seed, *chosen.params])
        return
    with sql.stream(read, [*seed, *chosen.params]) as rows:
        yield from rows


def _copy_vectors(source_id: str, seed: Sequence[str]) -> None:
    """Give the copies the vectors of their originals, and ask for those that are still missing."""
    sql.execute(
        f"""WITH asked AS (
            INSERT INTO mastra_memory_embeddingrequest
                (message_id, thread_id, resource_id, model)
            SELECT c.id, c.thread_id, c.resource_id, r.model
            FROM mastra_memory_embeddingrequest r
            JOIN mastra_memory_message c ON c.id = {_new_id_of("r.message_id")}
            WHERE r.thread_id = %s)
        INSERT INTO mastra_memory_messageembedding (message_id, thread_id, resource_id, model,
            dimensions, passage, text_hash, embedding)
        SELECT c.id, c.thread_id, c.resource_id, e.model, e.dimensions, e.passage, e.text_hash,
            e.embedding
        FROM mastra_memory_messageembedding e
        JOIN mastra_memory_message c ON c.id = {_new_id_of("e.message_id")}
        WHERE e.thread_id = %s""",
        [*seed, source_id, *seed, source_id],
    )


def _new_id_of(column: str) -> str:
    """SQL of a copy's id: a UUID of version 8 (RFC 9562), made of the moment and of both old ids.

    Ids of one clone lie side by side in the index, and can be told again without being kept.
    """
    hashed = f"md5(%s || '/' || {column})::uuid::text"
    return f"overlay(overlay({hashed} PLACING %s FROM 1 FOR 15) PLACING '8' FROM 20 FOR 1)"


def _moment_prefix() -> str:
    """The first 15 characters of such an id: milliseconds in hexadecimal, and the version."""
    moment = f"{time.time_ns() // 1_000_000:012x}"
    return f"{moment[:8]}-{moment[8:]}-8"


class _Chosen(sql.Where):
    """The chosen messages of a source, as the `m` of a FROM clause."""

    limit: int | None = None

    def __str__(self) -> str:
        where = super().__str__()
        if self.limit is None:
            return f"mastra_memory_message m WHERE {where}"
        return f"""(SELECT * FROM mastra_memory_message m WHERE {where}
            ORDER BY m.created_at DESC, m.sequence DESC LIMIT {self.limit}) m"""


def _selected(source_id: str, selection: MessageSelection) -> _Chosen:
    chosen = _Chosen()
    chosen.add("m.thread_id = %s", source_id)
    if selection.message_ids:
        limit = conf.app_settings().MAX_IDS
        limits.check_count(selection.message_ids, limit, "messageIds")
        ids = [json_text.clean_text(known) for known in selection.message_ids]
        chosen.add("m.id = ANY(%s)", ids)
    if selection.start is not None:
        chosen.add("m.created_at >= %s", selection.start)
    if selection.end is not None:
        chosen.add("m.created_at <= %s", selection.end)
    if selection.limit and selection.limit > 0:
        chosen.limit = min(int(selection.limit), 2**53)
    return chosen


def _describe(
    source: StoredThread,
    clone_id: str,
    metadata: Mapping[str, Any] | None,
    id_map: Mapping[str, str],
) -> StoredThread:
    """Write the clone's metadata: the source's, the caller's over it, and where it comes from."""
    inherited = {k: v for k, v in (source.metadata or {}).items() if k not in _NOT_COPIED}
    origin = {"sourceThreadId": source.id, "clonedAt": times.format_time(times.now())}
    if id_map:
        origin["lastMessageId"] = next(reversed(list(id_map)))
    whole = {**_with_mapped_cursor(inherited, id_map), **(metadata or {}), "clone": origin}
    found = sql.fetch_one(
        f"""UPDATE mastra_memory_thread t SET metadata = %s::jsonb WHERE t.id = %s
        RETURNING {threads.THREAD_COLUMNS}""",
        [json_text.dumps(whole), clone_id],
    )
    assert found is not None
    return StoredThread(*found)


def _with_mapped_cursor(metadata: dict[str, Any], id_map: Mapping[str, str]) -> dict[str, Any]:
    """The metadata with observational memory's cursor naming the clone's message, or without it."""
    mastra = metadata.get("mastra")
    state = mastra.get("om") if isinstance(mastra, dict) else None
    cursor = state.get("lastObservedMessageCursor") if isinstance(state, dict) else None
    if not isinstance(cursor, dict):
        return metadata
    mapped = copy.deepcopy(metadata)
    if cursor.get("id") in id_map:
        mapped["mastra"]["om"]["lastObservedMessageCursor"]["id"] = id_map[cursor["id"]]
    else:
        del mapped["mastra"]["om"]["lastObservedMessageCursor"]
    return mapped


def _copy_working_memory(
    source: StoredThread, clone_id: str, resource_id: str, memory: WorkingMemoryOptions | None
) -> None:
    """Thread scope: always. Resource scope: over the target's, which stays as a revision."""
    if memory is None or not memory.enabled:
        return
    if memory.scope == Scope.THREAD:
        content = working_memory.find_for_thread(source.id)
        if content:
            working_memory.save_for_thread(clone_id, resource_id, content, source="clone")
    elif resource_id != source.resource_id:
        content = working_memory.find_for_resource(source.resource_id)
        if content:
            working_memory.save_for_resource(resource_id, content, source="clone")


def get_clone_metadata(thread: StoredThread | None) -> dict[str, Any] | None:
    """What the metadata says about the thread's origin; None when it is no clone."""
    origin = ((thread.metadata if thread else None) or {}).get("clone")
    named = origin.get("sourceThreadId") if isinstance(origin, dict) else None
    return origin if isinstance(named, str) else None


def find_source(thread_id: str) -> StoredThread | None:
    """The thread that this one was copied from, None when there is none any more."""
    origin = get_clone_metadata(threads.find_thread(thread_id))
    return threads.find_thread(origin["sourceThreadId"]) if origin else None


def list_clones(source_id: str, *, resource_id: str | None = None) -> Sequence[StoredThread]:
    """Direct clones within one resource, newest first; by default within the source's."""
    if resource_id is None:
        source = threads.find_thread(source_id)
        if source is None:
            return []
        resource_id = source.resource_id
    clones = Thread.objects.clones_of(json_text.clean_text(source_id))
    found = threads.list_threads(resource_id=resource_id, within=clones, per_page=False)
    return found.threads


def list_clone_history(thread_id: str) -> list[StoredThread]:
    """The thread's ancestors, oldest first, and itself; cut where a source is gone."""
    line: list[StoredThread] = []
    seen: set[str] = set()
    thread = threads.find_thread(thread_id)
    while thread is not None and thread.id not in seen:
        seen.add(thread.id)
        line.append(thread)
        origin = get_clone_metadata(thread)
        thread = threads.find_thread(origin["sourceThreadId"]) if origin else None
    return line[::-1]
