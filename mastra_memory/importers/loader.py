"""Store what a source yields, batch by batch; a batch is one transaction."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from zlib import crc32

from django.db import DataError, IntegrityError, OperationalError, transaction

from mastra_memory.db import locking, sql
from mastra_memory.importers import preview
from mastra_memory.importers.parallel import ParallelWorkers
from mastra_memory.importers.prefetch import prefetch_items
from mastra_memory.importers.records import (
    ImportedMessage,
    ImportedObservationalRecord,
    ImportedThread,
    ImportedWorkingMemory,
    ImportNote,
    OmittedRecord,
    SourceItem,
    get_kind,
)
from mastra_memory.importers.report import ImportReport
from mastra_memory.importers.storage import messages, observations, threads, working_memory
from mastra_memory.importers.validation import ImportRow, RowResult, ValidatedEntry, validate_items

BATCH_ROWS = 2500
"""Rows in a batch."""
BATCH_BYTES = 8 << 20
"""Text in a batch, roughly."""
DEFAULT_WORKERS = 2
"""So many connections store at the same time when nothing forbids it."""

_ROW_ERROR_CLASSES = ("22", "23", "54")
"""Classes of SQLSTATE that blame what is stored: bad value, constraint, too large."""


class RowBatch:
    """Rows that wait to be stored together."""

    def __init__(self) -> None:
        self.rows: list[ImportRow] = []
        self.text_length = 0

    def add(self, row: ImportRow) -> None:
        """One more."""
        self.rows.append(row)
        self.text_length += row.text_length


class Loader:
    """Takes items, stores them, and counts what became of each."""

    def __init__(
        self,
        report: ImportReport,
        *,
        batch: int = BATCH_ROWS,
        workers: int = 1,
        update: bool = False,
        dry_run: bool = False,
        before_store: Callable[[Sequence[ImportRow]], None] | None = None,
    ) -> None:
        """`update` overwrites what is there already and differs; `dry_run` stores nothing.

        With more than one, `workers` have connections of their own, which do not see what an
        open transaction of the caller has written. `before_store` gets each batch first.
        """
        self._report = report
        self._size = batch
        self._batches = [RowBatch() for _ in range(workers)]
        self._workers: ParallelWorkers[list[RowResult]] = ParallelWorkers(workers)
        self._store = preview_batch if dry_run else partial(store_batch, update=update)
        self._before_store = before_store
        self._stopped = False

    def load(
        self, items: Iterable[SourceItem], after_batch: Callable[[], None] = lambda: None
    ) -> bool:
        """Store everything, calling `after_batch` after each transaction.

        False when it was stopped before the end; running it again stores what is missing. The
        items are made in a thread of their own: they must not touch Django's connection.
        """
        with self._workers, closing(prefetch_items(validate_items(items))) as entries:
            try:
                for entry in entries:
                    if self._stopped:
                        return False
                    self._take(entry, after_batch)
                for worker in range(len(self._batches)):
                    self._flush(worker)
                return True
            finally:
                for results in self._workers.finish():
                    self._count(results)
                after_batch()

    def stop(self) -> None:
        """Let `load` end after the batches that are being stored; may come from anywhere."""
        self._stopped = True

    def _take(self, entry: ValidatedEntry, after_batch: Callable[[], None]) -> None:
        if isinstance(entry, OmittedRecord):
            self._report.add_omitted(entry)
        elif isinstance(entry, ImportNote):
            self._report.add_note(entry)
        else:
            worker = crc32(_get_ordering_key(entry).encode()) % len(self._batches)
            batch = self._batches[worker]
            batch.add(entry)
            if len(batch.rows) >= self._size or batch.text_length >= BATCH_BYTES:
                self._flush(worker)
                after_batch()

    def _flush(self, worker: int) -> None:
        rows, self._batches[worker] = self._batches[worker].rows, RowBatch()
        if rows and self._before_store:
            self._before_store(rows)
        for results in self._workers.submit(worker, partial(self._store, rows)):
            self._count(results)

    def _count(self, results: Iterable[RowResult]) -> None:
        for result in results:
            item, kind = result.row.item, get_kind(result.row.item)
            if result.outcome == "refused":
                omitted = OmittedRecord(
                    kind, "refused", item.location, result.reason, result.detail
                )
                self._report.add_omitted(omitted, parsed=True)
            else:
                self._report.add(kind, result.outcome)


def _get_ordering_key(row: ImportRow) -> str:
    """What keeps rows in one lane, and so in order: their thread, without one their resource."""
    if isinstance(row.item, ImportedThread):
        return row.item.id
    return row.item.thread_id or row.item.resource_id


def preview_batch(rows: Sequence[ImportRow]) -> list[RowResult]:
    """What would become of the rows."""
    sql.clear_query_log()
    return list(preview.preview_rows(rows))


def store_batch(rows: Sequence[ImportRow], *, update: bool) -> list[RowResult]:
    """Store the rows in one transaction.

    Where the database refuses one, it is found by halving, and the others are stored.
    """
    sql.clear_query_log()
    try:
        return _store_in_transaction(rows, update)
    except (DataError, IntegrityError, OperationalError) as error:
        code = str(getattr(error.__cause__, "sqlstate", "") or "")
        if code.startswith(_ROW_ERROR_CLASSES):
            return _isolate_bad_row(rows, update, error)
        raise


@locking.retry_conflicts
def _store_in_transaction(rows: Sequence[ImportRow], update: bool) -> list[RowResult]:
    with transaction.atomic():
        return list(_store_rows(rows, update))


def _isolate_bad_row(rows: Sequence[ImportRow], update: bool, error: Exception) -> list[RowResult]:
    if len(rows) == 1:
        reason = f"the database refuses it: {type(error.__cause__).__name__}"
        return [RowResult(rows[0], "refused", reason, str(error).partition("\n")[0])]
    half = len(rows) // 2
    return store_batch(rows[:half], update=update) + store_batch(rows[half:], update=update)


def _store_rows(rows: Sequence[ImportRow], update: bool) -> Iterator[RowResult]:
    """Store rows of all kinds, threads before what hangs on them."""
    owners = locking.lock_threads(filter(None, map(_get_thread_id, rows)))
    for kind, store in (
        (ImportedThread, threads.store_threads),
        (ImportedWorkingMemory, working_memory.store_working_memories),
        (ImportedMessage, messages.store_messages),
        (ImportedObservationalRecord, observations.store_observational_records),
    ):
        if chosen := [row for row in rows if isinstance(row.item, kind)]:
            yield from store(chosen, owners, update=update)


def _get_thread_id(row: ImportRow) -> str | None:
    return row.item.id if isinstance(row.item, ImportedThread) else row.item.thread_id
