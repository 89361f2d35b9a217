"""Convert between items of OpenAI's Responses API and messages.

An item is a message of the user or of the model, reasoning, a function call, or its output.
Consecutive items of the model are stored in one message of the assistant. The metadata of the first
part of each item has the other fields of the item, so that the same items can be built again.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from mastra_memory.adapters.assistant_steps import (
    deduplicate_tool_calls,
    get_outcome,
    has_outcome,
    is_tool_call,
    split_steps,
)
from mastra_memory.adapters.library_metadata import (
    Json,
    attach_metadata,
    build_content,
    get_message_metadata,
    get_part_metadata,
    make_jsonable,
    make_opaque_part,
)
from mastra_memory.content.message_text import get_reasoning_text
from mastra_memory.db import json_text
from mastra_memory.exceptions import InvalidInput
from mastra_memory.types import StoredMessage

LIBRARY = "openai-agents"
SKIPPED_ROLES = ("system", "developer")
_TEXT_TYPES = ("input_text", "output_text", "text")


def from_items(items: Iterable[Any]) -> list[Json]:
    """Return messages for `save_turn`, each with `role` and `content`.

    Consecutive items of the model become one message. `save_turn` moves the outputs of functions
    into the parts of their calls.
    """
    rows: list[Json] = []
    for item in map(make_jsonable, items):
        if item.get("role") in SKIPPED_ROLES:
            continue
        role, parts = _convert_item(item)
        if role == "assistant" and rows and rows[-1]["role"] == role:
            rows[-1]["content"]["parts"] += parts
        else:
            rows.append({"role": role, "content": build_content(LIBRARY, parts, {"items": True})})
    return rows


def _convert_item(item: Json) -> tuple[str, list[Json]]:
    """Return the role and the parts of an item."""
    kind = item.get("type") or "message"
    if kind == "function_call":
        return "assistant", [_convert_call(item)]
    if kind == "function_call_output":
        return "tool", [_convert_output(item)]
    if kind == "reasoning":
        return "assistant", [_convert_reasoning(item)]
    if kind != "message" or "role" not in item:
        return "assistant", [make_opaque_part(LIBRARY, item)]
    role = "user" if item["role"] == "user" else "assistant"
    return role, _convert_message(item)


def _omit(item: Mapping[str, Any], *keys: str) -> Json:
    return {key: value for key, value in item.items() if key not in keys}


def _convert_message(item: Json) -> list[Json]:
    fields = _omit(item, "content")
    content = item.get("content")
    if isinstance(content, str):
        return [_begin_item({"type": "text", "text": content}, fields | {"is_text": True})]
    if not content:
        return [make_opaque_part(LIBRARY, item)]
    first, *others = [_convert_entry(entry) for entry in content]
    return [_begin_item(first, fields), *others]


def _begin_item(part: Json, fields: Json) -> Json:
    """Return the first part of an item, with the item's other fields as metadata."""
    metadata = get_part_metadata(LIBRARY, part) | {"item": fields}
    return {**part, "providerMetadata": {LIBRARY: metadata}}


def _convert_entry(entry: Json) -> Json:
    """Return the part of one entry of a message's content list."""
    kind = entry.get("type")
    if kind in _TEXT_TYPES and isinstance(entry.get("text"), str):
        part = {"type": "text", "text": entry["text"]}
        return _attach_entry(part, _omit(entry, "text"))
    if kind == "input_image" and isinstance(entry.get("image_url"), str):
        part = {"type": "file", "mimeType": "image/*", "data": entry["image_url"]}
        return _attach_entry(part, _omit(entry, "image_url"))
    if kind == "input_file" and isinstance(entry.get("file_data"), str):
        part = {"type": "file", "mimeType": "", "data": entry["file_data"]}
        return _attach_entry(part, _omit(entry, "file_data"))
    return {**make_opaque_part(LIBRARY, entry), "providerMetadata": {LIBRARY: {"entry": True}}}


def _attach_entry(part: Json, entry: Json) -> Json:
    # Not `attach_metadata`: OpenAI requires keys like `annotations` even if they are empty.
    return {**part, "providerMetadata": {LIBRARY: {"entry": entry}}}


def _convert_call(item: Json) -> Json:
    raw = item.get("arguments")
    invocation: Json = {
        "state": "call",
        "toolCallId": item.get("call_id"),
        "toolName": item.get("name") or "",
        "args": _parse_arguments(raw),
        "rawInput": raw,
    }
    part = {"type": "tool-invocation", "toolInvocation": invocation}
    fields = _omit(item, "arguments", "call_id", "name")
    return attach_metadata(LIBRARY, part, {"item": fields}, under="call")


def _parse_arguments(text: Any) -> Any:
    if not isinstance(text, str | bytes):
        return text
    try:
        return json_text.loads(text)
    except InvalidInput:
        return text


def _convert_output(item: Json) -> Json:
    invocation: Json = {
        "state": "result",
        "toolCallId": item.get("call_id"),
        "toolName": "",
        "args": {},
        "result": item.get("output"),
    }
    part = {"type": "tool-invocation", "toolInvocation": invocation}
    metadata = {"item": _omit(item, "call_id", "output"), "order": time.time_ns()}
    return attach_metadata(LIBRARY, part, metadata, under="return")


def _convert_reasoning(item: Json) -> Json:
    """Return a reasoning part for an item with exactly one summary, else an opaque part."""
    texts = [
        summary.get("text") for summary in item.get("summary") or [] if isinstance(summary, Mapping)
    ]
    if len(texts) != 1 or not isinstance(texts[0], str):
        return make_opaque_part(LIBRARY, item)
    part: Json = {"type": "reasoning", "reasoning": texts[0]}
    part["details"] = [{"type": "text", "text": texts[0]}]
    return _begin_item(part, _omit(item, "summary"))


def to_items(messages: Iterable[StoredMessage]) -> list[Any]:
    """Return the items of stored messages, from any client."""
    return [item for message in deduplicate_tool_calls(messages) for item in _build_items(message)]


def _build_items(message: StoredMessage) -> Iterator[Json]:
    content = message.content
    if message.role == "tool":
        for part in content["parts"]:
            if has_outcome(part):
                yield _build_output(part)
        return
    if message.role != "assistant":
        yield from _group_parts("user", content["parts"])
        return
    is_own = get_message_metadata(LIBRARY, content) is not None
    for step in split_steps(content, library=LIBRARY, single_step=is_own):
        yield from _group_parts("assistant", step.parts)
        for part in step.results:
            yield _build_output(part)


def _group_parts(role: str, parts: Sequence[Json]) -> Iterator[Json]:
    """Yield the items of parts. Consecutive texts and files form one item.

    A new item begins at a part whose metadata has the fields of an item, and at a part that is a
    separate item.
    """
    current: Json | None = None
    for part in parts:
        metadata = get_part_metadata(LIBRARY, part)
        single = _build_single_item(part, metadata)
        if single is None and (entry := _build_entry(role, part, metadata)) is not None:
            if current is None or "item" in metadata:
                if current is not None:
                    yield current
                current = _build_message_item(role, metadata.get("item"))
            _append_entry(current, entry)
            continue
        if current is not None and single is not None:
            yield current
            current = None
        if single is not None:
            yield single
    if current is not None:
        yield current


def _build_message_item(role: str, fields: Any) -> Json:
    if isinstance(fields, Mapping):
        return {**fields, "content": []}
    return {"role": role, "content": []}


def _append_entry(item: Json, entry: Json) -> None:
    if item.pop("is_text", False):
        item["content"] = entry["text"]
    elif isinstance(item["content"], list):
        item["content"].append(entry)


def _build_single_item(part: Json, metadata: Json) -> Json | None:
    """Return the item of a call, of reasoning or of an opaque part; None for other parts."""
    if is_tool_call(part):
        return _build_call(part, metadata.get("call", {}).get("item"))
    if part.get("type") == "reasoning":
        fields = metadata.get("item")
        if not isinstance(fields, Mapping):
            return None  # OpenAI refuses reasoning without an id that OpenAI has created.
        return {**fields, "summary": [{"type": "summary_text", "text": get_reasoning_text(part)}]}
    is_item = part.get("type") == f"data-{LIBRARY}" and "entry" not in metadata
    return part["data"] if is_item else None


def _build_call(part: Json, fields: Any) -> Json:
    call = part["toolInvocation"]
    # Use the original JSON text of the arguments, unless they have been changed.
    raw, args = call.get("rawInput"), call.get("args")
    if not (isinstance(raw, str) and _parse_arguments(raw) == args):
        raw = args if isinstance(args, str) else orjson.dumps(args or {}).decode()
    item = dict(fields) if isinstance(fields, Mapping) else {"type": "function_call"}
    item |= {"call_id": str(call.get("toolCallId")), "name": call.get("toolName") or ""}
    return item | {"arguments": raw}


def _build_output(part: Json) -> Json:
    call = part["toolInvocation"]
    fields = get_part_metadata(LIBRARY, part).get("return", {}).get("item")
    output, _ = get_outcome(call)
    if not isinstance(fields, Mapping):
        fields = {"type": "function_call_output"}
        output = output if isinstance(output, str) else orjson.dumps(output, default=str).decode()
    return {**fields, "call_id": str(call.get("toolCallId")), "output": output}


def _build_entry(role: str, part: Json, metadata: Json) -> Json | None:
    """Return the entry of a text or a file, or None if OpenAI has no such entry."""
    entry = metadata.get("entry")
    match part.get("type"):
        case "text":
            default: Json = {"type": "input_text"}
            if role != "user":
                default = {"type": "output_text", "annotations": []}
            return {**(entry or default), "text": part["text"]}
        case "file" | "image":
            data = part.get("data") or part.get("image") or ""
            if isinstance(entry, Mapping) and entry.get("type") == "input_file":
                return {**entry, "file_data": data}
            is_image = part["type"] == "image" or str(part.get("mimeType")).startswith("image/")
            if role == "user" and is_image and data:  # an imported upload may have only a name
                return {**(entry or {"type": "input_image", "detail": "auto"}), "image_url": data}
            return None
        case kind if kind == f"data-{LIBRARY}":
            stored: dict[str, Any] = part["data"]
            return stored
    return None


def drop_orphan_outputs(items: Sequence[Any]) -> list[Any]:
    """Remove outputs whose calls are not before them, because OpenAI refuses them.

    This applies to the outputs of all kinds of tools, and to answers to requests for approval.
    """
    call_keys: set[tuple[str, Any]] = set()
    kept = []
    for item in items:
        kind = item.get("type") or "message"
        if (answered := _get_answered_call(kind, item)) is None:
            call_keys.add(_get_call_key(kind, item))
        elif answered not in call_keys:
            continue
        kept.append(item)
    return kept


def _get_call_key(kind: str, item: Mapping[str, Any]) -> tuple[str, Any]:
    call_id = item.get("id") if kind == "mcp_approval_request" else item.get("call_id")
    return kind.removesuffix("_call"), call_id


def _get_answered_call(kind: str, item: Mapping[str, Any]) -> tuple[str, Any] | None:
    """Return the key of the call that an output belongs to, or None for another item.

    The output of a `computer_call` is a `computer_call_output`, and so on for each kind of tool;
    that of a `tool_search_call` is a `tool_search_output`.
    """
    if kind == "mcp_approval_response":
        return "mcp_approval_request", item.get("approval_request_id")
    if not kind.endswith("_output"):
        return None
    return kind.removesuffix("_output").removesuffix("_call"), item.get("call_id")
