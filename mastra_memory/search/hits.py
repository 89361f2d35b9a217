"""Read the messages that a search found, with their neighbours and snippets."""

from collections.abc import Sequence
from dataclasses import replace

from mastra_memory.db import sql, times
from mastra_memory.search import queries, snippet
from mastra_memory.search.query import WordQuery
from mastra_memory.types import ContextMessage, SearchContext, SearchHit

DEFAULT_CONTEXT = (2, 2)
"""Messages to show before and after a hit, unless the agent's options set `messageRange`."""


def read_hits(
    message_ids: Sequence[str], *, context: tuple[int, int] = DEFAULT_CONTEXT
) -> list[SearchHit]:
    """Return the messages in the order of `message_ids`, with titles and neighbours.

    `context` is the number of messages to read before and after each message. Messages that have
    been deleted are omitted. Executes one statement.
    """
    if not message_ids:
        return []
    hits: dict[str, SearchHit] = {}
    contexts: dict[str, tuple[list[ContextMessage], list[ContextMessage]]] = {}
    for row in queries.read_with_context(message_ids, *context):
        hits[row[0]] = _build_hit(row)
        before, after = contexts.setdefault(row[0], ([], []))
        is_earlier, neighbour_id = row[7:9]
        if neighbour_id is not None:
            time = times.truncate_to_milliseconds(row[11])
            (before if is_earlier else after).append(ContextMessage(row[8], row[9], row[10], time))
    return [
        replace(hits[message_id], context=SearchContext(*contexts[message_id]))
        for message_id in message_ids
        if message_id in hits
    ]


def _build_hit(row: sql.SqlRow) -> SearchHit:
    return SearchHit(
        id=row[0],
        thread_id=row[1],
        resource_id=row[2],
        role=row[3],
        text=row[4],
        created_at=times.truncate_to_milliseconds(row[5]),
        thread_title=row[6],
    )


def add_snippets(hits: Sequence[SearchHit], query: WordQuery | None) -> list[SearchHit]:
    """Return the hits, each with the part of its text that contains the query's words."""
    snippets = snippet.highlight_snippets({hit.id: hit.text for hit in hits}, query)
    return [replace(hit, snippet=snippets[hit.id]) for hit in hits]
