"""Read one page of a thread's messages, with the owner and the total, in one statement."""

from typing import Literal

from mastra_memory.db import identifiers, json_text, sql
from mastra_memory.exceptions import AccessDenied, InvalidInput, Issue, ThreadNotFound
from mastra_memory.recall import limits, queries
from mastra_memory.types import MessageFilter, MessagePage, StoredMessage


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
    """Return one page of the thread, in the order of the pages, with one statement.

    A page ends early if its messages reach `MAX_PAGE_BYTES`. Its `page` and `per_page` then differ
    from the request, and the next page of that size continues after it.

    Args:
        thread_id: The thread.
        resource_id: If given, it must be the owner of the thread.
        page: The number of the page, from 0.
        per_page: Messages per page; False for all.
        newest_first: Whether pages start at the newest message.
        message_filter: Only messages that match.
        include_total: False skips the count. `total` is then the number of messages up to and
            including this page.

    Raises:
        ThreadNotFound: The thread does not exist.
        AccessDenied: `resource_id` is not the owner of the thread.
        InvalidInput: The page or the filter is invalid.
    """
    limit, offset = sql.get_limit_offset(page, per_page)
    rows = queries.read_history_page(
        thread_id,
        build_filter_condition(message_filter),
        limit=limit,
        offset=offset,
        newest_first=newest_first,
        include_total=include_total,
    )
    if not rows:
        raise ThreadNotFound
    owner, counted = rows[0][:2]
    if resource_id is not None and owner != resource_id:
        raise AccessDenied
    messages = [StoredMessage(*row[2:]) for row in rows if row[2] is not None]
    if include_total:
        total = counted
        has_more = limit is not None and offset + min(limit, len(messages)) < total
    else:
        has_more = limit is not None and (
            len(messages) > limit or limits.reaches_page_bytes(messages)
        )
        messages = messages[:limit]
        total = offset + len(messages)
    if has_more and limit is not None and len(messages) < limit:
        return build_short_page(messages, offset, total)
    return MessagePage(messages, total, page, per_page, has_more)


def build_short_page(messages: list[StoredMessage], offset: int, total: int) -> MessagePage:
    """Return a page that ends early, numbered so that the next page continues where it ends.

    The offset of a page is its number times its size, so the new size must divide the offset. A
    client that requests `page + 1` with the returned `per_page` then gets the next messages.
    """
    size = len(messages)
    while offset % size:
        size -= 1
    return MessagePage(messages[:size], total, offset // size, size, has_more=True)


def build_filter_condition(message_filter: MessageFilter | None) -> sql.Where:
    """Return the filter as SQL, with the alias `m` for messages.

    Raises:
        InvalidInput: A metadata key is invalid, or a value is a list or an object.
    """
    where = sql.Where()
    if message_filter is None:
        return where
    if message_filter.start is not None:
        sign = ">" if message_filter.start_exclusive else ">="
        where.add(f"m.created_at {sign} %s", message_filter.start)
    if message_filter.end is not None:
        sign = "<" if message_filter.end_exclusive else "<="
        where.add(f"m.created_at {sign} %s", message_filter.end)
    if message_filter.roles is not None:
        where.add("m.role = ANY(%s)", list(message_filter.roles))
    identifiers.check_metadata_keys(message_filter.metadata, "filter.metadata")
    for key, value in message_filter.metadata.items():
        if not isinstance(value, str | int | float | bool | None):
            reason = "expected a string, a number, a boolean or null"
            path = f"filter.metadata.{key}"
            raise InvalidInput(f"{path}: {reason}", [Issue(path, reason)])
        where.add("m.content -> 'metadata' -> %s = %s::jsonb", key, json_text.dumps(value))
    return where
