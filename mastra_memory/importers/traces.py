"""Turn traces of an observability tool into conversations.

Each trace is one request to an application, with its input and its output. An input often repeats
the whole conversation before it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mastra_memory.importers import chat_messages, coercion
from mastra_memory.importers.conversation import ConversationBuilder
from mastra_memory.importers.records import (
    OmittedRecord,
    ResourceMapping,
    SourceItem,
    build_origin_metadata,
    derive_id,
    hash_content,
)

_LANGCHAIN_ROLES = {
    "HumanMessage": "user",
    "AIMessage": "assistant",
    "AIMessageChunk": "assistant",
    "SystemMessage": "system",
    "ToolMessage": "tool",
    "FunctionMessage": "tool",
}
_TEXT_KEYS = (
    *("input", "question", "query", "prompt", "message", "text", "content", "user_input"),
    *("output", "answer", "response", "result", "completion", "generation"),
)
"""Keys under which applications log their input and output."""
_LIST_KEYS = ("messages", "chat_history", "history")
_MAX_NESTING = 6


@dataclass(frozen=True, slots=True)
class Turn:
    """One trace: what went into the application and what came out."""

    input: Any
    output: Any
    time: float | None
    """Seconds since 1970."""
    end_time: float | None
    location: str


def build_thread(
    source: str,
    source_id: str,
    owner: str,
    turns: Sequence[Turn],
    resources: ResourceMapping,
    start: float,
) -> Iterator[SourceItem]:
    """Yield a thread for the turns of a conversation, which are sorted by time.

    Messages that a turn repeats from earlier turns are counted as joined.
    """
    resource_id = resources.resolve(owner or source_id)
    first_time = coercion.to_datetime(turns[0].time) or coercion.to_datetime(start)
    assert first_time is not None
    thread_id = derive_id(source, resource_id, source_id)
    builder = ConversationBuilder(thread_id, resource_id, first_time, turns[0].location)
    history: list[str] = []
    for number, turn in enumerate(turns):
        inputs = list(read_messages(turn.input, "user"))
        outputs = list(read_messages(turn.output, "assistant"))
        # The output of some libraries is the whole conversation, with the input.
        for side, messages in (("input", inputs), ("output", outputs)):
            hashes = [_hash_message(message) for message in messages]
            known = count_overlap(history, hashes)
            for index, message in enumerate(messages):
                location = f"{turn.location} {side} {index}"
                if index < known:
                    reason = "repeated from an earlier message"
                    builder.omit(OmittedRecord("messages", "joined", location, reason))
                    continue
                time = coercion.to_datetime(turn.time if side == "input" else turn.end_time)
                key = f"{number}:{side}:{index}"
                chat_messages.add_message(builder, key, message, location, time=time)
            history.extend(hashes[known:])
    return builder.build_items(metadata=build_origin_metadata(source, source_id))


def _hash_message(message: Mapping[str, Any]) -> str:
    role = chat_messages.get_role(coercion.to_text(message.get("role")))
    calls = coercion.to_mappings(message.get("tool_calls"))
    content = message.get("content") or ""
    if isinstance(content, list) and len(content) == 1:
        content = coercion.to_mapping(content[0]).get("text", content)
    return hash_content([role, content, [call.get("id") for call in calls]])


def count_overlap(history: Sequence[str], messages: Sequence[str]) -> int:
    """Return how many of the first messages are the last ones of the history.

    This is the prefix function of the algorithm of Knuth, Morris and Pratt; it is linear.
    """
    sequence = [*messages, "", *history[-len(messages) :]] if messages else []
    lengths = [0] * len(sequence)
    for index in range(1, len(sequence)):
        length = lengths[index - 1]
        while length and sequence[index] != sequence[length]:
            length = lengths[length - 1]
        lengths[index] = length + (sequence[index] == sequence[length])
    return lengths[-1] if history and lengths else 0


def read_messages(value: Any, role: str, nesting: int = 0) -> Iterator[Mapping[str, Any]]:
    """Yield the chat messages in an input or output.

    Args:
        value: A text, a message, a list of messages, or an object with one of them.
        role: The role of a text without a role.
        nesting: The number of lists and objects around the value.
    """
    if isinstance(value, str):
        parsed = coercion.parse_json(value) if value[:1] in ("[", "{") else None
        if isinstance(parsed, Mapping | list) and nesting < _MAX_NESTING:
            yield from read_messages(parsed, role, nesting + 1)
        elif value.strip():
            yield {"role": role, "content": value}
    elif message := _read_message(value):
        yield message
    elif nesting < _MAX_NESTING and isinstance(value, list):
        for item in value:
            yield from read_messages(item, role, nesting + 1)
    elif nesting < _MAX_NESTING and isinstance(value, Mapping):
        yield from _read_object(value, role, nesting + 1)


def _read_object(value: Mapping[str, Any], role: str, nesting: int) -> Iterator[Mapping[str, Any]]:
    found = False
    for key in _LIST_KEYS:
        if isinstance(value.get(key), list):
            yield from read_messages(value[key], role, nesting)
            found = True
    for key in ("choices", "generations", "kwargs", "args"):
        if not found and isinstance(value.get(key), list | Mapping):
            messages = list(read_messages(value[key], role, nesting))
            yield from messages
            found = bool(messages)
    for key in _TEXT_KEYS:
        inner = value.get(key)
        if isinstance(inner, str | Mapping | list) and inner and not (found and key != "input"):
            yield from read_messages(inner, role, nesting)
            return
    if not found and value:
        yield {"role": role, "content": [dict(value)]}


def _read_message(value: Any) -> Mapping[str, Any] | None:
    """Return a message of OpenAI or LangChain in the form of OpenAI, or None."""
    if isinstance(value, list) and len(value) == 2 and isinstance(value[0], str):
        is_pair = chat_messages.get_role(value[0]) and isinstance(value[1], str)
        return {"role": value[0], "content": value[1]} if is_pair else None
    if not isinstance(value, Mapping):
        return None
    if isinstance(value.get("role"), str) and ("content" in value or "tool_calls" in value):
        return _convert_calls(value, value["role"])
    kind, data = coercion.to_text(value.get("type")), coercion.to_mapping(value.get("data"))
    if value.get("lc") is not None and isinstance(value.get("id"), list):
        name = coercion.to_text(value["id"][-1]) if value["id"] else ""
        kwargs = coercion.to_mapping(value.get("kwargs"))
        return _convert_calls(kwargs, _LANGCHAIN_ROLES[name]) if name in _LANGCHAIN_ROLES else None
    if chat_messages.get_role(kind) and "content" in (inner := data or value):
        return _convert_calls(inner, kind)
    inner = coercion.to_mapping(value.get("message"))
    return _read_message(inner) if inner else None


def _convert_calls(message: Mapping[str, Any], role: str) -> Mapping[str, Any]:
    """Return the message with a role, and with LangChain's tool calls in the form of OpenAI."""
    calls = [
        call
        if "function" in call
        else {
            "id": call.get("id"),
            "function": {"name": call.get("name"), "arguments": call.get("args")},
        }
        for call in coercion.to_mappings(message.get("tool_calls"))
    ]
    kept = {
        key: message[key]
        for key in (
            "content",
            "name",
            "tool_call_id",
            "refusal",
            "function_call",
            "reasoning_content",
        )
        if key in message
    }
    return {**kept, "role": role, **({"tool_calls": calls} if calls else {})}
