"""Windows: messages named by id, each with its neighbours in its own thread."""

from collections.abc import Sequence

from mastra_memory.db import json_text, sql
from mastra_memory.messages import MESSAGE_COLUMNS
from mastra_memory.recall import limits
from mastra_memory.search.queries import build_neighbours
from mastra_memory.types import Include, StoredMessage

_BYTES_BEFORE = limits.bytes_before("p.content", "p.created, p.sequence")


def read_windows(includes: Sequence[Include], *, resource_id: str) -> list[StoredMessage]:
    """The messages of all windows, each once, in the order of time; one statement.

    Windows end at the edge of the thread. Unknown messages and those of other resources are left
    out, and so is what follows once the messages reach `MAX_PAGE_BYTES`.
    """
    if not includes:
        return []
    # Read the keys first, from the index alone. Where large windows overlap, each message is then
    # read once.
    neighbours = build_neighbours(
        "target", "m.thread_id, m.created_at, m.sequence", before="w.before", after="w.after"
    )
    found = sql.fetch_all(
        f"""WITH chosen AS (
            SELECT DISTINCT k.thread_id, k.created_at, k.sequence
            FROM unnest(%s::text[], %s::bigint[], %s::bigint[]) AS w(id, before, after)
            JOIN mastra_memory_message target ON target.id = w.id AND target.resource_id = %s
            CROSS JOIN LATERAL (
                SELECT target.thread_id, target.created_at, target.sequence
                UNION ALL {neighbours}
            ) k)
        SELECT * FROM (
            SELECT p.*, {_BYTES_BEFORE} AS bytes_before FROM (
                SELECT {MESSAGE_COLUMNS} FROM chosen k CROSS JOIN LATERAL (
                    SELECT * FROM mastra_memory_message m WHERE m.thread_id = k.thread_id
                    AND m.created_at = k.created_at AND m.sequence = k.sequence LIMIT 1) m) p) p
        WHERE p.bytes_before < %s ORDER BY p.created, p.sequence""",
        [
            [json_text.clean_text(include.id) for include in includes],
            [max(include.before, 0) for include in includes],
            [max(include.after, 0) for include in includes],
            resource_id,
            limits.page_bytes(),
        ],
    )
    return [StoredMessage(*cells[:-1]) for cells in found]
