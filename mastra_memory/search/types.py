"""A message and how well it fits a query."""

from typing import NamedTuple


class ScoredMessage(NamedTuple):
    """A message that was found, where it stands in time, and how well it fits."""

    id: str
    created: float
    """Seconds since 1970: a number is read many times faster than a datetime."""
    sequence: int
    score: float

    def rank(self) -> tuple[float, float, int]:
        """What results are ordered by: the score, among equals the time."""
        return self.score, self.created, self.sequence


SCORED_COLUMNS = "m.id, date_part('epoch', m.created_at), m.sequence"
"""Of a message `m`: all but the score."""
