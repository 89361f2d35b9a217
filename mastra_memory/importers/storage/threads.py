"""Store the threads of a batch."""

from collections.abc import Iterable, Sequence
from typing import cast

from mastra_memory import conf
from mastra_memory.db import locking, sql
from mastra_memory.importers.records import ImportedThread
from mastra_memory.importers.storage import queries
from mastra_memory.importers.validation import ImportRow, RowResult
from mastra_memory.search import words

REASON_NO_THREAD = "its thread does not exist or belongs to another resource"
REASON_OTHER_RESOURCE = "a thread of another resource has the same id"

ThreadResources = dict[str, str]
"""The resource id of each existing thread, by thread id."""


def store_threads(
    rows: Sequence[ImportRow], resources: ThreadResources, *, update: bool
) -> list[RowResult]:
    """Insert the threads that do not exist, and add them to `resources`.

    The fields of an existing thread are not changed, except `updated_at` if the source has a later
    time. With `update`, title and metadata are replaced by those of the source.
    """
    # Of several rows with the same id the first one is stored.
    first = {row.item.id: row for row in reversed(rows) if isinstance(row.item, ImportedThread)}
    params = _build_params(first[thread_id] for thread_id in sorted(first))
    stored: ThreadResources = dict(sql.fetch_all(queries.INSERT_THREADS, params))
    resources.update(stored)
    if missing := [thread_id for thread_id in first if thread_id not in resources]:
        # Another transaction has inserted these threads after `resources` was read.
        resources.update(locking.lock_threads(missing))
    updated: set[str] = set()
    if len(stored) < len(first):
        updated = _update_threads(params, update) - stored.keys()
    results = []
    for row in rows:
        item = cast(ImportedThread, row.item)
        if resources.get(item.id) != item.resource_id:
            results.append(RowResult(row, "refused", REASON_OTHER_RESOURCE))
        elif item.id in stored and first[item.id] is row:
            results.append(RowResult(row, "stored"))
        else:
            results.append(RowResult(row, "updated" if item.id in updated else "already there"))
    return results


def _build_params(rows: Iterable[ImportRow]) -> list[object]:
    """Return the language of the search words, then one list for each column."""
    threads = [(cast(ImportedThread, row.item), row.json or None) for row in rows]
    return [
        conf.app_settings().SEARCH_LANGUAGE,
        [item.id for item, _ in threads],
        [item.resource_id for item, _ in threads],
        [item.title for item, _ in threads],
        [words.normalize_words(item.title) for item, _ in threads],
        [item.title_source for item, _ in threads],
        [metadata for _, metadata in threads],
        [item.clone_source_id for item, _ in threads],
        [item.created_at for item, _ in threads],
        [item.updated_at for item, _ in threads],
    ]


def _update_threads(params: Sequence[object], update: bool) -> set[str]:
    """Copy newer values of the source, and return the ids of threads with another content."""
    sql.execute(queries.UPDATE_THREAD_TIMES, params)
    if not update:
        return set()
    return {thread_id for (thread_id,) in sql.fetch_all(queries.UPDATE_THREADS, params)}
