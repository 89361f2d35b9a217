"""Create, read, change, transfer and delete threads."""

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
from mastra_memory.search import tsvector
from mastra_memory.types import StoredThread, ThreadPage

RESERVED_METADATA_KEYS = ["clone", "mastra", "workingMemory", "titlePinned"]
"""Metadata keys that are kept when the metadata is replaced, unless the new metadata contains
them."""

CREATED_COLUMN, UPDATED_COLUMN = sql.format_time("t.created_at"), sql.format_time("t.updated_at")
THREAD_COLUMNS = (
    f"t.id, t.resource_id, t.title, t.metadata::text, {CREATED_COLUMN}, {UPDATED_COLUMN}"
)
"""The columns of a `StoredThread`, in its order, for a thread without working memory. JSON and
times stay text: they are passed on to clients unparsed."""

# INSERTs of threads use ON CONFLICT without a column, because two unique indexes contain the id. If
# the statement named one of them, two inserts of the same id could deadlock on the other.

# Working memory of a thread is stored in its own table and shown as a key of the metadata. SQL and
# not the ORM, because the join has a condition and the result is JSON text that is not parsed.
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
    """Return the thread, or None if it does not exist."""
    rows = sql.fetch_all_prepared(f"{_SELECT} WHERE t.id = %s", [json_text.clean_text(thread_id)])
    return StoredThread(*rows[0]) if rows else None


def get_thread(thread_id: str, *, resource_id: str | None = None) -> StoredThread:
    """Return the thread.

    Raises:
        ThreadNotFound: It does not exist.
        AccessDenied: It belongs to another resource than `resource_id`.
    """
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
    """Return a page of threads, read in one statement.

    Args:
        resource_id: Only threads of this resource.
        metadata: Only threads whose metadata contains these keys and values.
        within: Only threads of this queryset.
        page: The number of the page, starting with 0.
        per_page: Threads per page; False means all.
        order_by: An unknown `order_by` falls back to `created_at`. Ties are ordered by id.
        direction: An unknown `direction` falls back to `DESC`.

    Raises:
        InvalidInput: The page or a key of `metadata` is not valid.
    """
    limit, offset = sql.get_limit_offset(page, per_page)
    where = _build_list_condition(resource_id, metadata, within)
    field = order_by if order_by in get_args(OrderField) else "created_at"
    order_direction = direction if direction in get_args(Direction) else "DESC"
    # Only values from the lists above reach the statement.
    order = f"{field} {order_direction}, id {order_direction}"
    read = sql.fetch_all_prepared if within is None else sql.fetch_all
    rows = read(
        f"""WITH total AS (SELECT count(*) AS total FROM mastra_memory_thread t WHERE {where}),
            page AS (SELECT t.* FROM mastra_memory_thread t WHERE {where}
                ORDER BY {order} LIMIT %s OFFSET %s)
        SELECT total.total, {_COLUMNS}
        FROM total LEFT JOIN page t ON TRUE {_WORKING_MEMORY}
        ORDER BY t.{order.replace(", ", ", t.")}""",
        [*where.params, *where.params, limit, offset],
    )
    threads = [StoredThread(*cells[1:]) for cells in rows if cells[1] is not None]
    total = rows[0][0]
    has_more = per_page is not False and offset + len(threads) < total
    return ThreadPage(threads, total, page, per_page, has_more)


def _build_list_condition(
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
    save_memory_for_resource: bool = False,
) -> StoredThread:
    """Create a thread and return it. An existing thread of the resource is returned unchanged.

    Args:
        resource_id: The owner of the thread.
        thread_id: Its id; None means a new UUID.
        title: Its title.
        metadata: Its metadata. The key `workingMemory` is stored as the thread's working memory.
        save_memory_for_resource: Also store the working memory for the resource.

    Raises:
        Conflict: The id belongs to a thread of another resource.
    """
    thread_id = check_id(thread_id, "threadId") if thread_id else new_id()
    resource_id = check_id(resource_id, "resourceId")
    title = limits.check_title(title)
    memory, remaining = working_memory.pop_from_metadata(metadata)
    with routing.atomic():
        row = sql.fetch_one(
            f"""INSERT INTO mastra_memory_thread AS t
                (id, resource_id, title, title_search, title_source, metadata)
            VALUES (%s, %s, %s, {tsvector.TITLE_WORDS}, %s, %s::jsonb) ON CONFLICT DO NOTHING
            RETURNING {THREAD_COLUMNS}""",
            [
                thread_id,
                resource_id,
                title,
                *tsvector.split_title(title),
                _get_title_source(title),
                _dump_optional_json(remaining),
            ],
        )
        if row and memory is not None:
            working_memory.save_for_thread(thread_id, resource_id, memory, source="api")
        if row and memory and save_memory_for_resource:
            working_memory.save_for_resource(resource_id, memory, source="api")
        if row and memory is None:
            return StoredThread(*row)
        # Read in the same transaction: a new thread might be deleted right after the commit.
        existing = find_thread(thread_id)
    if existing is None:
        raise ConcurrentUpdate  # Another transaction has deleted it since the INSERT.
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
    """Insert the thread, or replace its title and metadata, and return it.

    Raises:
        Conflict: The id belongs to a thread of another resource.
    """
    thread_id, resource_id = check_id(thread_id, "id"), check_id(resource_id, "resourceId")
    title = limits.check_title(title)
    memory, remaining = working_memory.pop_from_metadata(metadata)
    title_words = tsvector.split_title(title)
    source, metadata_json = _get_title_source(title), _dump_optional_json(remaining)
    with routing.atomic():
        saved = sql.execute(
            f"""INSERT INTO mastra_memory_thread
                (id, resource_id, title, title_search, title_source, metadata)
            VALUES (%s, %s, %s, {tsvector.TITLE_WORDS}, %s, %s::jsonb) ON CONFLICT DO NOTHING""",
            [thread_id, resource_id, title, *title_words, source, metadata_json],
        ) or sql.execute(
            f"""UPDATE mastra_memory_thread SET title = %s,
                title_search = {tsvector.TITLE_WORDS},
                title_source = CASE WHEN title = %s THEN title_source ELSE %s END,
                metadata = %s::jsonb, updated_at = {NEXT_UPDATED_AT}
                WHERE id = %s AND resource_id = %s""",
            [title, *title_words, title, source, metadata_json, thread_id, resource_id],
        )
        if not saved and find_thread(thread_id) is None:
            raise ConcurrentUpdate  # Another transaction has deleted it since the INSERT.
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
    """Change title, metadata or both, and return the thread. `updated_at` always changes.

    Args:
        thread_id: The thread.
        title: The new title; None leaves it as it is.
        metadata: The new metadata; None leaves it as it is.
        merge: Merge the metadata key by key, in one statement, so that concurrent updates of other
            keys are kept. False replaces it, but keeps `RESERVED_METADATA_KEYS` that it does not
            contain.
        title_source: Where the title comes from.

    Raises:
        ThreadNotFound: The thread does not exist.
    """
    thread_id = json_text.clean_text(thread_id)
    memory, remaining = working_memory.pop_from_metadata(metadata)
    changes = [f"updated_at = {NEXT_UPDATED_AT}"]
    params: list[Any] = []
    if title is not None:
        title = limits.check_title(title)
        changes.append(f"title = %s, title_search = {tsvector.TITLE_WORDS}, title_source = %s")
        params += [title, *tsvector.split_title(title), title_source if title else ""]
    if remaining is not None:
        changes.append(f"metadata = {_MERGED_METADATA if merge else _REPLACED_METADATA}")
        given_keys = [key for key in RESERVED_METADATA_KEYS if key in (metadata or {})]
        kept_keys = [key for key in RESERVED_METADATA_KEYS if key not in given_keys]
        params += [given_keys if merge else kept_keys, json_text.dumps(remaining)]
    with routing.atomic():
        row = sql.fetch_one(
            f"""UPDATE mastra_memory_thread SET {", ".join(changes)} WHERE id = %s
            RETURNING resource_id""",
            [*params, thread_id],
        )
        if row is None:
            raise ThreadNotFound
        if memory is not None:
            working_memory.save_for_thread(thread_id, row[0], memory, source="api")
        return get_thread(thread_id)


def touch_thread(thread_id: str) -> StoredThread:
    """Change only the thread's `updated_at`, or raise `ThreadNotFound`."""
    return update_thread(thread_id)


# SQL and not the ORM, because the database merges the JSON. Reserved keys of the new metadata are
# removed first. This matters for `workingMemory`, whose new value is stored in another table.
_MERGED_METADATA = "(coalesce(metadata, '{}') - %s::text[]) || %s::jsonb"
_REPLACED_METADATA = """coalesce((SELECT jsonb_object_agg(key, value) FROM jsonb_each(metadata)
    WHERE key = ANY(%s)), '{}') || %s::jsonb"""


def transfer_thread(thread_id: str, resource_id: str) -> StoredThread:
    """Transfer the thread to another resource, and return it.

    Foreign keys with ON UPDATE CASCADE, and triggers, update everything that belongs to the thread.
    `lastObservedAt` is removed from the metadata, because the observations of the new owner do not
    include this thread yet. Nothing changes if the resource owns the thread already.

    Raises:
        ThreadNotFound: The thread does not exist.
    """
    resource_id = check_id(resource_id, "resourceId")
    with routing.atomic():
        sql.execute(
            f"""UPDATE mastra_memory_thread SET resource_id = %s, updated_at = {NEXT_UPDATED_AT},
                metadata = CASE WHEN metadata #> '{{mastra,om,lastObservedAt}}' IS NOT NULL
                    THEN metadata #- '{{mastra,om,lastObservedAt}}' ELSE metadata END
            WHERE id = %s AND resource_id <> %s""",
            [resource_id, json_text.clean_text(thread_id), resource_id],
        )
        return get_thread(thread_id)


def delete_thread(thread_id: str) -> bool:
    """Delete the thread and everything that refers to it; return False if it did not exist."""
    statement = "DELETE FROM mastra_memory_thread WHERE id = %s"
    return bool(sql.execute(statement, [json_text.clean_text(thread_id)]))


def _get_title_source(title: str) -> str:
    return Thread.TitleSource.MANUAL if title else Thread.TitleSource.NONE


def _dump_optional_json(value: Mapping[str, Any] | None) -> str | None:
    return None if value is None else json_text.dumps(value)
