"""What is to be exported, read in a stream: memory stays small however much it is."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from mastra_memory.db import json_text, routing, sql

THREADS_PER_BATCH = 100
"""So many threads are read at a time; their messages come through a cursor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSelection:
    """Conditions that must all hold; none means everything."""

    resource_ids: Sequence[str] = ()
    thread_ids: Sequence[str] = ()
    since: datetime | None = None
    """Messages at or after it, and threads that have such messages."""
    until: datetime | None = None
    """Messages before it."""

    @property
    def is_whole(self) -> bool:
        """Whether resources are selected with all they have."""
        return not self.thread_ids and self.since is None and self.until is None

    def resource_condition(self, column: str) -> sql.Where:
        """The condition on a resource."""
        where = sql.Where()
        if self.resource_ids:
            where.add(f"{column} = ANY(%s)", list(self.resource_ids))
        return where

    def message_condition(self) -> sql.Where:
        """The condition on messages `m`."""
        where = sql.Where()
        if self.since is not None:
            where.add("m.created_at >= %s", self.since)
        if self.until is not None:
            where.add("m.created_at < %s", self.until)
        return where

    def thread_condition(self) -> sql.Where:
        """The condition on threads `t`."""
        where = self.resource_condition("t.resource_id")
        if self.thread_ids:
            where.add("t.id = ANY(%s)", list(self.thread_ids))
        if self.since is not None or self.until is not None:
            messages = self.message_condition()
            where.add(
                f"""EXISTS (SELECT FROM mastra_memory_message m
                WHERE m.thread_id = t.id AND {messages})""",
                *messages.params,
            )
        return where


@dataclass(frozen=True, slots=True)
class ExportedThread:
    """A thread as it is stored, without its working memory."""

    id: str
    resource_id: str
    title: str
    title_source: str
    metadata_json: str | None
    clone_source_id: str | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class ExportedMessage:
    """A message as it is stored."""

    id: str
    thread_id: str
    resource_id: str
    role: str
    type: str
    content_json: str
    text: str
    created_at: datetime
    edited_at: datetime | None

    @property
    def content(self) -> Any:
        """The content, parsed anew at each access."""
        return json_text.loads(self.content_json)


ExportedConversation = tuple[ExportedThread, Iterator[ExportedMessage]]
"""A thread with its messages, which must be read before the next thread is asked for."""


@contextmanager
def consistent_snapshot() -> Iterator[None]:
    """Everything read inside is as it was when the reading began."""
    is_outermost = not routing.get_connection().in_atomic_block
    with routing.atomic():
        if is_outermost:
            sql.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def count_threads(selection: ExportSelection) -> int:
    """How many threads there are to export."""
    where = selection.thread_condition()
    found = sql.fetch_one(
        f"SELECT count(*) FROM mastra_memory_thread t WHERE {where}", where.params
    )
    return found[0] if found else 0


def list_missing_threads(selection: ExportSelection) -> list[str]:
    """Threads that are named and not there."""
    there = sql.fetch_all(
        "SELECT id FROM mastra_memory_thread WHERE id = ANY(%s)", [list(selection.thread_ids)]
    )
    known = {thread_id for (thread_id,) in there}
    return [thread_id for thread_id in selection.thread_ids if thread_id not in known]


def iterate_conversations(selection: ExportSelection) -> Iterator[ExportedConversation]:
    """The threads, oldest first, each with its messages in order."""
    for threads in iterate_thread_batches(selection):
        yield from iterate_with_messages(selection, threads)


def iterate_thread_batches(selection: ExportSelection) -> Iterator[list[ExportedThread]]:
    """The threads, oldest first, some at a time."""
    where = selection.thread_condition()
    with sql.stream(
        f"""SELECT t.id, t.resource_id, t.title, t.title_source, t.metadata::text,
            t.clone_source_id, t.created_at, t.updated_at
        FROM mastra_memory_thread t WHERE {where} ORDER BY t.created_at, t.id""",
        where.params,
        batch=THREADS_PER_BATCH,
    ) as rows:
        batch: list[ExportedThread] = []
        for cells in rows:
            batch.append(ExportedThread(*cells))
            if len(batch) == THREADS_PER_BATCH:
                yield batch
                batch = []
                sql.clear_query_log()
        if batch:
            yield batch


def iterate_with_messages(
    selection: ExportSelection, threads: Sequence[ExportedThread]
) -> Iterator[ExportedConversation]:
    """These threads in their order, each with its messages."""
    where = selection.message_condition()
    with sql.stream(
        f"""SELECT i.place, m.id, m.thread_id, m.resource_id, m.role, m.type, m.content::text,
            m.text, m.created_at, m.edited_at
        FROM unnest(%s::text[]) WITH ORDINALITY AS i(id, place)
        JOIN mastra_memory_message m ON m.thread_id = i.id
        WHERE {where} ORDER BY i.place, m.created_at, m.sequence""",
        [[thread.id for thread in threads], *where.params],
    ) as rows:
        groups = groupby(rows, key=lambda cells: cells[0])
        place, messages = next(groups, (0, iter(())))
        for number, thread in enumerate(threads, start=1):
            if number != place:
                yield thread, iter(())
                continue
            yield thread, (ExportedMessage(*cells[1:]) for cells in messages)
            place, messages = next(groups, (0, iter(())))
