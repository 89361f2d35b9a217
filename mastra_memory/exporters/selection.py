"""Select what to export, and read it in batches so that memory use stays small."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any, NamedTuple

from mastra_memory.db import json_text, routing, sql
from mastra_memory.exporters import queries
from mastra_memory.models import Thread

THREADS_PER_BATCH = 100
"""Threads that are held in memory at a time. Their messages are read through a cursor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSelection:
    """Conditions that must all be met. Without conditions everything is exported."""

    resource_ids: Sequence[str] = ()
    thread_ids: Sequence[str] = ()
    since: datetime | None = None
    """Only messages at or after this time, and threads with such messages."""
    until: datetime | None = None
    """Only messages before this time, and threads with such messages."""

    @property
    def is_whole(self) -> bool:
        """Return True if all data of the selected resources is exported."""
        return not self.thread_ids and self.since is None and self.until is None

    def resource_condition(self, column: str) -> sql.Where:
        """Return the condition on a column with resource ids."""
        where = sql.Where()
        if self.resource_ids:
            where.add(f"{column} = ANY(%s)", list(self.resource_ids))
        return where

    def message_condition(self) -> sql.Where:
        """Return the condition on messages; their alias is `m`."""
        where = sql.Where()
        if self.since is not None:
            where.add("m.created_at >= %s", self.since)
        if self.until is not None:
            where.add("m.created_at < %s", self.until)
        return where

    def thread_condition(self) -> sql.Where:
        """Return the condition on threads; their alias is `t`."""
        where = self.resource_condition("t.resource_id")
        if self.thread_ids:
            where.add("t.id = ANY(%s)", list(self.thread_ids))
        if self.since is not None or self.until is not None:
            queries.add_message_condition(where, self.message_condition())
        return where


class ExportedThread(NamedTuple):
    """A stored thread, without its working memory."""

    id: str
    resource_id: str
    title: str
    title_source: str
    metadata_json: str | None
    clone_source_id: str | None
    created_at: datetime
    updated_at: datetime


class ExportedMessage(NamedTuple):
    """A stored message."""

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
        """The content, parsed again at each access."""
        return json_text.loads(self.content_json)


ExportedConversation = tuple[ExportedThread, Iterator[ExportedMessage]]
"""A thread and its messages. Read the messages before you take the next thread."""


@contextmanager
def consistent_snapshot() -> Iterator[None]:
    """Make all queries inside see the database as it was at the first of them.

    Inside another transaction this has no effect, because its isolation level is already set.
    """
    is_outermost = not routing.get_connection().in_atomic_block
    with routing.atomic():
        if is_outermost:
            sql.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def count_threads(selection: ExportSelection) -> int:
    """Return how many threads are selected."""
    return queries.count_threads(selection.thread_condition())


def list_missing_threads(selection: ExportSelection) -> list[str]:
    """Return the selected thread ids that do not exist."""
    existing = set(Thread.objects.filter(pk__in=selection.thread_ids).values_list("pk", flat=True))
    return [thread_id for thread_id in selection.thread_ids if thread_id not in existing]


def iterate_conversations(selection: ExportSelection) -> Iterator[ExportedConversation]:
    """Yield the selected threads, oldest first, each with its selected messages, oldest first."""
    for threads in iterate_thread_batches(selection):
        yield from iterate_with_messages(selection, threads)


def iterate_thread_batches(selection: ExportSelection) -> Iterator[list[ExportedThread]]:
    """Yield lists of the selected threads, oldest first."""
    rows = queries.stream_threads(selection.thread_condition(), batch=THREADS_PER_BATCH)
    with rows as threads:
        batch: list[ExportedThread] = []
        for row in threads:
            batch.append(ExportedThread(*row))
            if len(batch) == THREADS_PER_BATCH:
                yield batch
                batch = []
                sql.clear_query_log()
        if batch:
            yield batch


def iterate_with_messages(
    selection: ExportSelection, threads: Sequence[ExportedThread]
) -> Iterator[ExportedConversation]:
    """Yield the threads in their order, each with its selected messages, oldest first."""
    thread_ids = [thread.id for thread in threads]
    with queries.stream_messages(thread_ids, selection.message_condition()) as rows:
        groups = groupby(rows, key=lambda row: row[0])
        position, messages = next(groups, (0, iter(())))
        for number, thread in enumerate(threads, start=1):
            if number != position:  # this thread has no messages
                yield thread, iter(())
                continue
            yield thread, (ExportedMessage(*row[1:]) for row in messages)
            position, messages = next(groups, (0, iter(())))
