"""How rare words are in a scope, estimated from messages taken from all of its time."""

from collections.abc import Sequence
from dataclasses import dataclass

from mastra_memory.db import sql
from mastra_memory.search.scope import SearchScope

MAX_COUNTED_MESSAGES = 20_000
"""How far a scope is counted; a word's rarity hardly changes beyond."""
SAMPLE_POINTS = 32
MESSAGES_PER_POINT = 8
"""The sample: at so many moments so many messages that follow."""
MIN_SAMPLED_MESSAGES = 64
"""A smaller sample of a larger scope tells nothing."""


@dataclass(frozen=True, slots=True)
class TermStatistics:
    """What was counted."""

    messages: int
    """In the scope, as far as they were counted."""
    sampled: int
    holding: Sequence[int]
    """How many of the sample hold each of the terms."""

    @property
    def is_known(self) -> bool:
        """Whether the sample is large enough to tell common words from rare ones."""
        return self.sampled >= MIN_SAMPLED_MESSAGES

    def expected(self, place: int) -> float:
        """About how many messages hold a term; a few may where none of the sample does."""
        return max(self.holding[place], 0.5) * self.messages / self.sampled


def estimate_term_statistics(terms: Sequence[str], scope: SearchScope) -> TermStatistics:
    """Count a scope and take a sample of it; one statement, whose cost has a bound."""
    if scope.thread_id is not None:  # its index serves; whose thread it is changes no figure
        scope = SearchScope(thread_id=scope.thread_id)
    where = scope.condition("m")
    holding = ", ".join("count(*) FILTER (WHERE words @@ %s::tsquery)" for _ in terms)
    found = sql.fetch_one(
        f"""WITH span AS MATERIALIZED (
            SELECT min(m.created_at) AS first, max(m.created_at) AS last
            FROM mastra_memory_message m WHERE {where}),
        sample AS MATERIALIZED (
            SELECT DISTINCT ON (s.sequence) s.search AS words
            FROM span CROSS JOIN generate_series(0, {SAMPLE_POINTS - 1}) AS place
            CROSS JOIN LATERAL (SELECT m.sequence, m.search FROM mastra_memory_message m
                WHERE {where} AND m.created_at >=
                    span.first + (span.last - span.first) * (place::float8 / {SAMPLE_POINTS})
                ORDER BY m.created_at LIMIT {MESSAGES_PER_POINT}) AS s)
        SELECT (SELECT count(*) FROM (
            SELECT 1 FROM mastra_memory_message m WHERE {where} LIMIT {MAX_COUNTED_MESSAGES}) AS m),
            count(*), {holding} FROM sample""",
        [*where.params, *where.params, *where.params, *terms],
    )
    assert found is not None
    messages, sampled, *held = found
    return TermStatistics(messages, sampled, held)
