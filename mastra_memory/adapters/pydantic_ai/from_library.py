"""From pydantic-ai's messages to rows of ours."""

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
from mastra_memory.db import json_text
from mastra_memory.exceptions import InvalidInput

LIBRARY = "pydantic-ai"
SKIPPED_PARTS = ("system-prompt", "instruction-delta", "instruction-baseline")
_INSTRUCTIONS = ("instructions", "parts", "kind")
_STATES = {
    "success": "result",
    "denied": "output-denied",
}
_NO_USAGE = {"input_tokens": 0, "output_tokens": 0}


def from_messages(messages: Sequence[ModelMessage]) -> list[Json]:
    """Rows for `save_turn`: `role` and `content`, in order.

    A response is one message. A request becomes one for its tool results and one for each thing
    the user said; the results go into their calls when they are saved.
    """
    dumped = ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")
    return [row for message in dumped for row in _rows(message)]


def _rows(message: Json) -> Iterator[Json]:
    if message["kind"] == "response":
        parts = [_response_part(part) for part in message["parts"]]
        yield {"role": "assistant", "content": build_content(LIBRARY, parts, _envelope(message))}
        return
    parts = [part for part in message["parts"] if part["part_kind"] not in SKIPPED_PARTS]
    about = {"request": uuid.uuid4().hex[:12], **_envelope(message)}
    for kind, several in groupby(parts, _kind_of_row):
        if kind == "tool":
            results = [_result_part(part, about) for part in several]
            yield {"role": "tool", "content": build_content(LIBRARY, results, {"request": about})}
        else:
            for part in several:
                yield {"role": "user", "content": _said(part, about)}


def _kind_of_row(part: Json) -> str:
    return "tool" if part["part_kind"].endswith("tool-return") else "user"


def _envelope(message: Json) -> Json:
    """What a message says besides its parts; what is as usual is left out."""
    kept = {key: value for key, value in message.items() if key not in _INSTRUCTIONS}
    if kept.get("state") == "complete":
        del kept["state"]
    usage = kept.get("usage")
    if isinstance(usage, Mapping):
        kept["usage"] = {key: value for key, value in usage.items() if value}
    return kept


def _response_part(part: Json) -> Json:
    kind = part["part_kind"]
    notes = {key: value for key, value in part.items() if key not in ("content", "args")}
    match kind:
        case "text":
            return attach_metadata(
                LIBRARY, {"type": "text", "text": part["content"]}, _unusual(notes, kind)
            )
        case "thinking":
            made: Json = {"type": "reasoning", "reasoning": part["content"]}
            made["details"] = [{"type": "text", "text": part["content"]}]
            return attach_metadata(LIBRARY, made, _unusual(notes, kind))
        case "file":
            return attach_metadata(
                LIBRARY, _file(part["content"]), _unusual(notes, kind) | {"kind": kind}
            )
        case "tool-call":
            del notes["tool_name"], notes["tool_call_id"]
            return attach_metadata(LIBRARY, _call(part), _unusual(notes, kind), under="call")
    return make_opaque_part(LIBRARY, part)


def _unusual(notes: Json, kind: str) -> Json:
    """Notes without the kind, where the part itself says it."""
    return {key: value for key, value in notes.items() if (key, value) != ("part_kind", kind)}


def _call(part: Json) -> Json:
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
    try:
        return json_text.loads(text)
    except InvalidInput:
        return text


def _result_part(part: Json, about: Json) -> Json:
    outcome = part.get("outcome", "success")
    invocation: Json = {
        "state": _STATES.get(outcome, "output-error"),
        "toolCallId": part["tool_call_id"],
        "toolName": part["tool_name"],
        "args": {},
        "result": part["content"],
    }
    if invocation["state"] == "output-error":
        invocation["errorText"] = _text(part["content"])
    elif invocation["state"] == "output-denied":
        invocation["approval"] = {"approved": False, "reason": _text(part["content"])}
    known = ("tool_name", "tool_call_id", "content")
    notes = {key: value for key, value in part.items() if key not in known}
    notes |= {"request": about, "order": time.time_ns()}
    made = {"type": "tool-invocation", "toolInvocation": invocation}
    return attach_metadata(LIBRARY, made, notes, under="return")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _said(part: Json, about: Json) -> Json:
    if part["part_kind"] != "user-prompt":
        return build_content(LIBRARY, [make_opaque_part(LIBRARY, part)], {"request": about})
    said = part["content"]
    pieces = [{"type": "text", "text": said}] if isinstance(said, str) else _pieces(said)
    notes = {key: value for key, value in part.items() if key not in ("content", "part_kind")}
    notes |= {"is_list": None if isinstance(said, str) else True, "request": about}
    return build_content(LIBRARY, pieces, notes)


def _pieces(content: Sequence[Any]) -> list[Json]:
    return [_piece(one) for one in content]


def _piece(one: Any) -> Json:
    if isinstance(one, str):
        return {"type": "text", "text": one}
    if one["kind"] == "text-content":
        notes = {key: value for key, value in one.items() if key != "content"}
        return attach_metadata(LIBRARY, {"type": "text", "text": one["content"]}, notes)
    if one["kind"] == "binary" or "url" in one:
        return _file(one)
    return make_opaque_part(LIBRARY, one)


def _file(one: Json) -> Json:
    notes = {key: value for key, value in one.items() if key not in ("data", "url", "media_type")}
    made: Json = {"type": "file", "mimeType": one.get("media_type") or ""}
    if "url" in one:
        made["data"] = one["url"]
    else:
        made["data"] = f"data:{one['media_type']};base64,{one['data']}"
    return attach_metadata(LIBRARY, made, notes, under="content")
