"""History: one page of a thread's messages, with ownership and total in the same statement."""

from typing import Any, Literal

from mastra_memory.db import identifiers, json_text, sql
from mastra_memory.exceptions import AccessDenied, InvalidInput, Issue, ThreadNotFound
from mastra_memory.messages import MESSAGE_COLUMNS
from mastra_memory.recall import limits
from mastra_memory.types import MessageFilter, MessagePage, StoredMessage

DEEP_OFFSET = 200
"""From this offset on a page is found in the index first, and only its rows are read."""


def read_page(
    thread_id: str,
    *,
    resource_id: str | None = None,
    page: int = 0,
    per_page: int | Literal[False],
    newest_first: bool = False,
    message_filter: MessageFilter | None = None,
    include_total: bool = True,
) -> MessagePage:
    """One page of the thread, in the order of reading; one statement.

    `per_page` False means everything. Without `include_total`, `total` counts what was passed so
    far, and one row more than the page is read to know whether more follow. A page ends early
    where its messages reach `MAX_PAGE_BYTES`; then its `page` and `per_page` differ from what was
    asked for, and the next page of that size continues right after it.
    Raises `ThreadNotFound`, and `AccessDenied` if `resource_id` is not the owner.
    """
    limit, offset = sql.get_limit_offset(page, per_page)
    where = build_filter_condition(message_filter)
    found = sql.fetch_all_prepared(
        *_statement(thread_id, where, limit, offset, newest_first, include_total)
    )
    if not found:
        raise ThreadNotFound
    if resource_id is not None and found[0][0] != resource_id:
        raise AccessDenied
    messages = [StoredMessage(*cells[2:-1]) for cells in found if cells[2] is not None]
    reached_bytes = limit is not None and limits.reaches_page_bytes(messages)
    if include_total:
        total = found[0][1]
        has_more = limit is not None and offset + min(limit, len(messages)) < total
    else:
        has_more = limit is not None and (len(messages) > limit or reached_bytes)
        messages = messages[:limit]
        total = offset + len(messages)
    if has_more and reached_bytes and per_page is not False and len(messages) < per_page:
        return short_page(messages, offset, total)
    return MessagePage(messages, total, page, per_page, has_more)


def short_page(messages: list[StoredMessage], offset: int, total: int) -> MessagePage:
    """Return a page that ends early, numbered so that the next page continues where it ends.

    Pages are numbered by their size, so the size has to divide the offset: a client that asks for
    `page + 1` with the `per_page` of this answer misses nothing.
    """
    size = len(messages)
    while offset % size:
        size -= 1
    return MessagePage(messages[:size], total, offset // size, size, has_more=True)


def build_filter_condition(wanted: MessageFilter | None) -> sql.Where:
    """The filter as SQL on `m`. Raises `InvalidInput` for a bad metadata key or value."""
    where, wanted = sql.Where(), wanted or MessageFilter()
    if wanted.start is not None:
        where.add(f"m.created_at {'>' if wanted.start_exclusive else '>='} %s", wanted.start)
    if wanted.end is not None:
        where.add(f"m.created_at {'<' if wanted.end_exclusive else '<='} %s", wanted.end)
    if wanted.roles is not None:
        where.add("m.role = ANY(%s)", list(wanted.roles))
    identifiers.check_metadata_keys(wanted.metadata, "filter.metadata")
    for key, value in wanted.metadata.items():
        if not isinstance(value, str | int | float | bool | None):
            reason = "expected text, a number, a boolean or null"
            path = f"filter.metadata.{key}"
            raise InvalidInput(f"{path}: {reason}", [Issue(path, reason)])
        where.add("m.content -> 'metadata' -> %s = %s::jsonb", key, json_text.dumps(value))
    return where


def _statement(
    thread_id: str,
    where: sql.Where,
    limit: int | None,
    offset: int,
    newest_first: bool,
    include_total: bool,
) -> tuple[str, list[Any]]:
    order = "m.created_at DESC, m.sequence DESC" if newest_first else "m.created_at, m.sequence"
    read = None if limit is None else min(limit + (not include_total), sql.MAX_PAGE)
    thread_id = json_text.clean_text(thread_id)
    chosen = f"""FROM mastra_memory_message m WHERE m.thread_id = %s AND {where}
        ORDER BY {order} LIMIT %s OFFSET %s"""
    if offset >= DEEP_OFFSET and not where.conditions:
        chosen = f"""FROM (SELECT m.thread_id, m.created_at, m.sequence {chosen}) AS key
            JOIN mastra_memory_message m USING (thread_id, created_at, sequence)"""
    total, counted = "0", []
    if include_total:
        total = f"""(SELECT count(*) FROM mastra_memory_message m
            WHERE m.thread_id = %s AND {where})"""
        counted = [thread_id, *where.params]
    order = order.replace("m.created_at", "p.created").replace("m.", "p.")
    # The running sum of bytes ends a page before a few huge messages fill the memory of the web
    # process. Its order is the order of the answer, so it costs no sort of its own.
    return (
        f"""WITH owner AS MATERIALIZED (
            SELECT t.resource_id, {total} AS total FROM mastra_memory_thread t WHERE t.id = %s)
        SELECT owner.resource_id, owner.total, p.*
        FROM owner LEFT JOIN (
            SELECT * FROM (
                SELECT p.*, {limits.bytes_before("p.content", order)} AS bytes_before
                FROM (SELECT {MESSAGE_COLUMNS} {chosen}) p) p
            WHERE p.bytes_before < %s) p ON TRUE
        ORDER BY {order}""",
        [
            *counted,
            thread_id,
            thread_id,
            *where.params,
            read,
            min(offset, sql.MAX_PAGE),
            sql.MAX_PAGE if limit is None else limits.page_bytes(),
        ],
    )
