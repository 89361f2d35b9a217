"""List the messages of several threads in pages, ordered by time."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from mastra_memory import conf
from mastra_memory.content import limits
from mastra_memory.db import json_text, sql
from mastra_memory.recall import history, queries
from mastra_memory.types import MessageFilter, MessagePage


def list_messages(
    thread_ids: Sequence[str],
    *,
    resource_id: str | None = None,
    page: int = 0,
    per_page: int | Literal[False] = 40,
    direction: Literal["ASC", "DESC"] | None = None,
    newest_page: bool = False,
    message_filter: MessageFilter | None = None,
) -> MessagePage:
    """Return one page of the messages of several threads, in one statement.

    Unknown threads are omitted. With `resource_id`, threads of other resources are omitted too.

    Args:
        thread_ids: The threads, at most `MAX_IDS`.
        resource_id: Only threads of this resource.
        page: The number of the page, from 0.
        per_page: Messages per page; False for all.
        direction: The order of the result. None sorts oldest first.
        newest_page: Without `direction`, count pages from the newest message.
        message_filter: Only messages that match.

    Raises:
        InvalidInput: The page or the filter is invalid, or there are too many threads.
    """
    limit, offset = sql.get_limit_offset(page, per_page)
    where = history.build_filter_condition(message_filter)
    limits.check_count(thread_ids, conf.app_settings().MAX_IDS, "threadIds")
    where.add("m.thread_id = ANY(%s)", [json_text.clean_text(key) for key in thread_ids])
    if resource_id is not None:
        where.add("m.resource_id = %s", json_text.clean_text(resource_id))
    newest_first = direction == "DESC" or (direction is None and newest_page)
    total, messages = queries.read_page_of_threads(
        where, limit=limit, offset=offset, newest_first=newest_first
    )
    messages.sort(key=lambda message: message.sort_key, reverse=newest_first)
    has_more = limit is not None and offset + len(messages) < total
    result = MessagePage(messages, total, page, per_page, has_more)
    if has_more and limit is not None and 0 < len(messages) < limit:
        result = history.build_short_page(messages, offset, total)
    ordered = sorted(result.messages, key=lambda m: m.sort_key, reverse=direction == "DESC")
    return replace(result, messages=ordered)
