"""Store what a source yields, batch by batch; a batch is one transaction."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing

from django.db import DataError, IntegrityError, OperationalError, transaction

from mastra_memory.importers import (
    looking_up,
    storing_messages,
    storing_observations,
    storing_threads,
)
from mastra_memory.importers.ahead import read_ahead
from mastra_memory.importers.port import (
    ImportedMessage,
    ImportedRecord,
    ImportedThread,
    ImportedWorkingMemory,
    Item,
    LeftOut,
    Remark,
    Storable,
    kind_of,
)
from mastra_memory.importers.rows import Row, Verdict, prepare
from mastra_memory.importers.tally import Tally

BATCH = 5000
"""Rows in a batch."""
BATCH_BYTES = 16 << 20
"""Text in a batch, roughly."""

_OF_A_ROW = ("22", "23", "54")
"""Classes of SQLSTATE that blame what is stored: bad value, constraint, too large."""


class Loader:
    """Takes items, stores them, and counts what became of each."""

    def __init__(
        self,
        tally: Tally,
        *,
        batch: int = BATCH,
        update: bool = False,
        dry_run: bool = False,
        look_at: Callable[[Sequence[Row]], None] | None = None,
    ) -> None:
        """`update` overwrites what is there already and differs; `dry_run` stores nothing.

        `look_at` sees each batch before it is stored.
        """
        self._tally = tally
        self._batch = batch
        self._update = update
        self._dry_run = dry_run
        self._look_at = look_at
        self._rows: list[Row] = []
        self._bytes = 0

    def load(self, items: Iterable[Item], after_batch: Callable[[], None] = lambda: None) -> None:
        """Store everything, calling `after_batch` after each transaction.

        Interrupting it loses the batch at hand, and running it again stores what is missing. The
        items are made in a thread of their own: they must not touch Django's connection.
        """
        with closing(read_ahead(prepare(items))) as entries:
            for entry in entries:
                if isinstance(entry, LeftOut):
                    self._tally.leave_out(entry)
                elif isinstance(entry, Remark):
                    self._tally.remark(entry)
                elif self._add(entry):
                    self._flush()
                    after_batch()
        self._flush()
        after_batch()

    def _add(self, row: Row) -> bool:
        """Whether the batch is full now."""
        self._rows.append(row)
        self._bytes += row.weight
        return len(self._rows) >= self._batch or self._bytes >= BATCH_BYTES

    def _flush(self) -> None:
        rows, self._rows, self._bytes = self._rows, [], 0
        if rows and self._look_at:
            self._look_at(rows)
        if self._dry_run:
            self._count(looking_up.look_up(rows))
        elif rows:
            self._store(rows)

    def _store(self, rows: Sequence[Row]) -> None:
        """Store the rows; where the database refuses one, find it by halving and store the rest."""
        try:
            with transaction.atomic():
                verdicts = list(_stored(rows, self._update))
        except (DataError, IntegrityError, OperationalError) as error:
            if not _blames_a_row(error):
                raise
            if len(rows) == 1:
                reason = f"the database refuses it: {type(error.__cause__).__name__}"
                self._refuse(rows[0].item, reason, str(error).partition("\n")[0])
                return
            half = len(rows) // 2
            self._store(rows[:half])
            self._store(rows[half:])
        else:
            self._count(verdicts)

    def _count(self, verdicts: Iterable[Verdict]) -> None:
        for verdict in verdicts:
            if verdict.outcome == "refused":
                self._refuse(verdict.row.item, verdict.reason)
            else:
                self._tally.count(kind_of(verdict.row.item), verdict.outcome)

    def _refuse(self, item: Storable, reason: str, detail: str = "") -> None:
        left_out = LeftOut(kind_of(item), "refused", item.where, reason, detail)
        self._tally.leave_out(left_out, understood=True)


def _stored(rows: Sequence[Row], update: bool) -> Iterator[Verdict]:
    """Store rows of all kinds, threads before what hangs on them."""
    owners = storing_threads.locked_owners(filter(None, map(_thread_of, rows)))
    for kind, store in (
        (ImportedThread, storing_threads.store_threads),
        (ImportedWorkingMemory, storing_threads.store_working_memories),
        (ImportedMessage, storing_messages.store_messages),
        (ImportedRecord, storing_observations.store_records),
    ):
        if chosen := [row for row in rows if isinstance(row.item, kind)]:
            yield from store(chosen, owners, update=update)


def _thread_of(row: Row) -> str | None:
    return row.item.id if isinstance(row.item, ImportedThread) else row.item.thread_id


def _blames_a_row(error: Exception) -> bool:
    return str(getattr(error.__cause__, "sqlstate", "") or "").startswith(_OF_A_ROW)
