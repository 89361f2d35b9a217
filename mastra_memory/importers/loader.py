"""Validate the items of a source and store them in batches, each in one transaction."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from functools import partial
from zlib import crc32

from mastra_memory.db import routing
from mastra_memory.importers.parallel import ParallelWorkers
from mastra_memory.importers.prefetch import prefetch_items
from mastra_memory.importers.preview import preview_rows
from mastra_memory.importers.records import (
    ImportedThread,
    ImportNote,
    OmittedRecord,
    SourceItem,
    get_kind,
)
from mastra_memory.importers.report import ImportReport
from mastra_memory.importers.storage.batches import store_rows
from mastra_memory.importers.validation import ImportRow, RowResult, ValidatedEntry, validate_items

BATCH_ROWS = 2500
"""The default number of rows in a batch."""
MAX_BATCH_CHARACTERS = 8 << 20
"""A batch with more text than this is stored even if it has few rows."""
DEFAULT_WORKERS = 2
"""Connections that store in parallel when the import does not run in a transaction."""


def count_workers() -> int:
    """Return how many workers can store in parallel.

    Inside a transaction of the caller there is only one, since others would not see its changes.
    If the database has a connection pool, one of its connections is left for the main thread.
    """
    if routing.get_connection().in_atomic_block:
        return 1
    pool_size = routing.get_pool_size()
    return DEFAULT_WORKERS if pool_size is None else max(1, min(DEFAULT_WORKERS, pool_size - 1))


class RowBatch:
    """Rows that will be stored together."""

    def __init__(self) -> None:
        """Create an empty batch."""
        self.rows: list[ImportRow] = []
        self.text_length = 0

    def add(self, row: ImportRow) -> None:
        """Add a row."""
        self.rows.append(row)
        self.text_length += row.text_length


class Loader:
    """Store items and count what happened to each of them."""

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
        """Create a loader.

        Args:
            report: Receives the counts.
            batch: The maximum number of rows in a batch.
            workers: The number of threads that store batches. If there are several, each uses its
                own connection, which does not see uncommitted changes of the caller.
            update: Overwrite stored objects that differ in the source.
            dry_run: Only count what would be stored.
            before_store: Called with the rows of each batch before they are stored.
        """
        self._report = report
        self._batch_rows = batch
        self._batches = [RowBatch() for _ in range(workers)]
        self._workers: ParallelWorkers[list[RowResult]] = ParallelWorkers(workers)
        self._store = preview_rows if dry_run else partial(store_rows, update=update)
        self._before_store = before_store
        self._stopped = False

    def load(
        self, items: Iterable[SourceItem], after_batch: Callable[[], None] = lambda: None
    ) -> bool:
        """Store all items, and return False if `stop` ended the import early.

        An import that was stopped can be repeated: it then stores what is missing.

        Args:
            items: What the source yields. A second thread iterates over it, so it must not use
                Django's database connection.
            after_batch: Called after each batch.
        """
        with self._workers, closing(prefetch_items(validate_items(items))) as entries:
            try:
                for entry in entries:
                    if self._stopped:
                        return False
                    self._process(entry, after_batch)
                for worker in range(len(self._batches)):
                    self._flush(worker)
                return True
            finally:
                for results in self._workers.finish():
                    self._count(results)
                after_batch()

    def stop(self) -> None:
        """Make `load` return after the current batches. Can be called from a signal handler."""
        self._stopped = True

    def _process(self, entry: ValidatedEntry, after_batch: Callable[[], None]) -> None:
        if isinstance(entry, OmittedRecord):
            self._report.add_omitted(entry)
        elif isinstance(entry, ImportNote):
            self._report.add_note(entry)
        else:
            worker = crc32(_get_ordering_key(entry).encode()) % len(self._batches)
            batch = self._batches[worker]
            batch.add(entry)
            if len(batch.rows) >= self._batch_rows or batch.text_length >= MAX_BATCH_CHARACTERS:
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
    """Return the thread id, or the resource id of a row without a thread.

    Rows with the same key go to the same worker and therefore stay in order.
    """
    if isinstance(row.item, ImportedThread):
        return row.item.id
    return row.item.thread_id or row.item.resource_id
