"""Combine the matches by words and by vectors of a hybrid search.

The score of a message is computed in these steps, each of which is one function below.
docs/search.md shows them with the numbers of an example, and how to tune the weights.

1. Add the score by words and the score by vectors. Scores are added rather than ranks, because a
   score also tells how rare the matching words are.
2. Add a share of the scores of its neighbours, because an answer often follows a question that
   contains the words.
3. Reduce both if the message is short: "Wow, thanks!" next to a match answers nothing.
4. Add a share of the best scores around it in the same thread: a conversation with several good
   matches is about the subject.
5. Reduce it if the message is a question itself.
6. If the query names a time, add to messages of that time (`times.boost`).

The weights were chosen on five conversations of LoCoMo, a data set of long conversations with
questions about them, and checked on a sixth. docs/recall.md has the figures (`make bench-recall`).
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from heapq import nlargest
from itertools import groupby

from mastra_memory.search import fusion_queries
from mastra_memory.search.times import boost
from mastra_memory.search.types import Candidate, ScoredMessage
from mastra_memory.types import TimeRange

WORD_CANDIDATES = 200
"""How many of the best matches by words are combined."""
VECTOR_CANDIDATES = 100
"""How many of the best matches by vectors are combined."""
VECTOR_WEIGHT = 0.4
"""The score of the best match by vectors. The best match by words has the score 1."""
NEIGHBOUR_WEIGHTS = (0.5, 0.3)
"""The shares of a message's score that are added to the messages one and two positions away."""
SOURCES_PER_RESULT = 5
"""How many of the best messages, per requested result, share scores with neighbours."""
MIN_SOURCES = 32
"""The smallest number of messages that share scores with their neighbours."""
SHORT_MATCH_WORDS = 1
SHORT_NEIGHBOUR_WORDS = 4
"""A message with w different words, without stop words, keeps w / (w + 1) of its own score, and
w / (w + 4) of what its neighbours add. So "Wow, thanks!" next to a match ranks low, and a short
message that contains the words of the query does not."""
SESSION_WEIGHT = 0.8
"""The share of the mean of the best scores of a session that is added to all of its candidates."""
SESSION_MESSAGES = 3
"""How many of the best scores are in the mean. Missing ones count as 0, so that a thread of one
message gains less than a conversation with several matches."""
SESSION_GAP_SECONDS = 12 * 3_600.0
"""A session is a part of a thread without a longer pause between two candidates. Without this, the
best three of a thread of 20,000 messages would be higher than those of any short thread, and in a
search within one thread there would be nothing to compare."""
QUESTION_WEIGHT = 0.85
"""The share of its score that a question keeps."""

MAX_SCORE = (1 + VECTOR_WEIGHT) * (1 + 2 * sum(NEIGHBOUR_WEIGHTS) + SESSION_WEIGHT)
"""An upper limit of the sum; scores are divided by it to be at most 1."""

Scores = dict[str, float]
"""Scores by message id."""


def fuse_scores(
    words: Sequence[ScoredMessage],
    vectors: Sequence[ScoredMessage],
    *,
    limit: int,
    ranges: Sequence[TimeRange] = (),
) -> list[ScoredMessage]:
    """Return the best messages of both lists and their neighbours, best first.

    Scores of the result are from 0 to 1. One statement reads the neighbours.

    Args:
        words: The matches by words.
        vectors: The matches by vectors.
        limit: How many messages to return.
        ranges: The times that the query names.
    """
    scores = _add_scores(words, vectors)
    if not scores:
        return []
    sources = nlargest(max(SOURCES_PER_RESULT * limit, MIN_SOURCES), scores, scores.__getitem__)
    candidates, neighbours = fusion_queries.read_candidates(
        list(scores), sources, distance=len(NEIGHBOUR_WEIGHTS)
    )
    # A message may have been deleted since it was found.
    scores = {key: score for key, score in scores.items() if key in candidates}
    shares = _sum_neighbour_shares(scores, neighbours)
    totals = {
        key: _reduce_short_message(scores.get(key, 0.0), shares[key], candidates[key].words)
        for key in {*scores, *shares}
    }
    _add_sessions(totals, scores, candidates)
    _reduce_questions(totals, candidates)
    fused = [
        ScoredMessage(key, candidates[key].created, candidates[key].sequence, total / MAX_SCORE)
        for key, total in totals.items()
    ]
    return boost.boost_matches(fused, ranges)[:limit]


def _add_scores(words: Sequence[ScoredMessage], vectors: Sequence[ScoredMessage]) -> Scores:
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


def _sum_neighbour_shares(
    scores: Mapping[str, float], neighbours: Collection[tuple[str, str, int]]
) -> defaultdict[str, float]:
    """Return what each message gets from its neighbours.

    `neighbours` has the ids of a message and its neighbour, and their distance, from 1.
    """
    # A set, because two messages that are both sources produce each pair twice.
    pairs = {
        pair
        for first, second, distance in neighbours
        for pair in ((first, second, distance), (second, first, distance))
    }
    shares: defaultdict[str, float] = defaultdict(float)
    for source, receiver, distance in pairs:
        if source in scores:
            shares[receiver] += NEIGHBOUR_WEIGHTS[distance - 1] * scores[source]
    return shares


def _reduce_short_message(score: float, share: float, words: int) -> float:
    own = score * words / (words + SHORT_MATCH_WORDS)
    return own + share * words / (words + SHORT_NEIGHBOUR_WORDS)


def _add_sessions(
    totals: Scores, scores: Mapping[str, float], candidates: Mapping[str, Candidate]
) -> None:
    """Add a share of the best scores of its session to each message.

    The shares of neighbours do not count.
    """
    in_order = sorted(totals, key=lambda key: (candidates[key].thread_id, candidates[key].created))
    for _, keys in groupby(in_order, key=lambda key: candidates[key].thread_id):
        for session in _split_sessions(list(keys), candidates):
            best = nlargest(SESSION_MESSAGES, (scores.get(key, 0.0) for key in session))
            share = SESSION_WEIGHT * sum(best) / SESSION_MESSAGES
            for key in session:
                totals[key] += share


def _split_sessions(
    keys: Sequence[str], candidates: Mapping[str, Candidate]
) -> Collection[Sequence[str]]:
    """Split the messages of one thread, in the order of time, where there was a long pause."""
    sessions: dict[int, list[str]] = defaultdict(list)
    number, before = 0, candidates[keys[0]].created
    for key in keys:
        created = candidates[key].created
        number += created - before > SESSION_GAP_SECONDS
        sessions[number].append(key)
        before = created
    return sessions.values()


def _reduce_questions(totals: Scores, candidates: Mapping[str, Candidate]) -> None:
    for key in totals:
        if candidates[key].is_question:
            totals[key] *= QUESTION_WEIGHT
