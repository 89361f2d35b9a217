"""Combine the matches by words and by vectors of a hybrid search.

Scores are added rather than ranks, because a score also tells how rare the matching words are. Each
message also gets a share of its neighbours' scores, because an answer often follows a question that
contains the words.

The weights were chosen on LoCoMo, a data set of long conversations with questions about them. Of
the turns that answer a question, 0.66 are among the first ten results of a hybrid search, 0.59 of
one by words and 0.42 of one by vectors (`make bench-recall`; docs/recall.md has all figures).
"""

from collections.abc import Sequence
from heapq import nlargest

from mastra_memory.search import queries
from mastra_memory.search.types import ScoredMessage

WORD_CANDIDATES = 200
"""How many of the best matches by words are combined."""
VECTOR_CANDIDATES = 100
"""How many of the best matches by vectors are combined."""
VECTOR_WEIGHT = 0.5
"""The score of the best match by vectors. The best match by words has the score 1."""
NEIGHBOUR_WEIGHT = 0.4
"""The share of a message's score that is added to the scores of its two neighbours."""
SOURCES_PER_RESULT = 5
"""How many of the best messages, per requested result, share scores with neighbours."""
MIN_SOURCES = 32
"""The smallest number of messages that share scores with their neighbours."""
MAX_SCORE = (1 + VECTOR_WEIGHT) * (1 + 2 * NEIGHBOUR_WEIGHT)
"""The highest possible sum; scores are divided by it to be at most 1."""


def fuse_scores(
    words: Sequence[ScoredMessage], vectors: Sequence[ScoredMessage], *, limit: int
) -> list[ScoredMessage]:
    """Return the best messages of both lists and their neighbours, best first.

    Scores of the result are from 0 to 1. One statement reads the neighbours.
    """
    scores = _combine_scores(words, vectors)
    messages = {message.id: message for message in (*words, *vectors)}
    sources = max(SOURCES_PER_RESULT * limit, MIN_SOURCES)
    # Pairs of (source, receiver). A set, because two adjacent sources produce each pair twice.
    pairs: set[tuple[str, str]] = set()
    for source_id, neighbour in queries.list_adjacent(
        nlargest(sources, scores, scores.__getitem__)
    ):
        messages.setdefault(neighbour.id, neighbour)
        pairs |= {(source_id, neighbour.id), (neighbour.id, source_id)}
    totals = dict(scores)
    for source_id, receiver_id in pairs:
        share = NEIGHBOUR_WEIGHT * scores.get(source_id, 0.0)
        totals[receiver_id] = totals.get(receiver_id, 0.0) + share
    fused = [messages[key]._replace(score=total / MAX_SCORE) for key, total in totals.items()]
    return sorted(fused, key=lambda message: message.rank, reverse=True)[:limit]


def _combine_scores(
    words: Sequence[ScoredMessage], vectors: Sequence[ScoredMessage]
) -> dict[str, float]:
    """Return the weighted sum of both scores, each scaled to at most 1.

    BM25 starts at 0, so its scores are divided by the best one. Similarities of unrelated texts
    are well above 0, so they are scaled to the range from the lowest to the highest in the list.
    """
    best = max((message.score for message in words), default=0.0)
    scores = {message.id: message.score / best if best > 0 else 0.0 for message in words}
    highest = max((message.score for message in vectors), default=0.0)
    lowest = min((message.score for message in vectors), default=0.0)
    for message in vectors:
        scaled = (message.score - lowest) / (highest - lowest) if highest > lowest else 1.0
        scores[message.id] = scores.get(message.id, 0.0) + VECTOR_WEIGHT * scaled
    return scores
