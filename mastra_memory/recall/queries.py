"""The SQL of recall.

Values are always passed as parameters; only names and SQL fragments are interpolated.

Statements that read pages of messages keep a running sum of the bytes of their content and stop at
`MAX_PAGE_BYTES`, so that a few huge messages do not fill the memory of a web process. They are
not written with the ORM, which cannot select from a subquery with a window function.
"""

from collections.abc import Sequence
from typing import Any

from mastra_memory.db import json_text, sql
from mastra_memory.messages import MESSAGE_COLUMNS
from mastra_memory.recall import limits
from mastra_memory.search.queries import build_neighbours
from mastra_memory.search.scope import VISIBLE
from mastra_memory.types import Include, StoredMessage

_ROW_COLUMNS = """m.id, m.thread_id, m.resource_id, m.role, m.type, m.content, m.content_bytes,
    m.created_at, m.sequence, m.signal"""
"""The columns from which `MESSAGE_COLUMNS` are computed, and the size of the content."""

DEEP_OFFSET = 200
"""From this offset on, the keys of a page are read from the index first, then its rows."""


def _end_at_bytes(rows: str, order: str) -> str:
    """Return SQL for the messages `m` of a query that ends when they reach a number of bytes.

    This number is one more parameter, after those of `rows`. At least one message is returned. The
    bytes are those of the column `content_bytes`, so the content of a message is read only if the
    message is returned.

    Args:
        rows: A query for `_ROW_COLUMNS`.
        order: The order of the messages, as columns of `m`.
    """
    return f"""(SELECT * FROM (
        SELECT m.*, sum(m.content_bytes) OVER (ORDER BY {order} ROWS UNBOUNDED PRECEDING)
            - m.content_bytes AS bytes_before
        FROM ({rows}) m) m
        WHERE m.bytes_before < %s) m"""


def _get_max_bytes(limit: int | None) -> int:
    """Return the number of bytes at which a page ends; without a `limit` it never ends early."""
    return sql.MAX_PAGE if limit is None else limits.get_max_page_bytes()


def read_history_page(
    thread_id: str,
    where: sql.Where,
    *,
    limit: int | None,
    offset: int,
    newest_first: bool,
    include_total: bool,
) -> list[sql.SqlRow]:
    """Return one row per message: the thread's owner, the total, and the `StoredMessage`.

    An empty page has one row without a message. If the thread does not exist, there is no row. This
    is the most frequent statement of an agent, so it reads owner, total and page together. Without
    `include_total`, the total is 0, and one more message than `limit` is read to find out whether
    more follow. Without a `limit` the page may have any size.
    """
    order = "m.created_at DESC, m.sequence DESC" if newest_first else "m.created_at, m.sequence"
    row_limit = None if limit is None else min(limit + (not include_total), sql.MAX_PAGE)
    thread_id = json_text.clean_text(thread_id)
    page = f"""FROM mastra_memory_message m WHERE m.thread_id = %s AND {where}
        ORDER BY {order} LIMIT %s OFFSET %s"""
    if offset >= DEEP_OFFSET and not where.conditions:
        # An index-only scan skips the rows before the page without reading them.
        page = f"""FROM (SELECT m.thread_id, m.created_at, m.sequence {page}) AS key
            JOIN mastra_memory_message m USING (thread_id, created_at, sequence)"""
    total, total_params = "0", []
    if include_total:
        total = f"""(SELECT count(*) FROM mastra_memory_message m
            WHERE m.thread_id = %s AND {where})"""
        total_params = [thread_id, *where.params]
    return sql.fetch_all_prepared(
        # The running sum and the result have the same order, so the rows are sorted once.
        f"""WITH owner AS MATERIALIZED (
            SELECT t.resource_id, {total} AS total FROM mastra_memory_thread t WHERE t.id = %s)
        SELECT owner.resource_id, owner.total, {MESSAGE_COLUMNS}
        FROM owner LEFT JOIN {_end_at_bytes(f"SELECT {_ROW_COLUMNS} {page}", order)} ON TRUE
        ORDER BY {order}""",
        [
            *total_params,
            thread_id,
            thread_id,
            *where.params,
            row_limit,
            min(offset, sql.MAX_PAGE),
            _get_max_bytes(limit),
        ],
    )


def read_page_of_threads(
    where: sql.Where, *, limit: int | None, offset: int, newest_first: bool
) -> tuple[int, list[StoredMessage]]:
    """Return how many messages match, and one page of them by time, in one statement.

    `where` uses the alias `m` for messages.
    """
    order = "m.created_at DESC, m.sequence DESC" if newest_first else "m.created_at, m.sequence"
    page = _end_at_bytes(
        f"""SELECT {_ROW_COLUMNS} FROM mastra_memory_message m WHERE {where}
            ORDER BY {order} LIMIT %s OFFSET %s""",
        order,
    )
    rows = sql.fetch_all(
        f"""WITH total AS (SELECT count(*) AS total FROM mastra_memory_message m WHERE {where})
        SELECT total.total, {MESSAGE_COLUMNS} FROM total LEFT JOIN {page} ON TRUE
        ORDER BY {order}""",
        [
            *where.params,
            *where.params,
            limit,
            offset,
            _get_max_bytes(limit),
        ],
    )
    return rows[0][0], [StoredMessage(*row[1:]) for row in rows if row[1] is not None]


def list_newest(where: sql.Where, limit: int, *, is_frequent: bool = False) -> list[StoredMessage]:
    """Return the newest messages that match, newest first. `where` uses the alias `m`.

    `is_frequent` says that the statement often has the same text; see `sql.fetch_all_prepared`.
    """
    order = "m.created_at DESC, m.sequence DESC"
    newest = f"""SELECT {_ROW_COLUMNS} FROM mastra_memory_message m WHERE {where}
        ORDER BY {order} LIMIT %s"""
    read = sql.fetch_all_prepared if is_frequent else sql.fetch_all
    rows = read(
        f"SELECT {MESSAGE_COLUMNS} FROM {_end_at_bytes(newest, order)} ORDER BY {order}",
        [*where.params, limit, limits.get_max_page_bytes()],
    )
    return [StoredMessage(*row) for row in rows]


def read_windows(includes: Sequence[Include], resource_id: str) -> list[StoredMessage]:
    """Return the messages of all windows, each once, oldest first.

    The keys are read first, from the index alone. So each message is read once, even if windows
    overlap.
    """
    neighbours = build_neighbours(
        "target", "m.thread_id, m.created_at, m.sequence", before="w.before", after="w.after"
    )
    order = "m.created_at, m.sequence"
    messages = f"""SELECT {_ROW_COLUMNS} FROM keys k CROSS JOIN LATERAL (
        SELECT * FROM mastra_memory_message m WHERE m.thread_id = k.thread_id
        AND m.created_at = k.created_at AND m.sequence = k.sequence LIMIT 1) m"""
    rows = sql.fetch_all(
        f"""WITH keys AS (
            SELECT DISTINCT k.thread_id, k.created_at, k.sequence
            FROM unnest(%s::text[], %s::bigint[], %s::bigint[]) AS w(id, before, after)
            JOIN mastra_memory_message target ON target.id = w.id AND target.resource_id = %s
            CROSS JOIN LATERAL (
                SELECT target.thread_id, target.created_at, target.sequence
                UNION ALL {neighbours}
            ) k)
        SELECT {MESSAGE_COLUMNS} FROM {_end_at_bytes(messages, order)} ORDER BY {order}""",
        [
            [json_text.clean_text(include.id) for include in includes],
            [max(include.before, 0) for include in includes],
            [max(include.after, 0) for include in includes],
            resource_id,
            limits.get_max_page_bytes(),
        ],
    )
    return [StoredMessage(*row) for row in rows]


def list_newest_of_threads(thread_ids: Sequence[str], limit: int) -> list[StoredMessage]:
    """Return the visible messages among the newest `limit` of each thread, oldest first.

    This is SQL because the ORM has no limit per group.
    """
    rows = sql.fetch_all(
        f"""SELECT {MESSAGE_COLUMNS} FROM unnest(%s::text[]) AS t(id) CROSS JOIN LATERAL (
            SELECT * FROM mastra_memory_message m WHERE m.thread_id = t.id
            ORDER BY m.created_at DESC, m.sequence DESC LIMIT %s) m
        WHERE {VISIBLE} ORDER BY m.thread_id, m.created_at, m.sequence""",
        [list(thread_ids), limit],
    )
    return [StoredMessage(*row) for row in rows]


def save_cursor(
    thread_id: str, key: str, cursor: dict[str, Any], limit_values: dict[str, int]
) -> None:
    """Store a cursor in the thread's metadata, unless the stored one is later.

    One statement compares and writes, because two turns of a thread may finish at the same time. A
    stored cursor with limits other than `limit_values` is always replaced.
    """
    sql.execute(
        """UPDATE mastra_memory_thread
        SET metadata = coalesce(metadata, '{}') || jsonb_build_object(%s::text, %s::jsonb)
        WHERE id = %s AND NOT coalesce(metadata -> %s @> %s::jsonb
            AND metadata -> %s ->> 'createdAt' > %s, FALSE)""",
        [
            *(key, json_text.dumps(cursor), json_text.clean_text(thread_id)),
            *(key, json_text.dumps(limit_values), key, cursor["createdAt"]),
        ],
    )
