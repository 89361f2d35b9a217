"""The SQL of the fusion of scores."""

from collections.abc import Sequence

from mastra_memory.db import sql
from mastra_memory.search.queries import build_neighbours
from mastra_memory.search.scope import VISIBLE
from mastra_memory.search.types import Candidate

MAX_QUESTION_BYTES = 2_000
"""A longer message is not called a question. Its last character would be expensive to read, because
PostgreSQL stores long texts compressed and in pieces."""
_CANDIDATE_COLUMNS = f"""m.id, m.thread_id, date_part('epoch', m.created_at) AS created, m.sequence,
    coalesce(length(m.search), 0) AS words,
    octet_length(m.text) <= {MAX_QUESTION_BYTES} AND rtrim(m.text) ~ '[?？؟]$' AS is_question"""
"""The fields of `Candidate` for a message `m`."""


def read_candidates(
    message_ids: Sequence[str], sources: Sequence[str], *, distance: int
) -> tuple[dict[str, Candidate], set[tuple[str, str, int]]]:
    """Read messages, and the visible neighbours of some of them, in one statement.

    Args:
        message_ids: The messages to read.
        sources: The messages of which neighbours are read.
        distance: How many neighbours are read on each side.

    Returns:
        All messages by id, with the neighbours, and the ids of each source and neighbour with their
        distance, from 1.
    """
    neighbours = build_neighbours(
        "source",
        f"""{_CANDIDATE_COLUMNS},
            (m.created_at, m.sequence) < (source.created_at, source.sequence) AS is_earlier,
            m.created_at""",
        before="%s",
        after="%s",
        condition=VISIBLE,
    )
    rows = sql.fetch_all(
        f"""SELECT {_CANDIDATE_COLUMNS}, NULL, NULL, NULL
        FROM mastra_memory_message m WHERE m.id = ANY(%s)
        UNION ALL
        SELECT near.id, near.thread_id, near.created, near.sequence, near.words, near.is_question,
            source.id, near.is_earlier, row_number() OVER (PARTITION BY source.id, near.is_earlier
                ORDER BY abs(near.created - date_part('epoch', source.created_at)),
                    abs(near.sequence - source.sequence))
        FROM mastra_memory_message source CROSS JOIN LATERAL ({neighbours}) near
        WHERE source.id = ANY(%s)""",
        [list(message_ids), distance, distance, list(sources)],
    )
    return (
        {row[0]: Candidate(*row[:6]) for row in rows},
        {(row[6], row[0], row[8]) for row in rows if row[6] is not None},
    )
