"""Read windows: messages selected by id, each with its neighbours in the same thread."""

from collections.abc import Sequence

from mastra_memory.recall import queries
from mastra_memory.types import Include, StoredMessage


def read_windows(includes: Sequence[Include], *, resource_id: str) -> list[StoredMessage]:
    """Return the messages of all windows, each once, oldest first, in one statement.

    Windows end at the first and the last message of the thread. Unknown messages, and those of
    other resources, are left out silently. Messages beyond `MAX_PAGE_BYTES` are left out as well.
    """
    return queries.read_windows(includes, resource_id) if includes else []
