"""History across threads: pages of several threads' messages, told as one conversation."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from mastra_memory import conf
from mastra_memory.content import limits
from mastra_memory.db import json_text, sql
from mastra_memory.messages import MESSAGE_COLUMNS
from mastra_memory.recall import history
from mastra_memory.recall import limits as recall_limits
from mastra_memory.types import MessageFilter, MessagePage, StoredMessage


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
    """One page of these threads' messages by time; one statement.

    Unknown threads, and with `resource_id` those of others, are left out. Without `direction` the
    page is oldest first; `newest_page` then takes the pages from the end.
    Raises `InvalidInput` for a page or a filter that cannot be.
    """
    limit, offset = sql.get_limit_offset(page, per_page)
    where = history.build_filter_condition(message_filter)
    limits.check_count(thread_ids, conf.app_settings().MAX_IDS, "threadIds")
    where.add("m.thread_id = ANY(%s)", [json_text.clean_text(one) for one in thread_ids])
    if resource_id is not None:
        where.add("m.resource_id = %s", json_text.clean_text(resource_id))
    backwards = direction == "DESC" or (direction is None and newest_page)
    found = sql.fetch_all(*_statement(where, limit, offset, "DESC" if backwards else "ASC"))
    messages = [StoredMessage(*cells[1:-1]) for cells in found if cells[1] is not None]
    messages.sort(key=lambda message: message.sort_key, reverse=backwards)
    total = found[0][0]
    has_more = limit is not None and offset + len(messages) < total
    read = MessagePage(messages, total, page, per_page, has_more)
    if has_more and limit is not None and 0 < len(messages) < limit:
        read = history.short_page(messages, offset, total)
    ordered = sorted(read.messages, key=lambda m: m.sort_key, reverse=direction == "DESC")
    return replace(read, messages=ordered)


def _statement(
    where: sql.Where, limit: int | None, offset: int, direction: str
) -> tuple[str, list[Any]]:
    before = recall_limits.bytes_before(
        "p.content", f"p.created {direction}, p.sequence {direction}"
    )
    return (
        f"""WITH total AS (SELECT count(*) AS total FROM mastra_memory_message m WHERE {where}),
            page AS (SELECT {MESSAGE_COLUMNS} FROM mastra_memory_message m WHERE {where}
                ORDER BY m.created_at {direction}, m.sequence {direction} LIMIT %s OFFSET %s)
        SELECT total.total, page.* FROM total LEFT JOIN (
            SELECT * FROM (SELECT p.*, {before} AS bytes_before FROM page p) p
            WHERE p.bytes_before < %s) page ON TRUE""",
        [
            *where.params,
            *where.params,
            limit,
            offset,
            sql.MAX_PAGE if limit is None else recall_limits.page_bytes(),
        ],
    )
