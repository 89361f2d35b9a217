"""Store the working memories of a batch, with their revisions."""

from collections.abc import Sequence
from typing import cast

from mastra_memory.db import json_text, sql
from mastra_memory.importers.records import ImportedWorkingMemory
from mastra_memory.importers.storage import queries
from mastra_memory.importers.storage.threads import REASON_NO_THREAD, ThreadResources
from mastra_memory.importers.validation import ImportRow, RowResult

_MAX_SOURCE_CHARACTERS = 32
"""The length of the database column."""


def store_working_memories(
    rows: Sequence[ImportRow], resources: ThreadResources, *, update: bool
) -> list[RowResult]:
    """Insert the working memories that do not exist, with their revisions.

    An existing working memory stays as it is. With `update` the text of the source becomes its
    newest revision.
    """
    with_thread = [row for row in rows if _has_thread(row, resources)]
    params = _build_params([cast(ImportedWorkingMemory, row.item) for row in with_thread])
    stored = {place for (place,) in sql.fetch_all(queries.INSERT_WORKING_MEMORIES, params)}
    updated: set[int] = set()
    if update:
        updated = {place for (place,) in sql.fetch_all(queries.UPDATE_WORKING_MEMORIES, params)}
    results = [
        RowResult(row, "refused", REASON_NO_THREAD)
        for row in rows
        if not _has_thread(row, resources)
    ]
    for place, row in enumerate(with_thread, start=1):
        if place in stored:
            results.append(RowResult(row, "stored"))
        else:
            results.append(RowResult(row, "updated" if place in updated else "already there"))
    return results


def _has_thread(row: ImportRow, resources: ThreadResources) -> bool:
    """Return whether the row belongs to a resource as a whole or to an existing thread of it."""
    item = cast(ImportedWorkingMemory, row.item)
    return item.thread_id is None or resources.get(item.thread_id) == item.resource_id


def _build_params(items: Sequence[ImportedWorkingMemory]) -> list[list[object]]:
    """Return one list for each column."""
    return [
        [item.thread_id for item in items],
        [item.resource_id for item in items],
        [item.content for item in items],
        [item.created_at for item in items],
        [item.updated_at for item in items],
        [json_text.dumps(_build_revisions(item)) for item in items],
    ]


def _build_revisions(item: ImportedWorkingMemory) -> list[dict[str, object]]:
    """Return the revisions of the source, or the current text as the only revision."""
    revisions: list[dict[str, object]] = [
        {
            "version": revision.version,
            "content": revision.content,
            "source": revision.source[:_MAX_SOURCE_CHARACTERS],
            "createdAt": revision.created_at,
        }
        for revision in item.revisions
    ]
    return revisions or [
        {"version": 1, "content": item.content, "source": "import", "createdAt": item.updated_at}
    ]
