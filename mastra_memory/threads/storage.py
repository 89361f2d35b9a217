"""Threads: save, get, list, update, transfer, delete."""

from collections.abc import Mapping
from typing import Any, Literal, get_args

from django.db.models import QuerySet

from mastra_memory import working_memory
from mastra_memory.content import limits
from mastra_memory.db import json_text, routing, sql
from mastra_memory.db.identifiers import check_id, check_metadata_keys
from mastra_memory.db.sql import NEXT_UPDATED_AT
from mastra_memory.exceptions import AccessDenied, ConcurrentUpdate, Conflict, ThreadNotFound
from mastra_memory.models import Thread
from mastra_memory.models.fields import new_id
from mastra_memory.types import StoredThread, ThreadPage

RESERVED_METADATA_KEYS = ["clone", "mastra", "workingMemory", "titlePinned"]
"""Metadata that replacing leaves alone unless it is named."""

CREATED_COLUMN, UPDATED_COLUMN = sql.format_time("t.created_at"), sql.format_time("t.updated_at")
THREAD_COLUMNS = (
    f"t.id, t.resource_id, t.title, t.metadata::text, {CREATED_COLUMN}, {UPDATED_COLUMN}"
)
"""What a `StoredThread` is made of, in its order, for a thread without working memory."""

# New threads name no key after ON CONFLICT: of two unique indexes that hold the id, naming one
# lets two inserts of the same id wait for each other.

# Thread-scoped working memory lives in its own table and is shown as a key of the metadata.
_COLUMNS = f"""t.id, t.resource_id, t.title,
    (CASE WHEN w.content IS NULL THEN t.metadata ELSE
        coalesce(t.metadata, '{{}}') || jsonb_build_object('workingMemory', w.content)
    END)::text, {CREATED_COLUMN}, {UPDATED_COLUMN}"""
_WORKING_MEMORY = """LEFT JOIN mastra_memory_workingmemory w
    ON w.thread_id = t.id AND w.content <> ''"""
_SELECT = f"SELECT {_COLUMNS} FROM mastra_memory_thread t {_WORKING_MEMORY}"

OrderField = Literal["created_at", "updated_at"]
Direction = Literal["ASC", "DESC"]


def find_thread(thread_id: str) -> StoredThread | None:
    """The thread, or None."""
    found = sql.fetch_all_prepared(f"{_SELECT} WHERE t.id = %s", [json_text.clean_text(thread_id)])
    return StoredThread(*found[0]) if found else None


def get_thread(thread_id: str, *, resource_id: str | None = None) -> StoredThread:
    """The thread. Raises `ThreadNotFound`, and `AccessDenied` if `resource_id` is not its owner."""
    thread = find_thread(thread_id)
    if thread is None:
        raise ThreadNotFound
    if resource_id is not None and thread.resource_id != resource_id:
        raise AccessDenied
    return thread


def list_threads(
    *,
    resource_id: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    within: QuerySet[Thread] | None = None,
    page: int = 0,
    per_page: int | Literal[False] = 100,
    order_by: OrderField = "created_at",
    direction: Direction = "DESC",
) -> ThreadPage:
    """One page of threads in one statement.

    `metadata` keeps threads that contain it; `within` narrows to a queryset's. `per_page` False
    means all. An order that is none is the default. Ties of time are broken by id. Raises
    `InvalidInput` for a bad key or page.
    """
    limit, offset = sql.get_limit_offset(page, per_page)
    where = _list_condition(resource_id, metadata, within)
    field = order_by if order_by in get_args(OrderField) else "created_at"
    way = direction if direction in get_args(Direction) else "DESC"
    order = f"{field} {way}, id {way}"  # nothing else may reach the statement
    read = sql.fetch_all_prepared if within is None else sql.fetch_all
    found = read(
        f"""WITH total AS (SELECT count(*) AS total FROM mastra_memory_thread t WHERE {where}),
            page AS (SELECT t.* FROM mastra_memory_thread t WHERE {where}
                ORDER BY {order} LIMIT %s OFFSET %s)
        SELECT total.total, {_COLUMNS}
        FROM total LEFT JOIN page t ON TRUE {_WORKING_MEMORY}
        ORDER BY t.{order.replace(", ", ", t.")}""",
        [*where.params, *where.params, limit, offset],
    )
    threads = [StoredThread(*cells[1:]) for cells in found if cells[1] is not None]
    total = found[0][0]
    has_more = per_page is not False and offset + len(threads) < total
    return ThreadPage(threads, total, page, per_page, has_more)


def _list_condition(
    resource_id: str | None, metadata: Mapping[str, Any] | None, within: QuerySet[Thread] | None
) -> sql.Where:
    where = sql.Where()
    if resource_id is not None:
        where.add("t.resource_id = %s", json_text.clean_text(resource_id))
    if metadata:
        check_metadata_keys(metadata, "metadata")
        where.add("t.metadata @> %s::jsonb", json_text.dumps(metadata))
    if within is not None:
        statement, params = within.order_by().values("pk").query.sql_with_params()
        where.add(f"t.id IN ({statement})", *params)
    return where


def create_thread(
    resource_id: str,
    *,
    thread_id: str | None = None,
    title: str = "",
    metadata: Mapping[str, Any] | None = None,
    share_memory: bool = False,
) -> StoredThread:
    """A new thread; an existing one of this resource with this id comes back unchanged.

    Working memory given in the metadata is the thread's, with `share_memory` its resource's too.
    Raises `Conflict` when the id is another resource's.
    """
    thread_id = check_id(thread_id, "threadId") if thread_id else new_id()
    resource_id = check_id(resource_id, "resourceId")
    title = limits.check_title(title)
    memory, kept = working_memory.pop_from_metadata(metadata)
    with routing.atomic():
        made = sql.fetch_one(
            f"""INSERT INTO mastra_memory_thread AS t
                (id, resource_id, title, title_source, metadata)
            VALUES (%s, %s, %s, %s, %s::jsonb) ON CONFLICT DO NOTHING
            RETURNING {THREAD_COLUMNS}""",
            [thread_id, resource_id, title, _source_of(title), _json_or_none(kept)],
        )
        if made and memory is not None:
            working_memory.save_for_thread(thread_id, resource_id, memory, source="api")
        if made and memory and share_memory:
            working_memory.save_for_resource(resource_id, memory, source="api")
    if made and memory is None:
        return StoredThread(*made)
    existing = find_thread(thread_id)
    if existing is None:
        raise ConcurrentUpdate  # It existed a moment ago, and was deleted since.
    if existing.resource_id != resource_id:
        raise Conflict(f"Thread with id {thread_id} belongs to another resource")
    return existing


def save_thread(
    thread_id: str,
    resource_id: str,
    *,
    title: str = "",
    metadata: Mapping[str, Any] | None = None,
) -> StoredThread:
    """Insert the thread or replace its title and metadata; its `created_at` is kept.

    Raises `Conflict` when the id is another resource's.
    """
    thread_id, resource_id = check_id(thread_id, "id"), check_id(resource_id, "resourceId")
    title = limits.check_title(title)
    memory, kept = working_memory.pop_from_metadata(metadata)
    new = [title, _source_of(title), _json_or_none(kept)]
    with routing.atomic():
        saved = sql.execute(
            """INSERT INTO mastra_memory_thread (id, resource_id, title, title_source, metadata)
            VALUES (%s, %s, %s, %s, %s::jsonb) ON CONFLICT DO NOTHING""",
            [thread_id, resource_id, *new],
        ) or sql.execute(
            f"""UPDATE mastra_memory_thread SET title = %s,
                title_source = CASE WHEN title = %s THEN title_source ELSE %s END,
                metadata = %s::jsonb, updated_at = {NEXT_UPDATED_AT}
                WHERE id = %s AND resource_id = %s""",
            [title, *new, thread_id, resource_id],
        )
        if not saved:
            raise Conflict(f"Thread with id {thread_id} belongs to another resource")
        if memory is not None:
            working_memory.save_for_thread(thread_id, resource_id, memory, source="python")
    return get_thread(thread_id)


def update_thread(
    thread_id: str,
    *,
    title: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    merge: bool = True,
    title_source: str = Thread.TitleSource.MANUAL,
) -> StoredThread:
    """Change what is given; `updated_at` moves in any case.

    Metadata is merged key by key in one statement, so that parallel updates lose nothing, or with
    `merge=False` replaced, where `RESERVED_METADATA_KEYS` stay unless they are named. Raises
    `ThreadNotFound`.
    """
    thread_id = json_text.clean_text(thread_id)
    memory, kept = working_memory.pop_from_metadata(metadata)
    changes = [f"updated_at = {NEXT_UPDATED_AT}"]
    params: list[Any] = []
    if title is not None:
        title = limits.check_title(title)
        changes.append("title = %s, title_source = %s")
        params += [title, title_source if title else ""]
    if kept is not None:
        changes.append(f"metadata = {_MERGED if merge else _REPLACED}")
        named = [key for key in RESERVED_METADATA_KEYS if key in (metadata or {})]
        stay = [key for key in RESERVED_METADATA_KEYS if key not in named]
        params += [named if merge else stay, json_text.dumps(kept)]
    with routing.atomic():
        found = sql.fetch_one(
            f"""UPDATE mastra_memory_thread SET {", ".join(changes)} WHERE id = %s
            RETURNING resource_id""",
            [*params, thread_id],
        )
        if found is None:
            raise ThreadNotFound
        if memory is not None:
            working_memory.save_for_thread(thread_id, found[0], memory, source="api")
        return get_thread(thread_id)


def touch_thread(thread_id: str) -> StoredThread:
    """Move the thread's `updated_at` and nothing else. Raises `ThreadNotFound`."""
    return update_thread(thread_id)


# A reserved key that is named goes even where its new value is kept apart: working memory.
_MERGED = "(coalesce(metadata, '{}') - %s::text[]) || %s::jsonb"
_REPLACED = """coalesce((SELECT jsonb_object_agg(key, value) FROM jsonb_each(metadata)
    WHERE key = ANY(%s)), '{}') || %s::jsonb"""


def transfer_thread(thread_id: str, resource_id: str) -> StoredThread:
    """Give the thread, and in the database all that hangs on it, to another resource.

    `created_at` stays; nothing changes when the resource has it already. Raises `ThreadNotFound`.
    """
    resource_id = check_id(resource_id, "resourceId")
    sql.execute(
        f"""UPDATE mastra_memory_thread SET resource_id = %s, updated_at = {NEXT_UPDATED_AT}
        WHERE id = %s AND resource_id <> %s""",
        [resource_id, json_text.clean_text(thread_id), resource_id],
    )
    return get_thread(thread_id)


def delete_thread(thread_id: str) -> bool:
    """Delete the thread with all that hangs on it; False when there was none."""
    statement = "DELETE FROM mastra_memory_thread WHERE id = %s"
    return bool(sql.execute(statement, [json_text.clean_text(thread_id)]))


def _source_of(title: str) -> str:
    return Thread.TitleSource.MANUAL if title else Thread.TitleSource.NONE


def _json_or_none(value: Mapping[str, Any] | None) -> str | None:
    return None if value is None else json_text.dumps(value)
