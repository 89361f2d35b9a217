"""Copy threads, and find the sources and clones of a thread."""

import copy
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from mastra_memory import conf, threads, working_memory
from mastra_memory.content import limits
from mastra_memory.db import json_text, routing, sql, times
from mastra_memory.db.identifiers import check_id
from mastra_memory.exceptions import Conflict, ThreadNotFound
from mastra_memory.messages import tool_pairs
from mastra_memory.models import Thread
from mastra_memory.models.fields import new_id
from mastra_memory.observational import cloning as observation_cloning
from mastra_memory.observational.cloning import ClonedThread
from mastra_memory.options import WorkingMemoryOptions
from mastra_memory.search import tsvector
from mastra_memory.threads import queries
from mastra_memory.types import CloneResult, MessageSelection, StoredMessage, StoredThread

MAX_BUFFERED_MESSAGES = 500
"""Copies of more messages than this are read in batches."""

_KEYS_NOT_COPIED = ("clone", "workingMemory", "memoryTokenLimiter")


def clone_thread(
    source_id: str,
    *,
    clone_id: str | None = None,
    resource_id: str | None = None,
    title: str = "",
    metadata: Mapping[str, Any] | None = None,
    selection: MessageSelection | None = None,
    memory_options: WorkingMemoryOptions | None = None,
    with_messages: bool = True,
    convert: Callable[[StoredMessage], Any] | None = None,
) -> CloneResult[Any]:
    """Copy a thread with its messages, working memory and observations, in one transaction.

    Messages get new ids and keep content, order and times. While a thread is copied, saves to it
    wait.

    Args:
        source_id: The thread to copy.
        clone_id: The id of the copy; None means a new UUID.
        resource_id: The owner of the copy; None means that of the source.
        title: Its title; empty means "Clone of ..." with the title of the source.
        metadata: Overrides keys of the source's metadata.
        selection: Which messages are copied; None means all.
        memory_options: The options of working memory; None copies no working memory.
        with_messages: Also read the copied messages and return them.
        convert: Converts each copy as it is read, so that large clones are not in memory twice.

    Raises:
        ThreadNotFound: The source does not exist.
        Conflict: `clone_id` is taken.
    """
    clone_id = check_id(clone_id, "newThreadId") if clone_id else new_id()
    with routing.atomic():
        source = _lock_source(source_id)
        owner = check_id(resource_id, "resourceId") if resource_id else source.resource_id
        _insert_thread(source, clone_id, owner, title)
        id_map, messages = {}, []
        for old, new, *rest in _copy_messages(source.id, clone_id, owner, selection, with_messages):
            id_map[old] = new
            if with_messages:
                message = StoredMessage(new, clone_id, owner, *rest)
                messages.append(convert(message) if convert else message)
        stored = _write_metadata(source, clone_id, metadata, id_map)
        _copy_working_memory(source, clone_id, owner, memory_options)
        observation_cloning.clone_head(
            ClonedThread(
                source_id=source.id,
                source_resource_id=source.resource_id,
                clone_id=clone_id,
                clone_resource_id=owner,
                message_id_map=id_map,
            )
        )
        if memory_options and memory_options.enabled and memory_options.scope == "thread":
            stored = threads.get_thread(clone_id)
    return CloneResult(stored, id_map, messages)


def _lock_source(source_id: str) -> StoredThread:
    """Return the source, locked so that no message is saved while it is copied."""
    row = sql.fetch_one(
        f"""SELECT {threads.THREAD_COLUMNS} FROM mastra_memory_thread t
        WHERE t.id = %s FOR SHARE""",
        [json_text.clean_text(source_id)],
    )
    if row is None:
        raise ThreadNotFound(f"Source thread with id {source_id} not found")
    return StoredThread(*row)


def _insert_thread(source: StoredThread, clone_id: str, resource_id: str, title: str) -> None:
    title = limits.check_title(title) or (f"Clone of {source.title}" if source.title else "")
    inserted = sql.execute(
        queries.INSERT_CLONE,
        [
            clone_id,
            resource_id,
            title,
            *tsvector.split_title(title),
            Thread.TitleSource.MANUAL if title else "",
            source.id,
        ],
    )
    if not inserted:
        raise Conflict(f"Thread with id {clone_id} already exists")


def _copy_messages(
    source_id: str,
    clone_id: str,
    resource_id: str,
    selection: MessageSelection | None,
    with_messages: bool,
) -> Iterator[sql.SqlRow]:
    """Copy messages and vectors; yield old id, new id and the other columns, in order.

    One statement copies the messages, and another reads the source again for the result. Both read
    it in the order of its index, so the database need not sort it or keep it in memory. The yielded
    sequence numbers are those of the source: they give the same order as those of the copies.
    """
    source = _select_messages(source_id, selection or MessageSelection())
    id_params = [clone_id, _build_id_prefix()]  # see `queries.build_copy_id`
    count = sql.execute(
        queries.copy_messages(source), [*id_params, clone_id, resource_id, *source.params]
    )
    sql.execute(queries.COPY_VECTORS, [*id_params, source_id, *id_params, source_id])
    read = queries.read_copies(source, with_messages=with_messages)
    if count <= MAX_BUFFERED_MESSAGES:
        yield from sql.fetch_all(read, [*id_params, *source.params])
        return
    with sql.stream(read, [*id_params, *source.params]) as rows:
        yield from rows


def _build_id_prefix() -> str:
    """Return the first 15 characters of the copies' ids: the milliseconds and the UUID version."""
    moment = f"{time.time_ns() // 1_000_000:012x}"
    return f"{moment[:8]}-{moment[8:]}-8"


class _SelectedMessages(sql.Where):
    """The selected messages of a source: the text after FROM, with the alias `m`."""

    limit: int | None = None
    added_ids: Sequence[str] = ()
    """Messages that are selected as well, whatever the conditions and the limit are."""

    def __str__(self) -> str:
        where = super().__str__()
        if self.limit is None and not self.added_ids:
            return f"mastra_memory_message m WHERE {where}"
        newest = f"SELECT * FROM mastra_memory_message m WHERE {where}"
        if self.limit is not None:
            newest += f" ORDER BY m.created_at DESC, m.sequence DESC LIMIT {self.limit}"
        if not self.added_ids:
            return f"({newest}) m"
        return f"""(({newest}) UNION ALL
            SELECT * FROM mastra_memory_message m WHERE m.id = ANY(%s)) m"""

    def add_missing_pairs(self) -> None:
        """Also select the other half of each tool call or result in the selection."""
        missing_ids = tool_pairs.find_missing_ids(f"(SELECT m.* FROM {self}) m", self.params)
        if missing_ids:
            self.added_ids = missing_ids
            self.params.append(missing_ids)


def _select_messages(source_id: str, selection: MessageSelection) -> _SelectedMessages:
    selected = _SelectedMessages()
    selected.add("m.thread_id = %s", source_id)
    if selection.message_ids:
        limit = conf.app_settings().MAX_IDS
        limits.check_count(selection.message_ids, limit, "messageIds")
        ids = [json_text.clean_text(message_id) for message_id in selection.message_ids]
        selected.add("m.id = ANY(%s)", ids)
    if selection.start is not None:
        selected.add("m.created_at >= %s", selection.start)
    if selection.end is not None:
        selected.add("m.created_at <= %s", selection.end)
    if selection.limit and selection.limit > 0:
        selected.limit = min(int(selection.limit), 2**53)
    if len(selected.conditions) > 1 or selected.limit is not None:
        selected.add_missing_pairs()
    return selected


def _write_metadata(
    source: StoredThread,
    clone_id: str,
    metadata: Mapping[str, Any] | None,
    id_map: Mapping[str, str],
) -> StoredThread:
    """Write the metadata of the clone: the source's, the caller's, and the origin."""
    inherited = {k: v for k, v in (source.metadata or {}).items() if k not in _KEYS_NOT_COPIED}
    origin = {"sourceThreadId": source.id, "clonedAt": times.format_time(times.now())}
    if id_map:
        origin["lastMessageId"] = next(reversed(list(id_map)))
    complete = {**_map_cursor(inherited, id_map), **(metadata or {}), "clone": origin}
    row = sql.fetch_one(
        f"""UPDATE mastra_memory_thread t SET metadata = %s::jsonb WHERE t.id = %s
        RETURNING {threads.THREAD_COLUMNS}""",
        [json_text.dumps(complete), clone_id],
    )
    assert row is not None
    return StoredThread(*row)


def _map_cursor(metadata: dict[str, Any], id_map: Mapping[str, str]) -> dict[str, Any]:
    """Return the metadata with the cursor of observational memory pointing to the copied message.

    The cursor is removed if its message was not copied.
    """
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
    source: StoredThread, clone_id: str, resource_id: str, options: WorkingMemoryOptions | None
) -> None:
    """Copy the working memory of the source to the clone.

    In the scope of a resource, it is copied only if the clone belongs to another resource.
    """
    if options is None or not options.enabled:
        return
    if options.scope == "thread":
        content = working_memory.find_for_thread(source.id)
        if content:
            working_memory.save_for_thread(clone_id, resource_id, content, source="clone")
    elif resource_id != source.resource_id:
        content = working_memory.find_for_resource(source.resource_id)
        if content:
            working_memory.save_for_resource(resource_id, content, source="clone")


def get_clone_metadata(thread: StoredThread | None) -> dict[str, Any] | None:
    """Return the metadata about the origin of a clone, or None for another thread."""
    origin = ((thread.metadata if thread else None) or {}).get("clone")
    source_id = origin.get("sourceThreadId") if isinstance(origin, dict) else None
    return origin if isinstance(source_id, str) else None


def find_source(thread_id: str) -> StoredThread | None:
    """Return the thread from which this one was copied, or None if it does not exist."""
    origin = get_clone_metadata(threads.find_thread(thread_id))
    return threads.find_thread(origin["sourceThreadId"]) if origin else None


def list_clones(source_id: str, *, resource_id: str | None = None) -> Sequence[StoredThread]:
    """Return the direct clones in a resource, by default that of the source, newest first."""
    if resource_id is None:
        source = threads.find_thread(source_id)
        if source is None:
            return []
        resource_id = source.resource_id
    clones = Thread.objects.clones_of(json_text.clean_text(source_id))
    page = threads.list_threads(resource_id=resource_id, within=clones, per_page=False)
    return page.threads


def list_clone_history(thread_id: str) -> list[StoredThread]:
    """Return the sources of a clone, oldest first, and the clone itself.

    If a source was deleted, the list starts with the thread that was copied from it.
    """
    history: list[StoredThread] = []
    seen: set[str] = set()
    thread = threads.find_thread(thread_id)
    while thread is not None and thread.id not in seen:
        seen.add(thread.id)
        history.append(thread)
        origin = get_clone_metadata(thread)
        thread = threads.find_thread(origin["sourceThreadId"]) if origin else None
    return history[::-1]
