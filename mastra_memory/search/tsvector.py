"""Searchable words: written with a small save, right after a large one.

Reading words out of a text costs more than storing it. A save of many messages leaves that to a
task; a search first writes what is still pending in its scope.
"""

from mastra_memory import conf
from mastra_memory.db import sql
from mastra_memory.db.locking import retry_conflicts

MAX_MESSAGES_ON_SAVE = 10
"""A save of at most so many messages writes their words itself."""
MAX_MESSAGES_BEFORE_SEARCH = 1_000
"""So many pending messages a search writes first, the newest; the rest is the task's."""


@retry_conflicts
def index_pending_words(
    scope: sql.Where | None = None, *, limit: int = MAX_MESSAGES_BEFORE_SEARCH
) -> int:
    """Write the words of pending messages, the newest first. Returns how many they were.

    `scope` narrows to messages `m`. Safe to run side by side: nobody waits for anybody.
    """
    where = scope or sql.Where()
    return sql.execute(
        # Materialized: as a plain subquery it may run once a row, and take more than the limit.
        f"""WITH due AS MATERIALIZED (
            SELECT m.id FROM mastra_memory_message m WHERE m.search IS NULL AND {where}
            ORDER BY m.created_at DESC LIMIT %s FOR UPDATE SKIP LOCKED)
        UPDATE mastra_memory_message m SET search = mastra_memory_words(%s::regconfig, m.text)
        FROM due WHERE m.id = due.id""",
        [*where.params, limit, conf.app_settings().SEARCH_LANGUAGE],
    )
