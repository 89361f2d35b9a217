"""Store the observational records of a batch, with their chunks."""

from collections.abc import Sequence

from mastra_memory.importers.records import derive_id
from mastra_memory.importers.storage.threads import REASON_NO_THREAD, ThreadResources
from mastra_memory.importers.validation import ImportRow, RowResult
from mastra_memory.models import ObservationalRecord, ObservationChunk

REASON_OTHER_OWNER = "a record of another thread or resource has the same id"
REASON_GENERATION_TAKEN = "another record has the same generation"

GenerationKey = tuple[str | None, str, int]
"""Thread id, resource id and generation count, which identify a generation."""

_GENERATION_FIELDS = ("id", "thread_id", "resource_id", "generation_count")


def store_observational_records(
    rows: Sequence[ImportRow], resources: ThreadResources, *, update: bool
) -> list[RowResult]:
    """Insert the records that do not exist, with their chunks.

    An existing record stays as it is. With `update` it is replaced if that of the source is newer.
    """
    records = [_get_record(row) for row in rows]
    existing = ObservationalRecord.objects.in_bulk([record.id for record in records])
    generations = _find_generations(records)
    results, selected = [], []
    for row, record in zip(rows, records, strict=True):
        old = existing.get(record.id)
        if record.thread_id is not None and resources.get(record.thread_id) != record.resource_id:
            results.append(RowResult(row, "refused", REASON_NO_THREAD))
        elif old and (old.resource_id, old.thread_id) != (record.resource_id, record.thread_id):
            results.append(RowResult(row, "refused", REASON_OTHER_OWNER))
        elif old and not (update and old.updated_at < record.updated_at):
            results.append(RowResult(row, "already there"))
        elif generations.setdefault(_generation_key(record), record.id) != record.id:
            results.append(RowResult(row, "refused", REASON_GENERATION_TAKEN))
        else:
            results.append(RowResult(row, "updated" if old else "stored"))
            existing[record.id] = record
            selected.append(row)
    _replace_records(selected)
    return results


def _get_record(row: ImportRow) -> ObservationalRecord:
    assert row.record is not None
    return row.record


def _generation_key(record: ObservationalRecord) -> GenerationKey:
    return record.thread_id, record.resource_id, record.generation_count


def _find_generations(records: Sequence[ObservationalRecord]) -> dict[GenerationKey, str]:
    """Return the record ids of all stored generations of these resources."""
    resource_ids = {record.resource_id for record in records}
    stored = ObservationalRecord.objects.filter(resource_id__in=resource_ids)
    return {_generation_key(record): record.id for record in stored.only(*_GENERATION_FIELDS)}


def _replace_records(rows: Sequence[ImportRow]) -> None:
    records = [_get_record(row) for row in rows]
    ObservationalRecord.objects.filter(id__in=[record.id for record in records]).delete()
    ObservationalRecord.objects.bulk_create(records)
    chunks = [chunk for row in rows for chunk in row.chunks]
    stored = ObservationChunk.objects.filter(id__in=[chunk.id for chunk in chunks])
    used_ids = set(stored.values_list("id", flat=True))
    for chunk in chunks:
        if chunk.id in used_ids:  # a clone of the thread has copied the chunk with its id
            chunk.id = f"ombuf-{derive_id(chunk.record_id, chunk.id)}"
        used_ids.add(chunk.id)
    ObservationChunk.objects.bulk_create(chunks)
