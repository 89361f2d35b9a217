"""What an import would find, without storing anything."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from django.db.models import Model

from mastra_memory.importers.records import (
    ImportedMessage,
    ImportedRecord,
    ImportedThread,
    ImportedWorkingMemory,
)
from mastra_memory.importers.validation import Row, Verdict
from mastra_memory.models import Message, ObservationalRecord, Thread, WorkingMemory

Key = tuple[str | None, str | None]


def look_up(rows: Sequence[Row]) -> Iterator[Verdict]:
    """`already there` or `stored` (it would be) for each row."""
    for kind, find in _FINDERS:
        chosen = [row for row in rows if isinstance(row.item, kind)]
        there = find(chosen) if chosen else set()
        for row in chosen:
            yield Verdict(row, "already there" if _key(row) in there else "stored")


def _key(row: Row) -> Key:
    item = row.item
    if isinstance(item, ImportedWorkingMemory):
        return item.thread_id, item.resource_id
    return item.id, None


def _with_ids(model: type[Model], rows: Iterable[Row]) -> set[Key]:
    there = model._default_manager.filter(pk__in=[_key(row)[0] for row in rows])
    return {(found, None) for found in there.values_list("pk", flat=True)}


def _working_memories(rows: Iterable[Row]) -> set[Key]:
    there = WorkingMemory.objects.filter(resource_id__in={_key(row)[1] for row in rows})
    return set(there.values_list("thread_id", "resource_id"))


_FINDERS = (
    (ImportedThread, partial(_with_ids, Thread)),
    (ImportedMessage, partial(_with_ids, Message)),
    (ImportedRecord, partial(_with_ids, ObservationalRecord)),
    (ImportedWorkingMemory, _working_memories),
)
