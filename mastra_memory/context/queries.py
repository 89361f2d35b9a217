"""SQL statements for the context of a turn."""

from mastra_memory.db import json_text, sql
from mastra_memory.models import Scope
from mastra_memory.recall import recent

_WORKING_MEMORY_JOINS = {
    Scope.THREAD: "w.thread_id = t.id",
    Scope.RESOURCE: "w.resource_id = coalesce(t.resource_id, g.resource) AND w.thread_id IS NULL",
}


def select_thread_state(
    thread_id: str, resource_id: str | None, *, working_memory_scope: str
) -> sql.SqlRow:
    """Return the thread's owner, token limit cursor, working memory and Observer metadata.

    If the thread does not exist, all four are None, except for the working memory of
    `resource_id`.
    """
    # The ORM cannot join tables to given values. This statement runs at the start of every turn,
    # and one query is enough even if the thread does not exist.
    (row,) = sql.fetch_all_prepared(
        f"""SELECT t.resource_id, (t.metadata -> '{recent.CURSOR_KEY}')::text, w.content,
            (t.metadata #> '{{mastra,om}}')::text
        FROM (SELECT %s::text AS id, %s::text AS resource) g
        LEFT JOIN mastra_memory_thread t ON t.id = g.id
        LEFT JOIN mastra_memory_workingmemory w
            ON {_WORKING_MEMORY_JOINS[Scope(working_memory_scope)]}""",
        [json_text.clean_text(thread_id), resource_id and json_text.clean_text(resource_id)],
    )
    return row
