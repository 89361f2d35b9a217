"""The SQL of this package. Each docstring gives the reason for not using the ORM."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager

from mastra_memory.db import sql


def add_message_condition(where: sql.Where, messages: sql.Where) -> None:
    """Restrict threads `t` to those with a message that meets a condition."""
    where.add(
        f"EXISTS (SELECT FROM mastra_memory_message m WHERE m.thread_id = t.id AND {messages})",
        *messages.params,
    )


def count_threads(where: sql.Where) -> int:
    """Count the threads that `stream_threads` yields, by the same condition."""
    row = sql.fetch_one(
        f"SELECT count(*) FROM mastra_memory_thread t WHERE {where}",
        where.params,
    )
    return row[0] if row else 0


def stream_threads(where: sql.Where, *, batch: int) -> AbstractContextManager[Iterable[sql.SqlRow]]:
    """Return the fields of `ExportedThread` of each thread, oldest first.

    The metadata is read as text: the ORM would parse it.
    """
    return sql.stream(
        f"""SELECT t.id, t.resource_id, t.title, t.title_source, t.metadata::text,
            t.clone_source_id, {sql.in_utc("t.created_at")}, {sql.in_utc("t.updated_at")}
        FROM mastra_memory_thread t WHERE {where} ORDER BY t.created_at, t.id""",
        where.params,
        batch=batch,
    )


def stream_messages(
    thread_ids: Sequence[str], where: sql.Where
) -> AbstractContextManager[Iterable[sql.SqlRow]]:
    """Return the position of the thread and the fields of `ExportedMessage` of each message.

    Messages are ordered by the position of their thread in `thread_ids`, then oldest first. The ORM
    cannot join a list of values.
    """
    return sql.stream(
        f"""SELECT i.position, m.id, m.thread_id, m.resource_id, m.role, m.type, m.content::text,
            m.text, {sql.in_utc("m.created_at")}, {sql.in_utc("m.edited_at")}
        FROM unnest(%s::text[]) WITH ORDINALITY AS i(id, position)
        JOIN mastra_memory_message m ON m.thread_id = i.id
        WHERE {where} ORDER BY i.position, m.created_at, m.sequence""",
        [list(thread_ids), *where.params],
    )


def stream_working_memories(
    where: sql.Where, scope: str
) -> AbstractContextManager[Iterable[sql.SqlRow]]:
    """Return thread, resource, text, times and revisions of each working memory `w`.

    PostgreSQL writes the revisions as one JSON text. The ORM would read them in a second query for
    each batch, and create an object for each revision.
    """
    return sql.stream(
        f"""SELECT w.thread_id, w.resource_id, w.content,
            {sql.in_utc("w.created_at")}, {sql.in_utc("w.updated_at")},
            (SELECT coalesce(jsonb_agg(jsonb_build_object('version', r.version, 'content',
                r.content, 'source', r.source, 'createdAt', {sql.format_time("r.created_at")})
                ORDER BY r.version), '[]')
            FROM mastra_memory_workingmemoryrevision r WHERE r.working_memory_id = w.id)::text
        FROM mastra_memory_workingmemory w WHERE w.scope = %s AND {where}
        ORDER BY w.resource_id, w.thread_id""",
        [scope, *where.params],
    )
