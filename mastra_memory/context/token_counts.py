"""Count the tokens of messages, from the stored counts if there are any."""

from collections.abc import Mapping, Sequence

from mastra_memory.content import tokens
from mastra_memory.types import StoredMessage


class MessageCounter:
    """Count tokens of messages.

    Unobserved messages have a stored count, because observation needs it. Counting thousands of
    them again would take most of the time of a context. Messages that were changed since they were
    read, such as a call with its result merged into it, are counted.

    Args:
        messages: The messages as they were read.
        counts: The stored counts by message; there need not be one for each message.
    """

    def __init__(
        self, messages: Sequence[StoredMessage] = (), counts: Mapping[str, int] | None = None
    ) -> None:
        self._counts = counts or {}
        self._contents = {
            message.id: message.content_json for message in messages if message.id in self._counts
        }
        self._counter = tokens.get_token_counter()

    def count(self, message: StoredMessage) -> int:
        """Return the number of tokens of a message."""
        if self._contents.get(message.id) is message.content_json:
            return self._counts[message.id]
        return self._counter.message(message.role, message.content)
