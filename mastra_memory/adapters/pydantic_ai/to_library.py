"""Convert stored messages, from any client, to pydantic-ai's messages."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter

from mastra_memory.adapters.assistant_steps import (
    Step,
    deduplicate_tool_calls,
    get_outcome,
    has_outcome,
    is_tool_call,
    split_steps,
)
from mastra_memory.adapters.library_metadata import Json, get_message_metadata, get_part_metadata
from mastra_memory.adapters.pydantic_ai.from_library import LIBRARY, parse_arguments
from mastra_memory.content import data_uris, tool_calls
from mastra_memory.content.message_text import get_reasoning_text
from mastra_memory.types import StoredMessage

_URL_KINDS = {"image": "image-url", "audio": "audio-url", "video": "video-url"}
_OUTCOMES = {"result": "success", "output-denied": "denied", "output-error": "failed"}


def to_messages(messages: Iterable[StoredMessage]) -> list[ModelMessage]:
    """Return a message history for `agent.run(..., message_history=...)`."""
    dumped: list[Json] = []
    for message in deduplicate_tool_calls(messages):
        content = message.content
        if message.role == "assistant":
            dumped += _convert_answer(content)
        else:
            _append_request(dumped, _convert_request(message.role, content))
    for item in dumped:
        item.pop("request_id", None)
    return ModelMessagesTypeAdapter.validate_python(dumped)


def _append_request(dumped: list[Json], request: Json) -> None:
    """Append a request, or merge it with the last one if they were stored from one request."""
    request_id = request.pop("request_id", None)
    if not request["parts"]:
        return
    last = dumped[-1] if dumped else None
    if request_id is not None and last is not None and last.get("request_id") == request_id:
        last["parts"] += request["parts"]
    else:
        dumped.append({**request, "request_id": request_id})


def _convert_request(role: str, content: Json) -> Json:
    metadata = get_message_metadata(LIBRARY, content) or {}
    fields = dict(metadata.pop("request", {}))
    stored = content["parts"]
    if role == "tool" or any(True for _ in tool_calls.iter_tool_calls(content)):
        parts = [_convert_result(part) for part in stored if part.get("type") == "tool-invocation"]
    elif len(stored) == 1 and stored[0].get("type") == f"data-{LIBRARY}":
        parts = [stored[0]["data"]]
    else:
        parts = [_convert_prompt(content, metadata)]
    return {
        "request_id": fields.pop("request", None),
        "kind": "request",
        "parts": [part for part in parts if part],
        **fields,
    }


def _convert_prompt(content: Json, metadata: Json) -> Json | None:
    is_list = metadata.pop("is_list", False)
    items = [item for part in content["parts"] if (item := _convert_user_part(part)) is not None]
    if not items and content.get("content"):
        items = [content["content"]]
    if not items:
        return None
    is_text = len(items) == 1 and isinstance(items[0], str) and not is_list
    return {"part_kind": "user-prompt", "content": items[0] if is_text else items, **metadata}


def _convert_user_part(part: Json) -> Any:
    metadata = get_part_metadata(LIBRARY, part)
    match part.get("type"):
        case "text":
            return {"content": part["text"], **metadata} if metadata else part["text"]
        case "file" | "image":
            return _convert_file(part, metadata.get("content", {}))
        case kind if kind == f"data-{LIBRARY}":
            return part["data"]
    return None


def _convert_file(part: Json, metadata: Json) -> Json | None:
    data = part.get("data") or part.get("image") or part.get("url")
    if not isinstance(data, str):
        return None
    media_type = part.get("mimeType") or part.get("mediaType") or ""
    uri = data_uris.parse_data_uri(data)
    if uri is not None and uri.is_base64:
        media_type = media_type or uri.mime_type
        return {"kind": "binary", "data": uri.data, "media_type": media_type, **metadata}
    if "://" not in data[:16]:  # Not a URL: Mastra also stores files as plain base64.
        return {"kind": "binary", "data": data, "media_type": media_type, **metadata}
    kind = _URL_KINDS.get(media_type.partition("/")[0], "document-url")
    if part.get("type") == "image":
        kind = "image-url"
    item = {"kind": kind, "url": data, **metadata}
    return item | ({"media_type": media_type} if media_type else {})


def _convert_answer(content: Json) -> Iterator[Json]:
    """Yield responses, each followed by the requests with the results of its calls."""
    fields = get_message_metadata(LIBRARY, content)
    for step in split_steps(content, library=LIBRARY, single_step=fields is not None):
        parts = [item for part in step.parts if (item := _convert_answer_part(part)) is not None]
        if parts:
            yield {"kind": "response", "parts": parts, **(fields or {})}
        yield from _convert_results(step)


def _convert_results(step: Step) -> Iterator[Json]:
    """Yield the requests with the tool results. Results of one request stay together."""
    requests = [
        get_part_metadata(LIBRARY, part).get("return", {}).get("request", {})
        for part in step.results
    ]
    pairs = zip(requests, step.results, strict=True)
    for request, group in groupby(pairs, lambda pair: pair[0]):
        fields = dict(request)
        request_id = fields.pop("request", None)
        parts = [_convert_result(part) for _, part in group]
        yield {"kind": "request", "parts": parts, "request_id": request_id, **fields}


def _convert_answer_part(part: Json) -> Json | None:
    metadata = get_part_metadata(LIBRARY, part)
    match part.get("type"):
        case "text":
            return {"part_kind": "text", "content": part["text"], **metadata}
        case "reasoning":
            return {"part_kind": "thinking", "content": get_reasoning_text(part), **metadata}
        case "file" | "image":
            file = _convert_file(part, metadata.pop("content", {}))
            # A response in pydantic-ai cannot contain the URL of a file.
            is_binary = file is not None and file["kind"] == "binary"
            return {**metadata, "part_kind": "file", "content": file} if is_binary else None
        case "tool-invocation" if is_tool_call(part):
            return _convert_call(part["toolInvocation"], metadata.get("call", {}))
        case kind if kind == f"data-{LIBRARY}":
            stored: dict[str, Any] = part["data"]
            return stored
    return None


def _convert_call(call: Mapping[str, Any], metadata: Json) -> Json:
    args = call.get("args")
    # Use the original JSON text of the arguments, unless they have been changed.
    raw = call.get("rawInput")
    if isinstance(raw, str) and parse_arguments(raw) == args:
        args = raw
    return {
        "part_kind": "tool-call",
        "tool_name": call.get("toolName") or "",
        "tool_call_id": str(call.get("toolCallId")),
        "args": args if isinstance(args, str | dict | None) else {"value": args},
        **metadata,
    }


def _convert_result(part: Json) -> Json | None:
    if not has_outcome(part):
        return None
    call = part["toolInvocation"]
    metadata = dict(get_part_metadata(LIBRARY, part).get("return", {}))
    metadata.pop("request", None)
    metadata.pop("order", None)
    content, failed = get_outcome(call)
    return {
        "part_kind": "tool-return",
        "tool_name": call.get("toolName") or "",
        "tool_call_id": str(call.get("toolCallId")),
        "content": content,
        "outcome": "failed" if failed else _OUTCOMES.get(call["state"], "success"),
        **metadata,
    }
