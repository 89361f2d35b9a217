"""Store the messages of a batch: COPY into a temporary table, then one INSERT."""

from collections.abc import Sequence
from typing import cast

from django.db import connection

from mastra_memory import conf, signals
from mastra_memory.content import normalization
from mastra_memory.db import sql
from mastra_memory.importers.records import ImportedMessage
from mastra_memory.importers.storage.threads import REASON_NO_THREAD, ThreadResources
from mastra_memory.importers.validation import ImportRow, RowResult

REASON_OTHER_THREAD = "its id is the id of another thread's message"

_TABLE = """CREATE TEMPORARY TABLE IF NOT EXISTS mastra_import (place integer, id text,
    thread_id text, resource_id text, role text, type text, signal text, content jsonb, text text,
    created_at timestamptz, edited_at timestamptz) ON COMMIT DELETE ROWS"""
_COPY = """COPY mastra_import (place, id, thread_id, resource_id, role, type, signal, content,
    text, created_at, edited_at) FROM STDIN"""
_INSERT = """INSERT INTO mastra_memory_message (id, thread_id, resource_id, role, type, signal,
        content, text, search, created_at, edited_at)
    SELECT id, thread_id, resource_id, role, type, signal, content, text,
        mastra_memory_words(%s::regconfig, text), created_at, edited_at
    FROM mastra_import ORDER BY place ON CONFLICT (id) DO NOTHING RETURNING id"""
_UPDATE = """UPDATE mastra_memory_message m SET role = i.role, type = i.type, signal = i.signal,
        content = i.content, text = i.text, search = mastra_memory_words(%s::regconfig, i.text)
    FROM (SELECT DISTINCT ON (id) * FROM mastra_import ORDER BY id, place) i
    WHERE m.id = i.id AND m.thread_id = i.thread_id AND m.edited_at IS NULL
        AND (m.role, m.type, m.content) IS DISTINCT FROM (i.role, i.type, i.content)
    RETURNING m.id"""
_TAKEN = """SELECT DISTINCT i.id FROM mastra_import i JOIN mastra_memory_message m ON m.id = i.id
    WHERE m.thread_id <> i.thread_id"""


def store_messages(
    rows: Sequence[ImportRow], owners: ThreadResources, *, update: bool
) -> list[RowResult]:
    """Insert the messages that are missing, in order.

    One that is there stays; with `update` it gets the source's content, unless it was edited here.
    """
    fit = [row for row in rows if _has_thread(row, owners)]
    _copy_rows(fit)
    language = conf.app_settings().SEARCH_LANGUAGE
    stored = {message_id for (message_id,) in sql.fetch_all(_INSERT, [language])}
    updated, taken = set(), set()
    if len(stored) < len(fit):
        taken = {message_id for (message_id,) in sql.fetch_all(_TAKEN)}
        if update:
            updated = {message_id for (message_id,) in sql.fetch_all(_UPDATE, [language])} - stored
    _send_saved_signal(fit, stored | updated)
    return _build_results(rows, owners, stored, updated, taken)


def _has_thread(row: ImportRow, owners: ThreadResources) -> bool:
    item = cast(ImportedMessage, row.item)
    return owners.get(item.thread_id) == item.resource_id


def _copy_rows(rows: Sequence[ImportRow]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_TABLE)
        cursor.execute("TRUNCATE mastra_import")  # there may be an outer transaction
        cursor.execute("SET LOCAL work_mem = '64MB'")  # sort the batch in memory
        with connection.wrap_database_errors, cursor.copy(_COPY) as copy:
            for place, row in enumerate(rows):
                item = cast(ImportedMessage, row.item)
                signal = normalization.get_signal_type(item.role, item.content)
                copy.write_row(
                    (
                        place,
                        item.id,
                        item.thread_id,
                        item.resource_id,
                        item.role,
                        item.type,
                        signal,
                        row.json,
                        row.text,
                        item.created_at,
                        item.edited_at,
                    )
                )


def _send_saved_signal(rows: Sequence[ImportRow], changed: set[str]) -> None:
    if changed:
        items = (cast(ImportedMessage, row.item) for row in rows)
        threads = {item.thread_id for item in items if item.id in changed}
        signals.send(
            signals.messages_saved, thread_ids=sorted(threads), message_ids=sorted(changed)
        )


def _build_results(
    rows: Sequence[ImportRow],
    owners: ThreadResources,
    stored: set[str],
    updated: set[str],
    taken: set[str],
) -> list[RowResult]:
    fresh = set(stored)
    results = []
    for row in rows:
        item = cast(ImportedMessage, row.item)
        if not _has_thread(row, owners):
            results.append(RowResult(row, "refused", REASON_NO_THREAD))
        elif item.id in fresh:
            fresh.discard(item.id)  # of an id that comes twice the first one is stored
            results.append(RowResult(row, "stored"))
        elif item.id in taken:
            results.append(RowResult(row, "refused", REASON_OTHER_THREAD))
        else:
            results.append(RowResult(row, "updated" if item.id in updated else "already there"))
    return results
