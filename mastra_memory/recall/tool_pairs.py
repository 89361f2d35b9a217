"""Keep a tool's call and its result together where a window would part them."""

from collections.abc import Sequence

from mastra_memory.content import part_types
from mastra_memory.models import Message
from mastra_memory.recall.window import read_windows
from mastra_memory.types import Include, StoredMessage

MAX_PAIR_DISTANCE = 3
"""How many messages away the other half is looked for."""

_DONE = frozenset({part_types.STATE_RESULT, part_types.STATE_FAILED, part_types.STATE_DENIED})


def complete_tool_pairs(
    messages: Sequence[StoredMessage], *, resource_id: str
) -> list[StoredMessage]:
    """The messages, and the other half of each call without its result, or the reverse.

    Call and result usually stand in one message; then nothing is read, else one statement.
    """
    calls = {message.id: _get_unanswered_calls(message) for message in messages}
    results = {message.id: _get_separate_results(message) for message in messages}
    asked = {call for found in calls.values() for call in found}
    answered = {call for found in results.values() for call in found}
    lonely = asked ^ answered
    edges = [
        Include(id=message.id, before=MAX_PAIR_DISTANCE, after=MAX_PAIR_DISTANCE)
        for message in messages
        if lonely & (calls[message.id] | results[message.id])
    ]
    found = read_windows(edges, resource_id=resource_id)
    missing = [
        m
        for m in found
        if lonely & (_get_unanswered_calls(m) | _get_separate_results(m)) and m.id not in calls
    ]
    return [*messages, *missing]


def _get_unanswered_calls(message: StoredMessage) -> set[str]:
    """Calls that wait for a result in this message."""
    return {call.id for call in _list_tool_calls(message) if call.state not in _DONE}


def _get_separate_results(message: StoredMessage) -> set[str]:
    """Results in a message of the tool, whose calls are said elsewhere."""
    if message.role != Message.Role.TOOL:
        return set()
    return {call.id for call in _list_tool_calls(message) if call.state in _DONE}


def _list_tool_calls(message: StoredMessage) -> list[part_types.ToolCall]:
    if '"toolCallId"' not in message.content_json:
        return []
    found = part_types.read_parts(message.content)
    return [piece for piece in found if isinstance(piece, part_types.ToolCall) and piece.id]
