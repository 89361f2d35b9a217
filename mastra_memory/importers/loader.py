"""Store what a source yields, batch by batch; a batch is one transaction."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from zlib import crc32

from django.db import DataError, IntegrityError, OperationalError, transaction

from mastra_memory.db import locking, sql
from mastra_memory.importers import (
    preview,
    storing_memories,
    storing_messages,
    storing_observations,
    storing_threads,
)
from mastra_memory.importers.parallel import Lanes
from mastra_memory.importers.prefetch import read_ahead
from mastra_memory.importers.records import (
    ImportedMessage,
    ImportedRecord,
    ImportedThread,
    ImportedWorkingMemory,
    Item,
    LeftOut,
    Remark,
    kind_of,
)
from mastra_memory.importers.report import Tally
from mastra_memory.importers.validation import Entry, Row, Verdict, prepare

BATCH = 2500
"""Rows in a batch."""
BATCH_BYTES = 8 << 20
"""Text in a batch, roughly."""
LANES = 2
"""So many connections store at the same time when nothing forbids it."""

_OF_A_ROW = ("22", "23", "54")
"""Classes of SQLSTATE that blame what is stored: bad value, constraint, too large."""


class Batch:
    """Rows that wait to be stored together."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.weight = 0

    def add(self, row: Row) -> None:
        """One more."""
        self.rows.append(row)
        self.weight += row.weight


class Loader:
    """Takes items, stores them, and counts what became of each."""

    def __init__(
        self,
        tally: Tally,
        *,
        batch: int = BATCH,
        lanes: int = 1,
        update: bool = False,
        dry_run: bool = False,
        look_at: Callable[[Sequence[Row]], None] | None = None,
    ) -> None:
        """`update` overwrites what is there already and differs; `dry_run` stores nothing.

        With more than one of them, `lanes` are connections of their own, which do not see what an
        open transaction of the caller has written. `look_at` sees each batch before it is stored.
        """
        self._tally = tally
        self._size = batch
        self._batches = [Batch() for _ in range(lanes)]
        self._lanes: Lanes[list[Verdict]] = Lanes(lanes)
        self._store = looked_up if dry_run else partial(stored, update=update)
        self._look_at = look_at
        self._stopped = False

    def load(self, items: Iterable[Item], after_batch: Callable[[], None] = lambda: None) -> bool:
        """Store everything, calling `after_batch` after each transaction.

        False when it was stopped before the end; running it again stores what is missing. The
        items are made in a thread of their own: they must not touch Django's connection.
        """
        with self._lanes, closing(read_ahead(prepare(items))) as entries:
            try:
                for entry in entries:
                    if self._stopped:
                        return False
                    self._take(entry, after_batch)
                for lane in range(len(self._batches)):
                    self._flush(lane)
                return True
            finally:
                for verdicts in self._lanes.finish():
                    self._count(verdicts)
                after_batch()

    def stop(self) -> None:
        """Let `load` end after the batches that are being stored; may come from anywhere."""
        self._stopped = True

    def _take(self, entry: Entry, after_batch: Callable[[], None]) -> None:
        if isinstance(entry, LeftOut):
            self._tally.leave_out(entry)
        elif isinstance(entry, Remark):
            self._tally.remark(entry)
        else:
            lane = crc32(_belongs_to(entry).encode()) % len(self._batches)
            batch = self._batches[lane]
            batch.add(entry)
            if len(batch.rows) >= self._size or batch.weight >= BATCH_BYTES:
                self._flush(lane)
                after_batch()

    def _flush(self, lane: int) -> None:
        rows, self._batches[lane] = self._batches[lane].rows, Batch()
        if rows and self._look_at:
            self._look_at(rows)
        for verdicts in self._lanes.run(lane, partial(self._store, rows)):
            self._count(verdicts)

    def _count(self, verdicts: Iterable[Verdict]) -> None:
        for verdict in verdicts:
            item, kind = verdict.row.item, kind_of(verdict.row.item)
            if verdict.outcome == "refused":
                left_out = LeftOut(kind, "refused", item.where, verdict.reason, verdict.detail)
                self._tally.leave_out(left_out, understood=True)
            else:
                self._tally.count(kind, verdict.outcome)


def _belongs_to(row: Row) -> str:
    """What keeps rows in one lane, and so in order: their thread, without one their resource."""
    if isinstance(row.item, ImportedThread):
        return row.item.id
    return row.item.thread_id or row.item.resource_id


def looked_up(rows: Sequence[Row]) -> list[Verdict]:
    """What would become of the rows."""
    sql.forget_statements()
    return list(preview.look_up(rows))


def stored(rows: Sequence[Row], *, update: bool) -> list[Verdict]:
    """Store the rows in one transaction.

    Where the database refuses one, it is found by halving, and the others are stored.
    """
    sql.forget_statements()
    try:
        return _stored_together(rows, update)
    except (DataError, IntegrityError, OperationalError) as error:
        code = str(getattr(error.__cause__, "sqlstate", "") or "")
        if code.startswith(_OF_A_ROW):
            return _without_the_bad_one(rows, update, error)
        raise


@locking.retry_conflicts
def _stored_together(rows: Sequence[Row], update: bool) -> list[Verdict]:
    with transaction.atomic():
        return list(_stored(rows, update))


def _without_the_bad_one(rows: Sequence[Row], update: bool, error: Exception) -> list[Verdict]:
    if len(rows) == 1:
        reason = f"the database refuses it: {type(error.__cause__).__name__}"
        return [Verdict(rows[0], "refused", reason, str(error).partition("\n")[0])]
    half = len(rows) // 2
    return stored(rows[:half], update=update) + stored(rows[half:], update=update)


def _stored(rows: Sequence[Row], update: bool) -> Iterator[Verdict]:
    """Store rows of all kinds, threads before what hangs on them."""
    owners = locking.lock_threads(filter(None, map(_thread_of, rows)))
    for kind, store in (
        (ImportedThread, storing_threads.store_threads),
        (ImportedWorkingMemory, storing_memories.store_working_memories),
        (ImportedMessage, storing_messages.store_messages),
        (ImportedRecord, storing_observations.store_records),
    ):
        if chosen := [row for row in rows if isinstance(row.item, kind)]:
            yield from store(chosen, owners, update=update)


def _thread_of(row: Row) -> str | None:
    return row.item.id if isinstance(row.item, ImportedThread) else row.item.thread_id
