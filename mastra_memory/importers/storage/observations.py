"""Store the observational records of a batch, with their chunks."""

from collections.abc import Sequence
from itertools import pairwise

from mastra_memory.importers.records import ImportedObservationalRecord, derive_id
from mastra_memory.importers.storage.threads import REASON_NO_THREAD, ThreadResources
from mastra_memory.importers.validation import ImportRow, RowResult
from mastra_memory.models import ObservationalRecord, ObservationChunk
from mastra_memory.models.message import LastSequence
from mastra_memory.observational import generations, tracking

REASON_OTHER_OWNER = "a record of another thread or resource has the same id"
REASON_GENERATION_TAKEN = "another record has the same generation"

GenerationKey = tuple[str | None, str, int]
"""Thread id, resource id and generation count, which identify a generation."""

_GENERATION_FIELDS = ("id", "thread_id", "resource_id", "generation_count")
_LONG_FIELDS = ("active_observations", "buffered_reflection", "observed_message_ids", "metadata")


def store_observational_records(
    rows: Sequence[ImportRow], resources: ThreadResources, *, update: bool
) -> list[RowResult]:
    """Insert the records that do not exist, with their chunks.

    An existing record stays as it is. With `update` it is replaced if that of the source is newer.
    """
    records = [_get_record(row) for row in rows]
    existing = ObservationalRecord.objects.in_bulk([record.id for record in records])
    stored_generations = _find_generations(records)
    results, selected = [], []
    for row, record in zip(rows, records, strict=True):
        old = existing.get(record.id)
        if record.thread_id is not None and resources.get(record.thread_id) != record.resource_id:
            results.append(RowResult(row, "refused", REASON_NO_THREAD))
        elif old and (old.resource_id, old.thread_id) != (record.resource_id, record.thread_id):
            results.append(RowResult(row, "refused", REASON_OTHER_OWNER))
        elif old and not (update and old.updated_at < record.updated_at):
            results.append(RowResult(row, "already there"))
        elif stored_generations.setdefault(_generation_key(record), record.id) != record.id:
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
    superseded_ids = _link_generations(records)
    for record in records:
        record.imported_sequence = LastSequence()
    ObservationalRecord.objects.bulk_create(records)
    chunks = [chunk for row in rows for chunk in row.chunks]
    _store_chunks(chunks)
    tracking.drop_stranded_chunks(superseded_ids)
    tracking.track_chunks([chunk.id for chunk in chunks])
    for row in rows:
        if isinstance(row.item, ImportedObservationalRecord) and row.item.pending_message_ids:
            tracking.track_pending(_get_record(row).id, row.item.pending_message_ids)


def _link_generations(records: Sequence[ObservationalRecord]) -> list[str]:
    """Set the successors of new records, and of stored generations that they follow.

    Returns the ids of all generations that are superseded now.

    A stored record that is superseded now has no worker and no work anymore. A worker that has
    claimed it finds its claim lost.
    """
    resource_ids = {record.resource_id for record in records}
    stored = ObservationalRecord.objects.filter(resource_id__in=resource_ids).defer(*_LONG_FIELDS)
    lineages: dict[tuple[str | None, str], list[ObservationalRecord]] = {}
    for record in [*stored, *records]:
        lineages.setdefault((record.thread_id, record.resource_id), []).append(record)
    new_ids = {record.id for record in records}
    changed, superseded_ids = [], []
    for lineage in lineages.values():
        lineage.sort(key=lambda record: record.generation_count)
        for record, following in pairwise(lineage):
            superseded_ids.append(record.id)
            if record.superseded_by_id != following.id:
                record.superseded_by_id = following.id
                generations.clear_work(record)
                if record.id not in new_ids:
                    changed.append(record)
    ObservationalRecord.objects.bulk_update(changed, ["superseded_by", *generations.WORK_FIELDS])
    return superseded_ids


def _store_chunks(chunks: Sequence[ObservationChunk]) -> None:
    stored = ObservationChunk.objects.filter(id__in=[chunk.id for chunk in chunks])
    used_ids = set(stored.values_list("id", flat=True))
    used_cycles: set[tuple[str, str]] = set()
    for chunk in chunks:
        if chunk.id in used_ids:  # a clone of the thread has copied the chunk with its id
            chunk.id = f"ombuf-{derive_id(chunk.record_id, chunk.id)}"
        used_ids.add(chunk.id)
        if (chunk.record_id, chunk.cycle_id) in used_cycles:
            chunk.cycle_id = chunk.id
        used_cycles.add((chunk.record_id, chunk.cycle_id))
    ObservationChunk.objects.bulk_create(chunks)
