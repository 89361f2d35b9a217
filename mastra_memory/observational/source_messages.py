"""What is stored about the messages that the Observer has read."""

from collections.abc import Sequence
from dataclasses import dataclass

from mastra_memory.observational import tracking
from mastra_memory.observational.groups import format_range
from mastra_memory.types import StoredMessage


@dataclass(frozen=True, slots=True)
class SourceMessages:
    """What is stored about the messages that the Observer has read.

    It is computed before the transaction: counting tokens takes longer than writing.
    """

    thread_id: str
    ids: list[str]
    hashes: list[str]
    """MD5 of the contents, to notice messages that were edited meanwhile."""
    token_counts: list[int]
    range: str

    @staticmethod
    def read(messages: Sequence[StoredMessage]) -> "SourceMessages":
        """Count and hash messages of one thread."""
        return SourceMessages(
            thread_id=messages[0].thread_id,
            ids=[message.id for message in messages],
            hashes=tracking.hash_contents(messages),
            token_counts=tracking.count_tokens(messages),
            range=format_range(messages),
        )
