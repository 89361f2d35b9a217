"""Store the messages of a batch: COPY into a temporary table, then one INSERT."""

from collections.abc import Sequence
from typing import cast

from mastra_memory import conf, signals
from mastra_memory.content import signal_types
from mastra_memory.db import routing, sql
from mastra_memory.importers.records import ImportedMessage
from mastra_memory.importers.storage import queries
from mastra_memory.importers.storage.threads import REASON_NO_THREAD, ThreadResources
from mastra_memory.importers.validation import ImportRow, RowResult
from mastra_memory.search import fields

REASON_OTHER_THREAD = "a message of another thread has the same id"


def store_messages(
    rows: Sequence[ImportRow], resources: ThreadResources, *, update: bool
) -> list[RowResult]:
    """Insert the messages that do not exist, in the order of the rows.

    An existing message keeps its content. With `update` it gets the content of the source, unless
    it was edited here.
    """
    with_thread = [row for row in rows if _has_thread(row, resources)]
    _copy_rows(with_thread)
    language = conf.app_settings().SEARCH_LANGUAGE
    stored = {message_id for (message_id,) in sql.fetch_all(queries.INSERT_MESSAGES, [language])}
    updated: set[str] = set()
    of_other_threads: set[str] = set()
    if len(stored) < len(with_thread):
        of_other_threads = {pk for (pk,) in sql.fetch_all(queries.FIND_MESSAGES_OF_OTHER_THREADS)}
        if update:
            updated = {pk for (pk,) in sql.fetch_all(queries.UPDATE_MESSAGES, [language])} - stored
    _send_saved_signal(with_thread, stored | updated)
    return _build_results(rows, resources, stored, updated, of_other_threads)


def _has_thread(row: ImportRow, resources: ThreadResources) -> bool:
    item = cast(ImportedMessage, row.item)
    return resources.get(item.thread_id) == item.resource_id


def _copy_rows(rows: Sequence[ImportRow]) -> None:
    connection = routing.get_connection()
    with connection.cursor() as cursor:
        cursor.execute(queries.CREATE_MESSAGE_TABLE)
        cursor.execute(queries.EMPTY_MESSAGE_TABLE)
        cursor.execute(queries.SET_WORK_MEMORY)
        # Errors of `copy` are psycopg's own unless Django converts them.
        with connection.wrap_database_errors, cursor.copy(queries.COPY_MESSAGES) as copy:
            for place, row in enumerate(rows):
                item = cast(ImportedMessage, row.item)
                copy.write_row(
                    (
                        place,
                        item.id,
                        item.thread_id,
                        item.resource_id,
                        item.role,
                        item.type,
                        signal_types.get_signal_type(item.role, item.content),
                        row.json,
                        row.text,
                        *fields.split_message(row.text, row.json),
                        item.created_at,
                        item.edited_at,
                    )
                )


def _send_saved_signal(rows: Sequence[ImportRow], message_ids: set[str]) -> None:
    if message_ids:
        items = (cast(ImportedMessage, row.item) for row in rows)
        thread_ids = {item.thread_id for item in items if item.id in message_ids}
        signals.send(
            signals.messages_saved, thread_ids=sorted(thread_ids), message_ids=sorted(message_ids)
        )


def _build_results(
    rows: Sequence[ImportRow],
    resources: ThreadResources,
    stored: set[str],
    updated: set[str],
    of_other_threads: set[str],
) -> list[RowResult]:
    not_reported = set(stored)
    results = []
    for row in rows:
        item = cast(ImportedMessage, row.item)
        if not _has_thread(row, resources):
            results.append(RowResult(row, "refused", REASON_NO_THREAD))
        elif item.id in not_reported:
            not_reported.discard(item.id)  # of several rows with the same id the first is stored
            results.append(RowResult(row, "stored"))
        elif item.id in of_other_threads:
            results.append(RowResult(row, "refused", REASON_OTHER_THREAD))
        else:
            results.append(RowResult(row, "updated" if item.id in updated else "already there"))
    return results
