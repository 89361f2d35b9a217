"""Words and meaning together.

Scores are added, not ranks: that a word is rare says more than its place in a list. And a message
gets a share of what its neighbours in the thread score, since an answer often stands beside the
question that holds the words.
"""

from collections.abc import Sequence
from heapq import nlargest

from mastra_memory.db import sql
from mastra_memory.search import types as scores
from mastra_memory.search.queries import build_neighbours
from mastra_memory.search.scope import VISIBLE
from mastra_memory.search.types import ScoredMessage

WORD_CANDIDATES = 200
VECTOR_CANDIDATES = 100
"""How many of each side are weighed."""
VECTOR_WEIGHT = 0.5
"""What the best match by meaning counts beside the best match by words."""
NEIGHBOUR_WEIGHT = 0.4
SOURCES_PER_RESULT = 5
"""For each wanted result, so many of the best share their scores with their neighbours."""
MIN_SOURCES = 32
MAX_SCORE = (1 + VECTOR_WEIGHT) * (1 + 2 * NEIGHBOUR_WEIGHT)
"""No message can score higher."""


def fuse_scores(
    words: Sequence[ScoredMessage], meaning: Sequence[ScoredMessage], *, limit: int
) -> list[ScoredMessage]:
    """The best of both, best first, scores 0 to 1; one statement."""
    own = _combine_scores(words, meaning)
    known = {one.id: one for one in (*words, *meaning)}
    sharing = max(SOURCES_PER_RESULT * limit, MIN_SOURCES)
    pairs: set[tuple[str, str]] = set()
    for key, beside in _read_neighbours(nlargest(sharing, own, own.__getitem__)):
        known.setdefault(beside.id, beside)
        pairs |= {(key, beside.id), (beside.id, key)}
    total = dict(own)
    for giver, taker in pairs:
        total[taker] = total.get(taker, 0.0) + NEIGHBOUR_WEIGHT * own.get(giver, 0.0)

    def rank(key: str) -> tuple[float, float, int]:
        return total[key], known[key].created, known[key].sequence

    best = sorted(total, key=rank, reverse=True)[:limit]
    return [known[key]._replace(score=total[key] / MAX_SCORE) for key in best]


def _combine_scores(
    words: Sequence[ScoredMessage], meaning: Sequence[ScoredMessage]
) -> dict[str, float]:
    """Words by the share of the best, meaning by the place between the worst and the best."""
    best = max((one.score for one in words), default=0.0)
    own = {one.id: one.score / best if best > 0 else 0.0 for one in words}
    nearest = max((one.score for one in meaning), default=0.0)
    farthest = min((one.score for one in meaning), default=0.0)
    span = nearest - farthest
    for one in meaning:
        share = (one.score - farthest) / span if span > 0 else 1.0
        own[one.id] = own.get(one.id, 0.0) + VECTOR_WEIGHT * share
    return own


def _read_neighbours(message_ids: Sequence[str]) -> list[tuple[str, ScoredMessage]]:
    """Every message with each of its neighbours."""
    neighbours = build_neighbours(
        "message", scores.SCORED_COLUMNS, before="1", after="1", condition=VISIBLE
    )
    found = sql.fetch_all(
        f"""SELECT message.id, neighbour.* FROM mastra_memory_message message
        CROSS JOIN LATERAL ({neighbours}) neighbour WHERE message.id = ANY(%s)""",
        [list(message_ids)],
    )
    return [(row[0], ScoredMessage(row[1], row[2], row[3], 0.0)) for row in found]
