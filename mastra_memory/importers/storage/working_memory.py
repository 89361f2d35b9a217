"""Store working memories of a batch with their revisions, set by set."""

from collections.abc import Sequence
from typing import cast

from mastra_memory.db import json_text, sql
from mastra_memory.importers.records import ImportedWorkingMemory
from mastra_memory.importers.storage.threads import REASON_NO_THREAD, ThreadResources
from mastra_memory.importers.validation import ImportRow, RowResult

_INPUT = """SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::timestamptz[],
    %s::timestamptz[], %s::jsonb[]) WITH ORDINALITY
    AS i(thread_id, resource_id, content, created_at, updated_at, revisions, place)"""
_SAME = "w.resource_id = i.resource_id AND w.thread_id IS NOT DISTINCT FROM i.thread_id"
_INSERT = f"""WITH i AS MATERIALIZED ({_INPUT}),
    made AS (
        INSERT INTO mastra_memory_workingmemory
            (scope, thread_id, resource_id, content, version, created_at, updated_at)
        SELECT CASE WHEN thread_id IS NULL THEN 'resource' ELSE 'thread' END, thread_id,
            resource_id, content,
            (SELECT max((r->>'version')::int) FROM jsonb_array_elements(revisions) r),
            created_at, updated_at
        FROM i ORDER BY resource_id, thread_id, place ON CONFLICT DO NOTHING
        RETURNING id, thread_id, resource_id),
    placed AS (
        SELECT DISTINCT ON (w.id) w.id, i.place, i.revisions FROM made w JOIN i
            ON {_SAME} ORDER BY w.id, i.place),
    noted AS (
        INSERT INTO mastra_memory_workingmemoryrevision
            (working_memory_id, version, content, source, created_at)
        SELECT placed.id, (r->>'version')::int, r->>'content', r->>'source',
            (r->>'createdAt')::timestamptz
        FROM placed, jsonb_array_elements(placed.revisions) r)
    SELECT place FROM placed"""

_UPDATE = f"""WITH i AS MATERIALIZED ({_INPUT}),
    locked AS MATERIALIZED (
        SELECT w.id FROM mastra_memory_workingmemory w JOIN i ON {_SAME}
        ORDER BY w.resource_id, w.thread_id FOR NO KEY UPDATE OF w),
    changed AS (
        UPDATE mastra_memory_workingmemory w SET content = i.content, version = w.version + 1,
            updated_at = greatest(w.updated_at, i.updated_at)
        FROM i WHERE {_SAME} AND w.content <> i.content
            AND w.id IN (SELECT id FROM locked)
        RETURNING w.id, w.version, w.content, i.place),
    noted AS (
        INSERT INTO mastra_memory_workingmemoryrevision
            (working_memory_id, version, content, source)
        SELECT id, version, content, 'import' FROM changed)
    SELECT place FROM changed"""


def store_working_memories(
    rows: Sequence[ImportRow], owners: ThreadResources, *, update: bool
) -> list[RowResult]:
    """Insert the working memories that are missing, with their revisions.

    One that is there stays; with `update` the source's text becomes its newest revision.
    """
    items = [cast(ImportedWorkingMemory, row.item) for row in rows]
    fit = [
        row
        for row, item in zip(rows, items, strict=True)
        if item.thread_id is None or owners.get(item.thread_id) == item.resource_id
    ]
    params = _build_params([cast(ImportedWorkingMemory, row.item) for row in fit])
    stored = {place for (place,) in sql.fetch_all(_INSERT, params)}
    updated = {place for (place,) in sql.fetch_all(_UPDATE, params)} if update else set()
    placed = {id(row) for row in fit}
    results = [RowResult(row, "refused", REASON_NO_THREAD) for row in rows if id(row) not in placed]
    for place, row in enumerate(fit, start=1):
        if place in stored:
            results.append(RowResult(row, "stored"))
        else:
            results.append(RowResult(row, "updated" if place in updated else "already there"))
    return results


def _build_params(items: Sequence[ImportedWorkingMemory]) -> list[list[object]]:
    return [
        [item.thread_id for item in items],
        [item.resource_id for item in items],
        [item.content for item in items],
        [item.created_at for item in items],
        [item.updated_at for item in items],
        [json_text.dumps(_build_revisions(item)) for item in items],
    ]


def _build_revisions(item: ImportedWorkingMemory) -> list[dict[str, object]]:
    """What it was before; what it is now, when the source tells no more."""
    known = [
        {
            "version": revision.version,
            "content": revision.content,
            "source": revision.source[:32],
            "createdAt": revision.created_at,
        }
        for revision in item.revisions
    ]
    only = {"version": 1, "content": item.content, "source": "import", "createdAt": item.updated_at}
    return known or [only]
