"""Estimate how many messages of a scope contain a word, from a sample.

An exact count would have to read every message that contains a common word. The sample has the same
cost in any scope. It has a few messages from each of several points in time, because topics change
over time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from mastra_memory.search import queries
from mastra_memory.search.scope import SearchScope

MAX_COUNTED_MESSAGES = 20_000
"""The upper limit for the size of a scope. In larger scopes the estimates hardly change."""
SAMPLE_POINTS = 32
"""How many evenly spaced points in time the sample is taken from."""
MESSAGES_PER_POINT = 8
"""How many messages are read from each of these points."""
MIN_SAMPLED_MESSAGES = 64
"""With a smaller sample, common and rare words cannot be distinguished."""


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
        """Whether the sample is large enough to distinguish common from rare words."""
        return self.sampled >= MIN_SAMPLED_MESSAGES

    def estimate_frequency(self, index: int) -> float:
        """Return about how many messages of the scope contain a term.

        A term that does not occur in the sample counts as half a message, so that it is not 0.
        """
        return max(self.containing[index], 0.5) * self.messages / self.sampled


def estimate_term_statistics(terms: Sequence[str], scope: SearchScope) -> TermStatistics:
    """Count the scope and take a sample of it, in one statement of limited cost."""
    if scope.thread_id is not None:
        # The thread belongs to one resource, so the condition on the resource is not needed.
        scope = SearchScope(thread_id=scope.thread_id)
    messages, sampled, *containing = queries.sample_terms(
        terms,
        scope.condition("m"),
        points=SAMPLE_POINTS,
        per_point=MESSAGES_PER_POINT,
        max_counted=MAX_COUNTED_MESSAGES,
    )
    return TermStatistics(messages, sampled, containing)
