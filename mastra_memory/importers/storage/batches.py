"""Store the rows of a batch in one transaction."""

from collections.abc import Iterator, Sequence

from django.db import DataError, IntegrityError, OperationalError

from mastra_memory.db import locking, routing, sql
from mastra_memory.importers.records import (
    ImportedMessage,
    ImportedObservationalRecord,
    ImportedThread,
    ImportedWorkingMemory,
)
from mastra_memory.importers.storage import messages, observations, threads, working_memory
from mastra_memory.importers.validation import ImportRow, RowResult

_ROW_ERROR_CLASSES = ("22", "23", "54")
"""SQLSTATE classes of errors in the data: invalid value, violated constraint, limit exceeded."""


def store_rows(rows: Sequence[ImportRow], *, update: bool) -> list[RowResult]:
    """Store the rows in one transaction, and return what happened to each of them.

    If the database rejects a row, the batch is split in half repeatedly to isolate this row. All
    other rows are stored.

    Args:
        rows: Rows of any kind. Rows of one thread are in the order in which they are stored.
        update: Overwrite stored objects that differ in the source.
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
    with routing.atomic():
        return list(_store_by_kind(rows, update))


def _isolate_bad_row(rows: Sequence[ImportRow], update: bool, error: Exception) -> list[RowResult]:
    if len(rows) == 1:
        reason = f"the database refuses it: {type(error.__cause__).__name__}"
        return [RowResult(rows[0], "refused", reason, str(error).partition("\n")[0])]
    half = len(rows) // 2
    return store_rows(rows[:half], update=update) + store_rows(rows[half:], update=update)


def _store_by_kind(rows: Sequence[ImportRow], update: bool) -> Iterator[RowResult]:
    # Threads first: the other rows refer to them, and `db.locking` prescribes this order.
    resources = locking.lock_threads(filter(None, map(_get_thread_id, rows)))
    for item_type, store in (
        (ImportedThread, threads.store_threads),
        (ImportedWorkingMemory, working_memory.store_working_memories),
        (ImportedMessage, messages.store_messages),
        (ImportedObservationalRecord, observations.store_observational_records),
    ):
        if selected := [row for row in rows if isinstance(row.item, item_type)]:
            yield from store(selected, resources, update=update)


def _get_thread_id(row: ImportRow) -> str | None:
    return row.item.id if isinstance(row.item, ImportedThread) else row.item.thread_id
