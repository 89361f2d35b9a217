"""The SQL of this package. Each docstring gives the reason for not using the ORM."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

from django.db.models import QuerySet
from django.db.models.expressions import RawSQL
from django.utils import timezone

from mastra_memory import conf
from mastra_memory.db import sql
from mastra_memory.models import ExportJob, Message, Thread
from mastra_memory.search.fields import HAS_FIELDS, MessageWords


def find_clone_root(thread_id: str, *, max_depth: int) -> str:
    """Return the id of the oldest source of a thread, which may have been deleted.

    The ORM has no recursive queries.
    """
    row = sql.fetch_one(
        """WITH RECURSIVE up (id, source, depth) AS (
            SELECT id, clone_source_id, 0 FROM mastra_memory_thread WHERE id = %s
            UNION ALL
            SELECT t.id, t.clone_source_id, depth + 1
            FROM up JOIN mastra_memory_thread t ON t.id = up.source WHERE depth < %s)
        SELECT coalesce(source, id) FROM up ORDER BY depth DESC LIMIT 1""",
        [thread_id, max_depth],
    )
    return row[0] if row else thread_id


def list_clones(root_id: str, *, max_depth: int, limit: int) -> list[tuple[str, str]]:
    """Return the root and all its direct and indirect clones, each with the id of its source.

    The closest generations come first, and the oldest threads within each. The root has the
    source "". The ORM has no recursive queries.
    """
    rows = sql.fetch_all(
        """WITH RECURSIVE down (id, source, depth, created_at) AS (
            SELECT %s::text COLLATE "C", ''::text COLLATE "C", 0, NULL::timestamptz
            UNION ALL
            SELECT t.id, t.clone_source_id, depth + 1, t.created_at
            FROM down JOIN mastra_memory_thread t ON t.clone_source_id = down.id
            WHERE depth < %s)
        SELECT id, source FROM down ORDER BY depth, created_at, id LIMIT %s""",
        [root_id, max_depth, limit],
    )
    return [(thread_id, source_id) for thread_id, source_id in rows]


def try_lock_export(job_id: int, *, lock_class: int) -> bool:
    """Take the advisory lock of an export job; return False if another connection holds it.

    PostgreSQL releases it when the connection ends, so that a dead worker holds no lock. The ORM
    has no advisory locks.
    """
    row = sql.fetch_one("SELECT pg_try_advisory_lock(%s, %s)", [lock_class, job_id % 2**31])
    return bool(row and row[0])


def unlock_export(job_id: int, *, lock_class: int) -> None:
    """Release the lock that `try_lock_export` took on this connection."""
    sql.fetch_one("SELECT pg_advisory_unlock(%s, %s)", [lock_class, job_id % 2**31])


def list_stale_exports() -> list[int]:
    """Return the keys of finished exports that contain a thread that no longer exists.

    The ORM cannot join the elements of a JSON array.
    """
    rows = sql.fetch_all(
        """SELECT j.id FROM mastra_memory_exportjob j WHERE j.state = %s AND EXISTS (
            SELECT FROM jsonb_array_elements_text(j.thread_ids) AS held (id)
            WHERE NOT EXISTS (SELECT FROM mastra_memory_thread t WHERE t.id = held.id))""",
        [ExportJob.State.DONE],
    )
    return [pk for (pk,) in rows]


def load_searched_texts(
    message_ids: Sequence[str], *, characters: int, total_bytes: int
) -> list[tuple[str, str, str]]:
    """Return id, beginning of the text and content of messages, until they reach a total size.

    The content is an empty object if it has only text. The running total follows the order of
    `message_ids`, and the ORM cannot join a list of values.
    """
    return sql.fetch_all(
        """SELECT id, left(text, %s), CASE WHEN has_fields THEN content::text ELSE '{}' END
        FROM (SELECT m.id, m.text, m.content, f.has_fields,
                sum(least(octet_length(m.text), 4 * %s) + f.has_fields::int * m.content_bytes)
                    OVER (ORDER BY w.position) AS bytes
            FROM unnest(%s::text[]) WITH ORDINALITY AS w (id, position)
            JOIN mastra_memory_message m ON m.id = w.id
            CROSS JOIN LATERAL (SELECT m.search @@ %s::tsquery AS has_fields) AS f) AS hits
        WHERE bytes <= %s""",
        [characters, characters, list(message_ids), HAS_FIELDS, total_bytes],
    )


def list_matching_texts(
    texts: Mapping[str, MessageWords], conditions: Sequence[str]
) -> list[tuple[str, int]]:
    """Return pairs of a key and the index of a condition that its text meets.

    The texts are not stored anywhere, so there is no table for the ORM to query.
    """
    columns = [list(column) for column in zip(*texts.values(), strict=True)] or [[], [], []]
    return sql.fetch_all(
        """SELECT t.key, (c.position - 1)::int FROM (
            SELECT key, mastra_memory_vector(%s::regconfig, words, errors, fields) AS vector
            FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[])
                AS u (key, words, errors, fields)) AS t
        JOIN unnest(%s::text[]) WITH ORDINALITY AS c (condition, position)
            ON t.vector @@ c.condition::tsquery""",
        [conf.app_settings().SEARCH_LANGUAGE, list(texts), *columns, list(conditions)],
    )


def list_newest_matches(
    threads: QuerySet[Thread], messages: QuerySet[Message], *, limit: int
) -> list[tuple[str, str]]:
    """Return thread ids with the id of the newest of the messages in each thread.

    Reads each thread through its own range of an index. The ORM has no lateral joins, and
    DISTINCT ON would read every matching message of the threads.
    """
    statement, params = threads.values("pk").query.sql_with_params()
    newest = messages.filter(thread_id=RawSQL("t.id", ())).order_by("-created_at", "-sequence")
    message_statement, message_params = newest.values("pk")[:1].query.sql_with_params()
    return sql.fetch_all(
        f"""SELECT t.id, m.id FROM ({statement}) AS t (id)
        CROSS JOIN LATERAL ({message_statement}) AS m (id) LIMIT %s""",
        [*params, *message_params, limit],
    )


def list_previews(
    thread_ids: Sequence[str], *, max_messages: int, characters: int
) -> list[tuple[str, int, str, str, datetime | None]]:
    """Return id, message count, and role, text and time of the newest message of each thread.

    Counts are limited to `max_messages` and texts to `characters`. The ORM has no lateral joins: it
    would need a subquery for each column or a statement for each thread.
    """
    return sql.fetch_all(
        f"""SELECT t.id, c.n, coalesce(p.role, ''), coalesce(p.text, ''),
            {sql.in_utc("p.created_at")}
        FROM unnest(%s::text[]) AS t (id)
        CROSS JOIN LATERAL (SELECT count(*) AS n FROM (SELECT FROM mastra_memory_message
            WHERE thread_id = t.id LIMIT %s) AS few) AS c
        LEFT JOIN LATERAL (SELECT role, left(text, %s) AS text, created_at
            FROM mastra_memory_message
            WHERE thread_id = t.id AND text <> ''
            ORDER BY created_at DESC, sequence DESC LIMIT 1) AS p ON TRUE""",
        [list(thread_ids), max_messages, characters],
    )


def count_by_day(rows: QuerySet[Any, Any], column: str) -> dict[date, int]:
    """Return how many of the rows fall on each day in the current time zone.

    `rows` is a queryset of one column. It may have a limit, and the ORM cannot group limited rows.
    """
    statement, params = rows.query.sql_with_params()
    return dict(
        sql.fetch_all(
            f"""SELECT ({column} AT TIME ZONE %s)::date, count(*)
            FROM ({statement}) r GROUP BY 1""",
            [timezone.get_current_timezone_name(), *params],
        )
    )


def summarize_scores(
    threads: QuerySet[Thread] | None,
) -> list[tuple[str, int, float, float | None]]:
    """Return name, number of scores, average and agreement of each criterion with scores.

    Agreement is 1 minus the mean distance of all pairs of scores of one thread, None without a
    pair. The ORM cannot join a table with itself to form the pairs. `threads` limits which scores
    count; None means all of them.
    """
    condition, params = "TRUE", ()
    if threads is not None:
        statement, params = threads.order_by().values("pk").query.sql_with_params()
        condition = f"s.thread_id IN ({statement})"
    return sql.fetch_all(
        f"""WITH kept AS (SELECT s.* FROM mastra_memory_score s WHERE {condition}),
        apart AS (
            SELECT a.criterion_id, avg(abs(a.share - b.share)) AS apart
            FROM kept a JOIN kept b ON b.thread_id = a.thread_id
                AND b.criterion_id = a.criterion_id AND b.id > a.id GROUP BY 1)
        SELECT c.name, count(*), avg(k.share)::float8, (1 - max(a.apart))::float8
        FROM kept k JOIN mastra_memory_criterion c ON c.id = k.criterion_id
        LEFT JOIN apart a ON a.criterion_id = k.criterion_id
        GROUP BY c.id, c.name, c.position ORDER BY c.position, c.name""",
        params,
    )
