"""Choose the messages that one call of the Observer reads."""

from collections.abc import Sequence

from mastra_memory.content import tool_calls
from mastra_memory.types import StoredMessage

LINK_SECONDS = 0.001
"""Messages this close to a pending tool call may belong to it."""


def drop_pending_call(messages: Sequence[StoredMessage]) -> list[StoredMessage]:
    """Return the messages without the newest one if its tool call has no outcome yet.

    The outcome will be added to that message, so observing it now would miss the outcome. If an
    earlier message may belong to the same call, nothing can be buffered, and the list is empty.
    """
    if not messages or not _has_pending_call(messages[-1]):
        return list(messages)
    newest, earlier = messages[-1], list(messages[:-1])
    pending = tool_calls.get_pending_call_ids(newest.content)
    for message in reversed(earlier):
        distance = (newest.created_at - message.created_at).total_seconds()
        if distance <= LINK_SECONDS or pending & _get_all_call_ids(message):
            return []
    return earlier


def _has_pending_call(message: StoredMessage) -> bool:
    return tool_calls.may_contain_calls(message.content_json) and bool(
        tool_calls.get_pending_call_ids(message.content)
    )


def _get_all_call_ids(message: StoredMessage) -> set[str]:
    if not tool_calls.may_contain_calls(message.content_json):
        return set()
    content = message.content
    return tool_calls.get_pending_call_ids(content) | tool_calls.get_finished_call_ids(content)
