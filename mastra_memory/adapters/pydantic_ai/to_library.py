"""From messages of ours to pydantic-ai's, whoever wrote them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter

from mastra_memory.adapters.assistant_steps import (
    Step,
    deduplicate_tool_calls,
    get_outcome,
    get_reasoning_text,
    has_outcome,
    is_tool_call,
    split_steps,
)
from mastra_memory.adapters.library_metadata import Json, get_message_metadata, get_part_metadata
from mastra_memory.adapters.pydantic_ai.from_library import LIBRARY, parse_arguments
from mastra_memory.content import tool_calls
from mastra_memory.types import StoredMessage

_DATA_URI = re.compile(r"data:([^;,]*);base64,(.*)", re.DOTALL)
_URL_KINDS = {"image": "image-url", "audio": "audio-url", "video": "video-url"}
_OUTCOMES = {"result": "success", "output-denied": "denied", "output-error": "failed"}


def to_messages(messages: Iterable[StoredMessage]) -> list[ModelMessage]:
    """A message history for `agent.run(..., message_history=...)`.

    Calls that never ended are left out unless they come last, where the agent may go on with them.
    """
    dumped: list[Json] = []
    for message in deduplicate_tool_calls(messages):
        content = message.content
        if message.role == "assistant":
            dumped += _from_assistant(content)
        else:
            _join(dumped, _from_request(message.role, content))
    for one in dumped:
        one.pop("request_id", None)
    return ModelMessagesTypeAdapter.validate_python(dumped)


def _join(dumped: list[Json], request: Json) -> None:
    """Add a request, to the one before where both were one when they were written."""
    own = request.pop("request_id", None)
    if not request["parts"]:
        return
    before = dumped[-1] if dumped else None
    if own is not None and before is not None and before.get("request_id") == own:
        before["parts"] += request["parts"]
    else:
        dumped.append({**request, "request_id": own})


def _from_request(role: str, content: Json) -> Json:
    notes = get_message_metadata(LIBRARY, content) or {}
    about = dict(notes.pop("request", {}))
    parts = content["parts"]
    if role == "tool" or any(True for _ in tool_calls.iter_invocations(content)):
        made = [_returned(part) for part in parts if part.get("type") == "tool-invocation"]
    elif len(parts) == 1 and parts[0].get("type") == f"data-{LIBRARY}":
        made = [parts[0]["data"]]
    else:
        made = [_prompt(content, notes)]
    return {
        "request_id": about.pop("request", None),
        "kind": "request",
        "parts": [one for one in made if one],
        **about,
    }


def _prompt(content: Json, notes: Json) -> Json | None:
    is_list = notes.pop("is_list", False)
    pieces = [piece for part in content["parts"] if (piece := _user_piece(part)) is not None]
    if not pieces and content.get("content"):
        pieces = [content["content"]]
    if not pieces:
        return None
    alone = len(pieces) == 1 and isinstance(pieces[0], str) and not is_list
    return {"part_kind": "user-prompt", "content": pieces[0] if alone else pieces, **notes}


def _user_piece(part: Json) -> Any:
    notes = get_part_metadata(LIBRARY, part)
    match part.get("type"):
        case "text":
            return {"content": part["text"], **notes} if notes else part["text"]
        case "file" | "image":
            return _media(part, notes.get("content", {}))
        case kind if kind == f"data-{LIBRARY}":
            return part["data"]
    return None


def _media(part: Json, notes: Json) -> Json | None:
    data = part.get("data") or part.get("image") or part.get("url")
    if not isinstance(data, str):
        return None
    media_type = part.get("mimeType") or part.get("mediaType") or ""
    if found := _DATA_URI.match(data):
        media_type = media_type or found[1]
        return {"kind": "binary", "data": found[2], "media_type": media_type, **notes}
    if "://" not in data[:16]:
        return {"kind": "binary", "data": data, "media_type": media_type, **notes}
    kind = _URL_KINDS.get(media_type.partition("/")[0], "document-url")
    if part.get("type") == "image":
        kind = "image-url"
    made = {"kind": kind, "url": data, **notes}
    return made | ({"media_type": media_type} if media_type else {})


def _from_assistant(content: Json) -> Iterator[Json]:
    """Responses, and the results of their calls."""
    envelope = get_message_metadata(LIBRARY, content)
    for step in split_steps(content, library=LIBRARY, whole=envelope is not None):
        parts = [made for part in step.said if (made := _response_part(part)) is not None]
        if parts:
            yield {"kind": "response", "parts": parts, **(envelope or {})}
        yield from _results(step)


def _results(step: Step) -> Iterator[Json]:
    """The requests that brought the results; those of one request together."""
    notes = [
        get_part_metadata(LIBRARY, part).get("return", {}).get("request", {}) for part in step.ended
    ]
    pairs = zip(notes, step.ended, strict=True)
    for about, several in groupby(pairs, lambda pair: pair[0]):
        told = dict(about)
        request_id = told.pop("request", None)
        parts = [_returned(part) for _, part in several]
        yield {"kind": "request", "parts": parts, "request_id": request_id, **told}


def _response_part(part: Json) -> Json | None:
    notes = get_part_metadata(LIBRARY, part)
    match part.get("type"):
        case "text":
            return {"part_kind": "text", "content": part["text"], **notes}
        case "reasoning":
            return {"part_kind": "thinking", "content": get_reasoning_text(part), **notes}
        case "file" | "image":
            inner = notes.pop("content", {})
            media = _media(part, inner)
            fits = media is not None and media["kind"] == "binary"
            return {**notes, "part_kind": "file", "content": media} if fits else None
        case "tool-invocation" if is_tool_call(part):
            return _called(part["toolInvocation"], notes.get("call", {}))
        case kind if kind == f"data-{LIBRARY}":
            return part["data"]
    return None


def _called(call: Mapping[str, Any], notes: Json) -> Json:
    args = call.get("args")
    raw = call.get("rawInput")
    if isinstance(raw, str) and parse_arguments(raw) == args:
        args = raw
    return {
        "part_kind": "tool-call",
        "tool_name": call.get("toolName") or "",
        "tool_call_id": str(call.get("toolCallId")),
        "args": args if isinstance(args, str | dict | None) else {"value": args},
        **notes,
    }


def _returned(part: Json) -> Json | None:
    if not has_outcome(part):
        return None
    call = part["toolInvocation"]
    notes = dict(get_part_metadata(LIBRARY, part).get("return", {}))
    notes.pop("request", None)
    notes.pop("order", None)
    content, failed = get_outcome(call)
    return {
        "part_kind": "tool-return",
        "tool_name": call.get("toolName") or "",
        "tool_call_id": str(call.get("toolCallId")),
        "content": content,
        "outcome": "failed" if failed else _OUTCOMES.get(call["state"], "success"),
        **notes,
    }
