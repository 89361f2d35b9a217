"""Items of OpenAI's Responses API as messages of ours, and back."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from mastra_memory.adapters.assistant_steps import (
    deduplicate_tool_calls,
    get_outcome,
    get_reasoning_text,
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
    make_opaque_part,
)
from mastra_memory.db import json_text
from mastra_memory.exceptions import InvalidInput
from mastra_memory.types import StoredMessage

LIBRARY = "openai-agents"
SKIPPED_ROLES = ("system", "developer")
_TEXTS = ("input_text", "output_text", "text")


def from_items(items: Iterable[Any]) -> list[Json]:
    """Rows for `save_turn`: what the model said in one go is one message.

    Outputs of functions go into their calls when they are saved.
    """
    rows: list[Json] = []
    for item in items:
        if item.get("role") in SKIPPED_ROLES:
            continue
        role, parts = _parts(item)
        if role == "assistant" and rows and rows[-1]["role"] == role:
            rows[-1]["content"]["parts"] += parts
        else:
            rows.append({"role": role, "content": build_content(LIBRARY, parts, {"items": True})})
    return rows


def _parts(item: Json) -> tuple[str, list[Json]]:
    kind = item.get("type") or "message"
    if kind == "function_call":
        return "assistant", [_call(item)]
    if kind == "function_call_output":
        return "tool", [_output(item)]
    if kind == "reasoning":
        return "assistant", [_reasoning(item)]
    if kind != "message" or "role" not in item:
        return "assistant", [make_opaque_part(LIBRARY, item)]
    role = "user" if item["role"] == "user" else "assistant"
    return role, _said(item)


def _rest(item: Mapping[str, Any], *said: str) -> Json:
    return {key: value for key, value in item.items() if key not in said}


def _said(item: Json) -> list[Json]:
    about = _rest(item, "content")
    said = item.get("content")
    if isinstance(said, str):
        return [_first({"type": "text", "text": said}, about | {"is_text": True})]
    if not said:
        return [make_opaque_part(LIBRARY, item)]
    first, *others = [_entry(entry) for entry in said]
    return [_first(first, about), *others]


def _first(part: Json, about: Json) -> Json:
    """The part with which an item begins."""
    notes = get_part_metadata(LIBRARY, part) | {"item": about}
    return {**part, "providerMetadata": {LIBRARY: notes}}


def _entry(entry: Json) -> Json:
    kind = entry.get("type")
    if kind in _TEXTS and isinstance(entry.get("text"), str):
        return _noted({"type": "text", "text": entry["text"]}, _rest(entry, "text"))
    if kind == "input_image" and isinstance(entry.get("image_url"), str):
        made = {"type": "file", "mimeType": "image/*", "data": entry["image_url"]}
        return _noted(made, _rest(entry, "image_url"))
    if kind == "input_file" and isinstance(entry.get("file_data"), str):
        made = {"type": "file", "mimeType": "", "data": entry["file_data"]}
        return _noted(made, _rest(entry, "file_data"))
    return {**make_opaque_part(LIBRARY, entry), "providerMetadata": {LIBRARY: {"entry": True}}}


def _noted(part: Json, entry: Json) -> Json:
    """The part with its entry noted whole: an empty list in it means something here."""
    return {**part, "providerMetadata": {LIBRARY: {"entry": entry}}}


def _call(item: Json) -> Json:
    raw = item.get("arguments")
    invocation: Json = {
        "state": "call",
        "toolCallId": item.get("call_id"),
        "toolName": item.get("name") or "",
        "args": _parsed(raw),
        "rawInput": raw,
    }
    part = {"type": "tool-invocation", "toolInvocation": invocation}
    return attach_metadata(
        LIBRARY, part, {"item": _rest(item, "arguments", "call_id", "name")}, under="call"
    )


def _parsed(text: Any) -> Any:
    if not isinstance(text, str | bytes):
        return text
    try:
        return json_text.loads(text)
    except InvalidInput:
        return text


def _output(item: Json) -> Json:
    invocation: Json = {
        "state": "result",
        "toolCallId": item.get("call_id"),
        "toolName": "",
        "args": {},
        "result": item.get("output"),
    }
    part = {"type": "tool-invocation", "toolInvocation": invocation}
    notes = {"item": _rest(item, "call_id", "output"), "order": time.time_ns()}
    return attach_metadata(LIBRARY, part, notes, under="return")


def _reasoning(item: Json) -> Json:
    """The first summary is the part's text, or else the reasoning itself; the rest is noted."""
    texts = [one.get("text") for one in item.get("summary") or [] if isinstance(one, Mapping)]
    if len(texts) != 1 or not isinstance(texts[0], str):
        return make_opaque_part(LIBRARY, item)
    part: Json = {"type": "reasoning", "reasoning": texts[0]}
    part["details"] = [{"type": "text", "text": texts[0]}]
    return _first(part, _rest(item, "summary"))


def to_items(messages: Iterable[StoredMessage]) -> list[Any]:
    """The items of these messages, whoever wrote them."""
    return [item for message in deduplicate_tool_calls(messages) for item in _items(message)]


def _items(message: StoredMessage) -> Iterator[Json]:
    content = message.content
    if message.role == "tool":
        for part in content["parts"]:
            if has_outcome(part):
                yield _output_item(part)
        return
    if message.role != "assistant":
        yield from _said_items("user", content["parts"])
        return
    written_here = get_message_metadata(LIBRARY, content) is not None
    for step in split_steps(content, library=LIBRARY, whole=written_here):
        yield from _said_items("assistant", step.said)
        for part in step.ended:
            yield _output_item(part)


def _said_items(role: str, parts: Sequence[Json]) -> Iterator[Json]:
    """Items of parts: one begins where it is noted, or where somebody else said something."""
    current: Json | None = None
    for part in parts:
        notes = get_part_metadata(LIBRARY, part)
        alone = _item_alone(part, notes)
        if alone is None and (entry := _entry_of(role, part, notes)) is not None:
            if current is None or "item" in notes:
                if current is not None:
                    yield current
                current = _message_item(role, notes.get("item"))
            _add(current, entry)
            continue
        if current is not None and alone is not None:
            yield current
            current = None
        if alone is not None:
            yield alone
    if current is not None:
        yield current


def _message_item(role: str, about: Any) -> Json:
    if isinstance(about, Mapping):
        return {**about, "content": []}
    return {"role": role, "content": []}


def _add(item: Json, entry: Json) -> None:
    if item.pop("is_text", False):
        item["content"] = entry["text"]
    elif isinstance(item["content"], list):
        item["content"].append(entry)


def _item_alone(part: Json, notes: Json) -> Json | None:
    """The item that a part is by itself: a call, reasoning, what only the library knows."""
    if is_tool_call(part):
        return _call_item(part, notes.get("call", {}).get("item"))
    if part.get("type") == "reasoning":
        about = notes.get("item")
        if not isinstance(about, Mapping):
            return None  # of another library: OpenAI would not know it
        return {**about, "summary": [{"type": "summary_text", "text": get_reasoning_text(part)}]}
    is_item = part.get("type") == f"data-{LIBRARY}" and "entry" not in notes
    return part["data"] if is_item else None


def _call_item(part: Json, about: Any) -> Json:
    call = part["toolInvocation"]
    raw, args = call.get("rawInput"), call.get("args")
    if not (isinstance(raw, str) and _parsed(raw) == args):
        raw = args if isinstance(args, str) else orjson.dumps(args or {}).decode()
    item = dict(about) if isinstance(about, Mapping) else {"type": "function_call"}
    item |= {"call_id": str(call.get("toolCallId")), "name": call.get("toolName") or ""}
    return item | {"arguments": raw}


def _output_item(part: Json) -> Json:
    call = part["toolInvocation"]
    about = get_part_metadata(LIBRARY, part).get("return", {}).get("item")
    given, _ = get_outcome(call)
    if not isinstance(about, Mapping):
        about = {"type": "function_call_output"}
        given = given if isinstance(given, str) else orjson.dumps(given, default=str).decode()
    return {**about, "call_id": str(call.get("toolCallId")), "output": given}


def _entry_of(role: str, part: Json, notes: Json) -> Json | None:
    entry = notes.get("entry")
    match part.get("type"):
        case "text":
            kind = "input_text" if role == "user" else "output_text"
            usual = {"type": kind} if role == "user" else {"type": kind, "annotations": []}
            return {**(entry or usual), "text": part["text"]}
        case "file" | "image":
            data = part.get("data") or part.get("image") or ""
            if isinstance(entry, Mapping) and entry.get("type") == "input_file":
                return {**entry, "file_data": data}
            is_image = part["type"] == "image" or str(part.get("mimeType")).startswith("image/")
            if role == "user" and is_image:
                return {**(entry or {"type": "input_image", "detail": "auto"}), "image_url": data}
            return None
        case kind if kind == f"data-{LIBRARY}":
            return part["data"]
    return None


def drop_orphan_outputs(items: Sequence[Any]) -> list[Any]:
    """The items without outputs whose calls are not among them: OpenAI would refuse those."""
    called = {item.get("call_id") for item in items if item.get("type") == "function_call"}
    return [
        item
        for item in items
        if item.get("type") != "function_call_output" or item.get("call_id") in called
    ]
