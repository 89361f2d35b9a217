"""How many messages of a scope contain a word, estimated from a sample.

Counting exactly would read every message that contains a common word. The sample costs the same
for any scope: a few messages from each of several points in time, because what people talk about
changes over time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from mastra_memory.search import queries
from mastra_memory.search.scope import SearchScope

MAX_COUNTED_MESSAGES = 20_000
"""Count a scope no further than this: a word's rarity hardly changes beyond."""
SAMPLE_POINTS = 32
"""Points in time at which the sample is taken, at equal distances."""
MESSAGES_PER_POINT = 8
"""Messages that are read after each of these points."""
MIN_SAMPLED_MESSAGES = 64
"""A smaller sample does not tell common words from rare ones."""


@dataclass(frozen=True, slots=True)
class TermStatistics:
    """The size of a scope, and how many of the sampled messages contain each term."""

    messages: int
    """Messages in the scope, at most `MAX_COUNTED_MESSAGES`."""
    sampled: int
    containing: Sequence[int]
    """For each term, how many of the sampled messages contain it."""

    @property
    def is_reliable(self) -> bool:
        """Whether the sample is large enough to tell common words from rare ones."""
        return self.sampled >= MIN_SAMPLED_MESSAGES

    def estimate_frequency(self, index: int) -> float:
        """Return about how many messages of the scope contain a term.

        A term that no sampled message contains counts as half a message, not as none.
        """
        return max(self.containing[index], 0.5) * self.messages / self.sampled


def estimate_term_statistics(terms: Sequence[str], scope: SearchScope) -> TermStatistics:
    """Count the scope and take a sample of it, in one statement of limited cost."""
    if scope.thread_id is not None:
        # The thread's index serves; its owner would only add a condition that changes no count.
        scope = SearchScope(thread_id=scope.thread_id)
    messages, sampled, *containing = queries.sample_terms(
        terms,
        scope.condition("m"),
        points=SAMPLE_POINTS,
        per_point=MESSAGES_PER_POINT,
        max_counted=MAX_COUNTED_MESSAGES,
    )
    return TermStatistics(messages, sampled, containing)
