"""Add the missing tool calls and results of messages at the edge of a window."""

from collections.abc import Sequence

from mastra_memory.content import part_types
from mastra_memory.models import Message
from mastra_memory.recall.window import read_windows
from mastra_memory.types import Include, StoredMessage

MAX_PAIR_DISTANCE = 3
"""How many messages before and after are searched for the missing call or result."""

_DONE = frozenset({part_types.STATE_RESULT, part_types.STATE_FAILED, part_types.STATE_DENIED})


def complete_tool_pairs(
    messages: Sequence[StoredMessage], *, resource_id: str
) -> list[StoredMessage]:
    """Return the messages, and the messages with the missing calls or results.

    Usually a call and its result are in one message, and nothing is read. Otherwise one statement
    is executed.
    """
    calls = {message.id: _get_unanswered_calls(message) for message in messages}
    results = {message.id: _get_separate_results(message) for message in messages}
    call_ids = {call_id for ids in calls.values() for call_id in ids}
    result_ids = {call_id for ids in results.values() for call_id in ids}
    unpaired = call_ids ^ result_ids
    windows = [
        Include(id=message.id, before=MAX_PAIR_DISTANCE, after=MAX_PAIR_DISTANCE)
        for message in messages
        if unpaired & (calls[message.id] | results[message.id])
    ]
    missing = [
        message
        for message in read_windows(windows, resource_id=resource_id)
        if message.id not in calls
        and unpaired & (_get_unanswered_calls(message) | _get_separate_results(message))
    ]
    return [*messages, *missing]


def _get_unanswered_calls(message: StoredMessage) -> set[str]:
    """Return the ids of calls whose result is not in the message."""
    return {call.id for call in _list_tool_calls(message) if call.state not in _DONE}


def _get_separate_results(message: StoredMessage) -> set[str]:
    """Return the ids of results in a message of role `tool`, whose calls are in other messages."""
    if message.role != Message.Role.TOOL:
        return set()
    return {call.id for call in _list_tool_calls(message) if call.state in _DONE}


def _list_tool_calls(message: StoredMessage) -> list[part_types.ToolCall]:
    if '"toolCallId"' not in message.content_json:
        return []
    parts = part_types.read_parts(message.content)
    return [part for part in parts if isinstance(part, part_types.ToolCall) and part.id]
