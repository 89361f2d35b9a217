"""What an import would find, without storing anything."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from django.db.models import Model

from mastra_memory.importers.records import (
    ImportedMessage,
    ImportedObservationalRecord,
    ImportedThread,
    ImportedWorkingMemory,
)
from mastra_memory.importers.validation import ImportRow, RowResult
from mastra_memory.models import Message, ObservationalRecord, Thread, WorkingMemory

RowKey = tuple[str | None, str | None]


def preview_rows(rows: Sequence[ImportRow]) -> Iterator[RowResult]:
    """`already there` or `stored` (it would be) for each row."""
    for kind, find in _FINDERS:
        chosen = [row for row in rows if isinstance(row.item, kind)]
        there = find(chosen) if chosen else set()
        for row in chosen:
            yield RowResult(row, "already there" if _get_key(row) in there else "stored")


def _get_key(row: ImportRow) -> RowKey:
    item = row.item
    if isinstance(item, ImportedWorkingMemory):
        return item.thread_id, item.resource_id
    return item.id, None


def _find_ids(model: type[Model], rows: Iterable[ImportRow]) -> set[RowKey]:
    there = model._default_manager.filter(pk__in=[_get_key(row)[0] for row in rows])
    return {(found, None) for found in there.values_list("pk", flat=True)}


def _find_working_memories(rows: Iterable[ImportRow]) -> set[RowKey]:
    there = WorkingMemory.objects.filter(resource_id__in={_get_key(row)[1] for row in rows})
    return set(there.values_list("thread_id", "resource_id"))


_FINDERS = (
    (ImportedThread, partial(_find_ids, Thread)),
    (ImportedMessage, partial(_find_ids, Message)),
    (ImportedObservationalRecord, partial(_find_ids, ObservationalRecord)),
    (ImportedWorkingMemory, _find_working_memories),
)
