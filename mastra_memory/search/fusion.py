"""Words and meaning together.

Scores are added, not ranks: that a word is rare says more than its place in a list. And a message
gets a share of what its neighbours in the thread score, since an answer often stands beside the
question that holds the words.
"""

from collections.abc import Sequence
from dataclasses import replace

from mastra_memory import sql
from mastra_memory.search.scope import VISIBLE
from mastra_memory.search.scored import Scored

WORDS, MEANINGS = 200, 100
"""How many of each side are weighed."""
MEANING_WEIGHT = 0.5
"""What the best match by meaning counts beside the best match by words."""
NEIGHBOUR_SHARE = 0.4


def fuse(words: Sequence[Scored], meaning: Sequence[Scored], *, limit: int) -> list[Scored]:
    """The best of both, best first, scores 0 to 1; one statement."""
    own = _own_scores(words, meaning)
    known = {scored.id: scored for scored in [*words, *meaning]}
    total = dict(own)
    for one, beside in _neighbours(list(own)):
        known.setdefault(beside.id, beside)
        total[beside.id] = total.get(beside.id, 0.0) + NEIGHBOUR_SHARE * own[one]
    most = 1 + MEANING_WEIGHT + 2 * NEIGHBOUR_SHARE * (1 + MEANING_WEIGHT)
    fused = [replace(known[key], score=score / most) for key, score in total.items()]
    return sorted(fused, key=Scored.rank, reverse=True)[:limit]


def _own_scores(words: Sequence[Scored], meaning: Sequence[Scored]) -> dict[str, float]:
    """Words by the share of the best, meaning by the place between the worst and the best."""
    own: dict[str, float] = {}
    best = max((scored.score for scored in words), default=0.0)
    for scored in words:
        own[scored.id] = scored.score / best if best > 0 else 0.0
    nearest = max((scored.score for scored in meaning), default=0.0)
    farthest = min((scored.score for scored in meaning), default=0.0)
    span = nearest - farthest
    for scored in meaning:
        share = (scored.score - farthest) / span if span > 0 else 1.0
        own[scored.id] = own.get(scored.id, 0.0) + MEANING_WEIGHT * share
    return own


def _neighbours(message_ids: Sequence[str]) -> list[tuple[str, Scored]]:
    """Every message with each of its neighbours."""
    beside = f"""SELECT m.id, m.thread_id, m.created_at, m.sequence
        FROM mastra_memory_message m WHERE m.thread_id = one.thread_id AND {VISIBLE}
        AND (m.created_at, m.sequence)"""
    found = sql.rows(
        f"""SELECT one.id, two.* FROM mastra_memory_message one CROSS JOIN LATERAL (
            (SELECT * FROM ({beside} < (one.created_at, one.sequence)
                ORDER BY m.created_at DESC, m.sequence DESC LIMIT 1) before)
            UNION ALL
            (SELECT * FROM ({beside} > (one.created_at, one.sequence)
                ORDER BY m.created_at, m.sequence LIMIT 1) after)) two
        WHERE one.id = ANY(%s)""",
        [list(message_ids)],
    )
    return [
        (near, Scored(found_id, thread_id, created_at, sequence, 0.0))
        for near, found_id, thread_id, created_at, sequence in found
    ]
