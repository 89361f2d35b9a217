"""Store observational records with their chunks."""

from collections.abc import Sequence

from mastra_memory.importers.records import derived_id
from mastra_memory.importers.storing_threads import NO_THREAD, Owners
from mastra_memory.importers.validation import Row, Verdict
from mastra_memory.models import ObservationalRecord, ObservationChunk

ELSEWHERE = "its id is the id of another resource's or thread's record"
TAKEN = "another record is this generation already"

Generation = tuple[str | None, str, int]


def store_records(rows: Sequence[Row], owners: Owners, *, update: bool) -> list[Verdict]:
    """Insert the records that are missing, with their chunks.

    One that is there stays; with `update` it is replaced where the source's is newer.
    """
    records = [_record(row) for row in rows]
    known = ObservationalRecord.objects.in_bulk([record.id for record in records])
    generations = _generations(records)
    verdicts, chosen = [], []
    for row, record in zip(rows, records, strict=True):
        old = known.get(record.id)
        if record.thread_id is not None and owners.get(record.thread_id) != record.resource_id:
            verdicts.append(Verdict(row, "refused", NO_THREAD))
        elif old and (old.resource_id, old.thread_id) != (record.resource_id, record.thread_id):
            verdicts.append(Verdict(row, "refused", ELSEWHERE))
        elif old and not (update and old.updated_at < record.updated_at):
            verdicts.append(Verdict(row, "already there"))
        elif generations.setdefault(_generation(record), record.id) != record.id:
            verdicts.append(Verdict(row, "refused", TAKEN))
        else:
            verdicts.append(Verdict(row, "updated" if old else "stored"))
            known[record.id] = record
            chosen.append(row)
    _replace(chosen)
    return verdicts


def _record(row: Row) -> ObservationalRecord:
    assert row.record is not None
    return row.record


def _generation(record: ObservationalRecord) -> Generation:
    return record.thread_id, record.resource_id, record.generation_count


def _generations(records: Sequence[ObservationalRecord]) -> dict[Generation, str]:
    """Which record each generation of these resources is."""
    there = ObservationalRecord.objects.filter(resource_id__in={r.resource_id for r in records})
    return {_generation(record): record.id for record in there.only(*_GENERATION)}


_GENERATION = ("id", "thread_id", "resource_id", "generation_count")


def _replace(rows: Sequence[Row]) -> None:
    records = [_record(row) for row in rows]
    ObservationalRecord.objects.filter(id__in=[record.id for record in records]).delete()
    ObservationalRecord.objects.bulk_create(records)
    chunks = [chunk for row in rows for chunk in row.chunks]
    there = ObservationChunk.objects.filter(id__in=[chunk.id for chunk in chunks])
    taken = set(there.values_list("id", flat=True))
    for chunk in chunks:
        if chunk.id in taken:  # a clone of its thread has the chunk under the same id
            chunk.id = f"ombuf-{derived_id(chunk.record_id, chunk.id)}"
        taken.add(chunk.id)
    ObservationChunk.objects.bulk_create(chunks)
