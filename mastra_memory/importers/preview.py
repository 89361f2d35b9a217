"""Find out what an import would do, without storing anything."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from django.db.models import Model

from mastra_memory.db import sql
from mastra_memory.importers.records import (
    ImportedMessage,
    ImportedObservationalRecord,
    ImportedThread,
    ImportedWorkingMemory,
)
from mastra_memory.importers.validation import ImportRow, RowResult
from mastra_memory.models import Message, ObservationalRecord, Thread, WorkingMemory

RowKey = tuple[str | None, str | None]


def preview_rows(rows: Sequence[ImportRow]) -> list[RowResult]:
    """Return `already there` for each row that exists, and `stored` for the others."""
    sql.clear_query_log()
    return list(_iter_results(rows))


def _iter_results(rows: Sequence[ImportRow]) -> Iterator[RowResult]:
    for item_type, find in _FINDERS:
        candidates = [row for row in rows if isinstance(row.item, item_type)]
        existing = find(candidates) if candidates else set()
        for row in candidates:
            yield RowResult(row, "already there" if _get_key(row) in existing else "stored")


def _get_key(row: ImportRow) -> RowKey:
    item = row.item
    if isinstance(item, ImportedWorkingMemory):
        return item.thread_id, item.resource_id
    return item.id, None


def _find_ids(model: type[Model], rows: Iterable[ImportRow]) -> set[RowKey]:
    existing = model._default_manager.filter(pk__in=[_get_key(row)[0] for row in rows])
    return {(pk, None) for pk in existing.values_list("pk", flat=True)}


def _find_working_memories(rows: Iterable[ImportRow]) -> set[RowKey]:
    existing = WorkingMemory.objects.filter(resource_id__in={_get_key(row)[1] for row in rows})
    return set(existing.values_list("thread_id", "resource_id"))


_FINDERS = (
    (ImportedThread, partial(_find_ids, Thread)),
    (ImportedMessage, partial(_find_ids, Message)),
    (ImportedObservationalRecord, partial(_find_ids, ObservationalRecord)),
    (ImportedWorkingMemory, _find_working_memories),
)
