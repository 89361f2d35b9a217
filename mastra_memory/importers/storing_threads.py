"""Store threads and working memories of a batch, set by set."""

from collections.abc import Iterable, Sequence
from typing import cast

from mastra_memory import jsontext, sql
from mastra_memory.importers.port import ImportedThread, ImportedWorkingMemory
from mastra_memory.importers.rows import Row, Verdict

FOREIGN = "its id is the id of another resource's thread"
NO_THREAD = "its thread is not here, or is another resource's"

Owners = dict[str, str]
"""Resource by thread."""

_INPUT = """SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::jsonb[],
    %s::text[], %s::timestamptz[], %s::timestamptz[])
    AS i(id, resource_id, title, title_source, metadata, clone_source_id, created_at, updated_at)"""
_DIFFERS = """(t.title, t.metadata, t.clone_source_id) IS DISTINCT FROM
    (i.title, i.metadata, i.clone_source_id)"""


def locked_owners(thread_ids: Iterable[str]) -> Owners:
    """The threads that are here with their resources; nobody can change or delete them meanwhile.

    Locked in the order of their ids, as in a save.
    """
    found = sql.rows(
        """SELECT id, resource_id FROM mastra_memory_thread WHERE id = ANY(%s)
        ORDER BY id FOR NO KEY UPDATE""",
        [list(set(thread_ids))],
    )
    return dict(found)


def store_threads(rows: Sequence[Row], owners: Owners, *, update: bool) -> list[Verdict]:
    """Insert the threads that are missing, and add them to `owners`.

    One that is there keeps what it is, but its last activity is the source's if that is later.
    With `update` title and metadata become the source's.
    """
    first = {row.item.id: row for row in reversed(rows) if isinstance(row.item, ImportedThread)}
    params = _thread_params(first[thread_id] for thread_id in sorted(first))
    made = sql.rows(
        f"""INSERT INTO mastra_memory_thread (id, resource_id, title, title_source, metadata,
            clone_source_id, created_at, updated_at)
        {_INPUT} ON CONFLICT (id) DO NOTHING RETURNING id, resource_id""",
        params,
    )
    stored: Owners = dict(made)
    updated = _renew(params, update) - stored.keys() if len(stored) < len(first) else set()
    owners.update(stored)
    verdicts = []
    for row in rows:
        item = cast(ImportedThread, row.item)
        if owners.get(item.id) != item.resource_id:
            verdicts.append(Verdict(row, "refused", FOREIGN))
        elif item.id in stored and first[item.id] is row:
            verdicts.append(Verdict(row, "stored"))
        else:
            verdicts.append(Verdict(row, "updated" if item.id in updated else "already there"))
    return verdicts


def _thread_params(rows: Iterable[Row]) -> list[list[object]]:
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


def _renew(params: Sequence[object], update: bool) -> set[str]:
    """Carry over what is newer in the source. Gives the threads whose content changed."""
    sql.execute(
        f"""UPDATE mastra_memory_thread t SET updated_at = i.updated_at FROM ({_INPUT}) i
        WHERE t.id = i.id AND t.resource_id = i.resource_id AND t.updated_at < i.updated_at""",
        params,
    )
    if not update:
        return set()
    changed = sql.rows(
        f"""UPDATE mastra_memory_thread t SET title = i.title, title_source = i.title_source,
            metadata = i.metadata, clone_source_id = i.clone_source_id FROM ({_INPUT}) i
        WHERE t.id = i.id AND t.resource_id = i.resource_id AND {_DIFFERS} RETURNING t.id""",
        params,
    )
    return {thread_id for (thread_id,) in changed}


_WM_INPUT = """SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::timestamptz[],
    %s::timestamptz[], %s::jsonb[]) WITH ORDINALITY
    AS i(thread_id, resource_id, content, created_at, updated_at, revisions, place)"""
_SAME = "w.resource_id = i.resource_id AND w.thread_id IS NOT DISTINCT FROM i.thread_id"


def store_working_memories(rows: Sequence[Row], owners: Owners, *, update: bool) -> list[Verdict]:
    """Insert the working memories that are missing, with their revisions.

    One that is there stays; with `update` the source's text becomes its newest revision.
    """
    items = [cast(ImportedWorkingMemory, row.item) for row in rows]
    fit = [
        row
        for row, item in zip(rows, items, strict=True)
        if item.thread_id is None or owners.get(item.thread_id) == item.resource_id
    ]
    params = _memory_params([cast(ImportedWorkingMemory, row.item) for row in fit])
    stored = {place for (place,) in sql.rows(_INSERT_MEMORIES, params)}
    updated = {place for (place,) in sql.rows(_UPDATE_MEMORIES, params)} if update else set()
    placed = {id(row) for row in fit}
    verdicts = [Verdict(row, "refused", NO_THREAD) for row in rows if id(row) not in placed]
    for place, row in enumerate(fit, start=1):
        if place in stored:
            verdicts.append(Verdict(row, "stored"))
        else:
            verdicts.append(Verdict(row, "updated" if place in updated else "already there"))
    return verdicts


_INSERT_MEMORIES = f"""WITH i AS MATERIALIZED ({_WM_INPUT}),
    made AS (
        INSERT INTO mastra_memory_workingmemory
            (scope, thread_id, resource_id, content, version, created_at, updated_at)
        SELECT CASE WHEN thread_id IS NULL THEN 'resource' ELSE 'thread' END, thread_id,
            resource_id, content,
            (SELECT max((r->>'version')::int) FROM jsonb_array_elements(revisions) r),
            created_at, updated_at
        FROM i ORDER BY place ON CONFLICT DO NOTHING RETURNING id, thread_id, resource_id),
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

_UPDATE_MEMORIES = f"""WITH i AS MATERIALIZED ({_WM_INPUT}),
    changed AS (
        UPDATE mastra_memory_workingmemory w SET content = i.content, version = w.version + 1,
            updated_at = greatest(w.updated_at, i.updated_at)
        FROM i WHERE {_SAME} AND w.content <> i.content
        RETURNING w.id, w.version, w.content, i.place),
    noted AS (
        INSERT INTO mastra_memory_workingmemoryrevision
            (working_memory_id, version, content, source)
        SELECT id, version, content, 'import' FROM changed)
    SELECT place FROM changed"""


def _memory_params(items: Sequence[ImportedWorkingMemory]) -> list[list[object]]:
    return [
        [item.thread_id for item in items],
        [item.resource_id for item in items],
        [item.content for item in items],
        [item.created_at for item in items],
        [item.updated_at for item in items],
        [jsontext.dumps(_revisions(item)) for item in items],
    ]


def _revisions(item: ImportedWorkingMemory) -> list[dict[str, object]]:
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
