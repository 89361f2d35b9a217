"""Found messages with all that a person wants to see beside them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mastra_memory.db import sql
from mastra_memory.search import snippet
from mastra_memory.search.queries import build_neighbours
from mastra_memory.search.query import WordQuery
from mastra_memory.search.scope import VISIBLE
from mastra_memory.types import ContextMessage, SearchContext, SearchHit

DEFAULT_CONTEXT = (2, 2)
"""Messages shown before and after a hit unless the agent's options say otherwise."""

_NEIGHBOURS = build_neighbours(
    "h",
    """(m.created_at, m.sequence) < (h.created_at, h.sequence) AS earlier,
        m.id, m.role, m.text, m.created_at, m.sequence""",
    before="%s",
    after="%s",
    condition=VISIBLE,
)


def read_hits(
    message_ids: Sequence[str],
    *,
    context: tuple[int, int] = DEFAULT_CONTEXT,
    scores: Mapping[str, float] | None = None,
) -> list[SearchHit]:
    """The messages in the order given, each with its thread's title and neighbours.

    One statement. A message that has gone meanwhile is left out.
    """
    if not message_ids:
        return []
    before, after = context
    found = sql.fetch_all(
        f"""WITH h AS MATERIALIZED (
            SELECT m.* FROM mastra_memory_message m WHERE m.id = ANY(%s)),
        near AS (
            SELECT h.id AS hit, n.* FROM h CROSS JOIN LATERAL ({_NEIGHBOURS}) n)
        SELECT h.id, h.thread_id, h.resource_id, h.role, h.text, h.created_at,
            coalesce(nullif(t.title, ''), t.id),
            n.earlier, n.id, n.role, n.text, n.created_at
        FROM h JOIN mastra_memory_thread t ON t.id = h.thread_id LEFT JOIN near n ON n.hit = h.id
        ORDER BY h.id, n.created_at, n.sequence""",
        [list(message_ids), before, after],
    )
    hits: dict[str, SearchHit] = {}
    beside: dict[str, tuple[list[ContextMessage], list[ContextMessage]]] = {}
    for row in found:
        hits[row[0]] = _build_hit(row, (scores or {}).get(row[0]))
        sides = beside.setdefault(row[0], ([], []))
        if row[8] is not None:
            sides[0 if row[7] else 1].append(ContextMessage(*row[8:]))
    return [
        replace(hits[known], context=SearchContext(*beside[known]))
        for known in message_ids
        if known in hits
    ]


def _build_hit(row: sql.SqlRow, score: float | None) -> SearchHit:
    return SearchHit(
        id=row[0],
        thread_id=row[1],
        resource_id=row[2],
        role=row[3],
        text=row[4],
        created_at=row[5],
        thread_title=row[6],
        score=score,
    )


def add_snippets(hits: Sequence[SearchHit], query: WordQuery | None) -> list[SearchHit]:
    """The hits, each with the part of its text that shows why it was found."""
    snippets = snippet.highlight_snippets({hit.id: hit.text for hit in hits}, query)
    return [replace(hit, snippet=snippets[hit.id]) for hit in hits]
