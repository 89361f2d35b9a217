"""Store threads and working memories of a batch, set by set."""

from collections.abc import Iterable, Sequence
from typing import cast

from mastra_memory.db import locking, sql
from mastra_memory.importers.records import ImportedThread
from mastra_memory.importers.validation import ImportRow, RowResult

REASON_NO_THREAD = "its thread is not here, or is another resource's"
REASON_OTHER_RESOURCE = "its id is the id of another resource's thread"

ThreadResources = dict[str, str]
"""Resource by thread."""

_INPUT = """SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::jsonb[],
    %s::text[], %s::timestamptz[], %s::timestamptz[])
    AS i(id, resource_id, title, title_source, metadata, clone_source_id, created_at, updated_at)"""
_DIFFERS = """(t.title, t.metadata, t.clone_source_id) IS DISTINCT FROM
    (i.title, i.metadata, i.clone_source_id)"""


def store_threads(
    rows: Sequence[ImportRow], owners: ThreadResources, *, update: bool
) -> list[RowResult]:
    """Insert the threads that are missing, and add them to `owners`.

    One that is there keeps what it is, but its last activity is the source's if that is later.
    With `update` title and metadata become the source's.
    """
    first = {row.item.id: row for row in reversed(rows) if isinstance(row.item, ImportedThread)}
    params = _build_params(first[thread_id] for thread_id in sorted(first))
    made = sql.fetch_all(
        f"""INSERT INTO mastra_memory_thread (id, resource_id, title, title_source, metadata,
            clone_source_id, created_at, updated_at)
        {_INPUT} ON CONFLICT (id) DO NOTHING RETURNING id, resource_id""",
        params,
    )
    stored: ThreadResources = dict(made)
    owners.update(stored)
    if late := [thread_id for thread_id in first if thread_id not in owners]:
        owners.update(locking.lock_threads(late))  # somebody made them meanwhile
    updated = _update_threads(params, update) - stored.keys() if len(stored) < len(first) else set()
    results = []
    for row in rows:
        item = cast(ImportedThread, row.item)
        if owners.get(item.id) != item.resource_id:
            results.append(RowResult(row, "refused", REASON_OTHER_RESOURCE))
        elif item.id in stored and first[item.id] is row:
            results.append(RowResult(row, "stored"))
        else:
            results.append(RowResult(row, "updated" if item.id in updated else "already there"))
    return results


def _build_params(rows: Iterable[ImportRow]) -> list[list[object]]:
    known = [(cast(ImportedThread, row.item), row.json or None) for row in rows]
    return [
        [item.id for item, _ in known],
        [item.resource_id for item, _ in known],
        [item.title for item, _ in known],
        [item.title_source for item, _ in known],
        [metadata for _, metadata in known],
        [item.clone_source_id for item, _ in known],
        [item.created_at for item, _ in known],
        [item.updated_at for item, _ in known],
    ]


def _update_threads(params: Sequence[object], update: bool) -> set[str]:
    """Carry over what is newer in the source. Gives the threads whose content changed."""
    sql.execute(
        f"""UPDATE mastra_memory_thread t SET updated_at = i.updated_at FROM ({_INPUT}) i
        WHERE t.id = i.id AND t.resource_id = i.resource_id AND t.updated_at < i.updated_at""",
        params,
    )
    if not update:
        return set()
    changed = sql.fetch_all(
        f"""UPDATE mastra_memory_thread t SET title = i.title, title_source = i.title_source,
            metadata = i.metadata, clone_source_id = i.clone_source_id FROM ({_INPUT}) i
        WHERE t.id = i.id AND t.resource_id = i.resource_id AND {_DIFFERS} RETURNING t.id""",
        params,
    )
    return {thread_id for (thread_id,) in changed}
