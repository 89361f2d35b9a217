"""A message and how well it fits a query."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Scored:
    """A message that was found; which message, where it stands, and how well it fits."""

    id: str
    thread_id: str
    created_at: datetime
    sequence: int
    score: float

    def rank(self) -> tuple[float, datetime, int]:
        """What results are ordered by: the score, among equals the time."""
        return self.score, self.created_at, self.sequence
