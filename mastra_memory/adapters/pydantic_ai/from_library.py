"""Convert pydantic-ai's messages to rows for `save_turn`.

pydantic-ai has requests (the user's input and tool results) and responses (the model's answers).
All functions work on its JSON form, in which each part has a `part_kind`.
"""

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import orjson
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter

from mastra_memory.adapters.library_metadata import (
    Json,
    attach_metadata,
    build_content,
    make_opaque_part,
)
from mastra_memory.content import data_uris
from mastra_memory.db import json_text
from mastra_memory.exceptions import InvalidInput

LIBRARY = "pydantic-ai"
SKIPPED_PARTS = ("system-prompt", "instruction-delta", "instruction-baseline")
_SKIPPED_MESSAGE_KEYS = ("instructions", "parts", "kind")
_STATES = {
    "success": "result",
    "denied": "output-denied",
}


def from_messages(messages: Sequence[ModelMessage]) -> list[Json]:
    """Return rows with `role` and `content` for `save_turn`, in order.

    A response becomes one message. A request becomes one message for its tool results, and one
    for each input of the user. `save_turn` moves the results into the parts of their calls.
    """
    dumped = _dump_messages(messages)
    if any(part["part_kind"] == "retry-prompt" for one in dumped for part in one["parts"]):
        # The library reads this deprecated part as the tool result or the feedback that it means.
        dumped = _dump_messages(ModelMessagesTypeAdapter.validate_python(dumped))
    return [row for message in dumped for row in _convert_message(message)]


def _dump_messages(messages: Sequence[ModelMessage]) -> list[Json]:
    """Return the messages as JSON. Metadata of tools that has no JSON form becomes None."""
    dumped: list[Json] = ModelMessagesTypeAdapter.dump_python(
        list(messages), mode="json", fallback=lambda _: None
    )
    return dumped


def _convert_message(message: Json) -> Iterator[Json]:
    if message["kind"] == "response":
        parts = [_convert_response_part(part) for part in message["parts"]]
        content = build_content(LIBRARY, parts, _get_message_fields(message))
        yield {"role": "assistant", "content": content}
        return
    parts = [part for part in message["parts"] if part["part_kind"] not in SKIPPED_PARTS]
    # The rows of one request share an id, so that `to_messages` can join them again.
    request = {"request": uuid.uuid4().hex[:12], **_get_message_fields(message)}
    for is_result, group in groupby(parts, _is_tool_result):
        if is_result:
            results = [_convert_result(part, request) for part in group]
            content = build_content(LIBRARY, results, {"request": request})
            yield {"role": "tool", "content": content}
        else:
            for part in group:
                yield {"role": "user", "content": _convert_user_part(part, request)}


def _is_tool_result(part: Json) -> bool:
    kind: str = part["part_kind"]
    return kind.endswith("tool-return")


def _get_message_fields(message: Json) -> Json:
    """Return the fields of a message besides its parts, without default values."""
    fields = {key: value for key, value in message.items() if key not in _SKIPPED_MESSAGE_KEYS}
    if fields.get("state") == "complete":
        del fields["state"]
    usage = fields.get("usage")
    if isinstance(usage, Mapping):
        fields["usage"] = {key: value for key, value in usage.items() if value}
    return fields


def _convert_response_part(part: Json) -> Json:
    kind = part["part_kind"]
    metadata = {key: value for key, value in part.items() if key not in ("content", "args")}
    # For text, reasoning and tool calls, our part type determines `part_kind`.
    implied = {key: value for key, value in metadata.items() if key != "part_kind"}
    match kind:
        case "text":
            return attach_metadata(LIBRARY, {"type": "text", "text": part["content"]}, implied)
        case "thinking":
            reasoning: Json = {"type": "reasoning", "reasoning": part["content"]}
            reasoning["details"] = [{"type": "text", "text": part["content"]}]
            return attach_metadata(LIBRARY, reasoning, implied)
        case "file":
            return attach_metadata(
                LIBRARY, _convert_file(part["content"]), implied | {"kind": kind}
            )
        case "tool-call":
            del implied["tool_name"], implied["tool_call_id"]
            return attach_metadata(LIBRARY, _convert_call(part), implied, under="call")
    return make_opaque_part(LIBRARY, part)


def _convert_call(part: Json) -> Json:
    invocation = {
        "state": "call",
        "toolCallId": part["tool_call_id"],
        "toolName": part["tool_name"],
        "args": part["args"],
    }
    if isinstance(part["args"], str):
        invocation |= {"args": parse_arguments(part["args"]), "rawInput": part["args"]}
    return {"type": "tool-invocation", "toolInvocation": invocation}


def parse_arguments(text: str) -> Any:
    """Return the JSON value of a call's arguments, or the text if it is not valid JSON."""
    try:
        return json_text.loads(text)
    except InvalidInput:
        return text


def _convert_result(part: Json, request: Json) -> Json:
    outcome = part.get("outcome", "success")
    invocation: Json = {
        "state": _STATES.get(outcome, "output-error"),
        "toolCallId": part["tool_call_id"],
        "toolName": part["tool_name"],
        "args": {},
        "result": part["content"],
    }
    if invocation["state"] == "output-error":
        invocation["errorText"] = _dump_text(part["content"])
    elif invocation["state"] == "output-denied":
        invocation["approval"] = {"approved": False, "reason": _dump_text(part["content"])}
    converted_keys = ("tool_name", "tool_call_id", "content")
    metadata = {key: value for key, value in part.items() if key not in converted_keys}
    metadata |= {"request": request, "order": time.time_ns()}
    result = {"type": "tool-invocation", "toolInvocation": invocation}
    return attach_metadata(LIBRARY, result, metadata, under="return")


def _dump_text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _convert_user_part(part: Json, request: Json) -> Json:
    if part["part_kind"] != "user-prompt":
        return build_content(LIBRARY, [make_opaque_part(LIBRARY, part)], {"request": request})
    prompt = part["content"]
    is_text = isinstance(prompt, str)
    parts = [_convert_user_content(item) for item in ([prompt] if is_text else prompt)]
    metadata = {key: value for key, value in part.items() if key not in ("content", "part_kind")}
    metadata |= {"is_list": None if is_text else True, "request": request}
    return build_content(LIBRARY, parts, metadata)


def _convert_user_content(item: Any) -> Json:
    if isinstance(item, str):
        return {"type": "text", "text": item}
    if item["kind"] == "text-content":
        metadata = {key: value for key, value in item.items() if key != "content"}
        return attach_metadata(LIBRARY, {"type": "text", "text": item["content"]}, metadata)
    if item["kind"] == "binary" or "url" in item:
        return _convert_file(item)
    return make_opaque_part(LIBRARY, item)


def _convert_file(item: Json) -> Json:
    converted_keys = ("data", "url", "media_type")
    metadata = {key: value for key, value in item.items() if key not in converted_keys}
    part: Json = {"type": "file", "mimeType": item.get("media_type") or ""}
    if "url" in item:
        part["data"] = item["url"]
    else:
        part["data"] = data_uris.build_data_uri(item["data"], item["media_type"])
    return attach_metadata(LIBRARY, part, metadata, under="content")
