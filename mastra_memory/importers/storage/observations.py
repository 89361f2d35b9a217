"""Store observational records with their chunks."""

from collections.abc import Sequence

from mastra_memory.importers.records import derive_id
from mastra_memory.importers.storage.threads import REASON_NO_THREAD, ThreadResources
from mastra_memory.importers.validation import ImportRow, RowResult
from mastra_memory.models import ObservationalRecord, ObservationChunk

REASON_OTHER_SUBJECT = "its id is the id of another resource's or thread's record"
REASON_GENERATION_TAKEN = "another record is this generation already"

GenerationKey = tuple[str | None, str, int]


def store_observational_records(
    rows: Sequence[ImportRow], owners: ThreadResources, *, update: bool
) -> list[RowResult]:
    """Insert the records that are missing, with their chunks.

    One that is there stays; with `update` it is replaced where the source's is newer.
    """
    records = [_get_record(row) for row in rows]
    known = ObservationalRecord.objects.in_bulk([record.id for record in records])
    generations = _find_generations(records)
    results, chosen = [], []
    for row, record in zip(rows, records, strict=True):
        old = known.get(record.id)
        if record.thread_id is not None and owners.get(record.thread_id) != record.resource_id:
            results.append(RowResult(row, "refused", REASON_NO_THREAD))
        elif old and (old.resource_id, old.thread_id) != (record.resource_id, record.thread_id):
            results.append(RowResult(row, "refused", REASON_OTHER_SUBJECT))
        elif old and not (update and old.updated_at < record.updated_at):
            results.append(RowResult(row, "already there"))
        elif generations.setdefault(_generation_key(record), record.id) != record.id:
            results.append(RowResult(row, "refused", REASON_GENERATION_TAKEN))
        else:
            results.append(RowResult(row, "updated" if old else "stored"))
            known[record.id] = record
            chosen.append(row)
    _replace_records(chosen)
    return results


def _get_record(row: ImportRow) -> ObservationalRecord:
    assert row.record is not None
    return row.record


def _generation_key(record: ObservationalRecord) -> GenerationKey:
    return record.thread_id, record.resource_id, record.generation_count


def _find_generations(records: Sequence[ObservationalRecord]) -> dict[GenerationKey, str]:
    """Which record each generation of these resources is."""
    there = ObservationalRecord.objects.filter(resource_id__in={r.resource_id for r in records})
    return {_generation_key(record): record.id for record in there.only(*_GENERATION_FIELDS)}


_GENERATION_FIELDS = ("id", "thread_id", "resource_id", "generation_count")


def _replace_records(rows: Sequence[ImportRow]) -> None:
    records = [_get_record(row) for row in rows]
    ObservationalRecord.objects.filter(id__in=[record.id for record in records]).delete()
    ObservationalRecord.objects.bulk_create(records)
    chunks = [chunk for row in rows for chunk in row.chunks]
    there = ObservationChunk.objects.filter(id__in=[chunk.id for chunk in chunks])
    taken = set(there.values_list("id", flat=True))
    for chunk in chunks:
        if chunk.id in taken:  # a clone of its thread has the chunk under the same id
            chunk.id = f"ombuf-{derive_id(chunk.record_id, chunk.id)}"
        taken.add(chunk.id)
    ObservationChunk.objects.bulk_create(chunks)
