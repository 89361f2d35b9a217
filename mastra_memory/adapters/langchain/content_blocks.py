"""LangChain's content blocks and tool calls as parts of ours, and back."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from mastra_memory.adapters.assistant_steps import get_reasoning_text, is_tool_call
from mastra_memory.adapters.library_metadata import (
    Json,
    attach_metadata,
    get_part_metadata,
    make_opaque_part,
)

LIBRARY = "langchain"
_THOUGHTS = {"reasoning": "reasoning", "thinking": "thinking"}
_MEDIA = ("image", "audio", "video", "file")


def dump_json(value: Any) -> str:
    """A value as JSON text."""
    return orjson.dumps(value, default=str).decode()


def build_parts(content: str | Sequence[Any], tool_calls: Sequence[Json]) -> list[Json]:
    """The parts that say what a message says, its calls last."""
    known = {call.get("id"): call for call in tool_calls}
    said = [{"type": "text", "text": content}] if isinstance(content, str) and content else []
    if not isinstance(content, str):
        said = [_part(block, known) for block in content]
    return [*said, *(_call(call) for call in tool_calls)]


def _part(block: Any, known: Mapping[Any, Json]) -> Json:
    if isinstance(block, str):
        return attach_metadata(LIBRARY, {"type": "text", "text": block}, {"bare": True})
    kind = block.get("type")
    if kind == "text" and isinstance(block.get("text"), str):
        return attach_metadata(
            LIBRARY, {"type": "text", "text": block["text"]}, _rest(block, "text")
        )
    if kind in _THOUGHTS and isinstance(block.get(_THOUGHTS[kind]), str):
        text = block[_THOUGHTS[kind]]
        made = {"type": "reasoning", "reasoning": text}
        made["details"] = [{"type": "text", "text": text}]
        return attach_metadata(LIBRARY, made, _rest(block, _THOUGHTS[kind]) | {"kind": kind})
    if kind == "image_url":
        return _image_url(block)
    if kind in _MEDIA and ("url" in block or "base64" in block):
        return _media(kind, block)
    if kind == "tool_use" and block.get("input") == known.get(block.get("id"), {}).get("args"):
        return make_opaque_part(LIBRARY, _rest(block, "input") | {"type": kind})
    return make_opaque_part(LIBRARY, block)


def _rest(block: Mapping[str, Any], *said: str) -> Json:
    return {key: value for key, value in block.items() if key not in ("type", *said)}


def _image_url(block: Json) -> Json:
    address = block["image_url"]
    inner = address if isinstance(address, Mapping) else {"url": address}
    notes = _rest(block, "image_url") | {"kind": "image_url", "inner": _rest(inner, "url")}
    notes["bare"] = None if isinstance(address, Mapping) else True
    made = {"type": "file", "mimeType": "image/*", "data": inner.get("url") or ""}
    return attach_metadata(LIBRARY, made, notes)


def _media(kind: str, block: Json) -> Json:
    media_type = block.get("mime_type") or ""
    made: Json = {"type": "file", "mimeType": media_type or f"{kind}/*"}
    if "url" in block:
        made["data"] = block["url"]
    else:
        made["data"] = f"data:{media_type};base64,{block['base64']}"
    return attach_metadata(
        LIBRARY, made, _rest(block, "url", "base64", "mime_type") | {"kind": kind}
    )


def _call(call: Json) -> Json:
    invocation = {
        "state": "call",
        "toolCallId": call.get("id"),
        "toolName": call["name"],
        "args": call["args"],
    }
    part = {"type": "tool-invocation", "toolInvocation": invocation}
    notes = {"no_id": True} if call.get("id") is None else {}
    return attach_metadata(LIBRARY, part, notes | _rest(call, "id", "name", "args"), under="call")


def build_blocks(parts: Sequence[Json], *, is_list: bool) -> tuple[str | list[Any], list[Json]]:
    """Content and tool calls of a message made of these parts; text alone is a text."""
    called = [_called(part) for part in parts if is_tool_call(part)]
    by_id = {call["id"]: call for call in called}
    said = [block for part in parts if (block := _block(part, by_id)) is not None]
    texts = [block["text"] for block in said if _is_plain(block)]
    if len(texts) == len(said) and not is_list:
        return "\n\n".join(texts), called
    return said, called


def _is_plain(block: Any) -> bool:
    return isinstance(block, Mapping) and block.keys() == {"type", "text"}


def _called(part: Json) -> Json:
    call = part["toolInvocation"]
    notes = get_part_metadata(LIBRARY, part).get("call", {})
    args = call.get("args")
    return {
        "name": call.get("toolName") or "",
        "args": args if isinstance(args, dict) else {} if args is None else {"value": args},
        "id": None if notes.pop("no_id", False) else str(call.get("toolCallId")),
        "type": "tool_call",
        **notes,
    }


def _block(part: Json, called: Mapping[str, Json]) -> Any:
    notes = get_part_metadata(LIBRARY, part)
    match part.get("type"):
        case "text":
            if notes.pop("bare", False):
                return part["text"]
            return {"type": "text", "text": part["text"], **notes}
        case "reasoning":
            kind = notes.pop("kind", "reasoning")
            return {"type": kind, _THOUGHTS[kind]: get_reasoning_text(part), **notes}
        case "file" | "image":
            return _media_block(part, notes)
        case kind if kind == f"data-{LIBRARY}":
            block = part["data"]
            if block.get("type") == "tool_use" and block.get("id") in called:
                return {**block, "input": block.get("input", called[block["id"]]["args"])}
            return block
    return None


def _media_block(part: Json, notes: Json) -> Json:
    data = part.get("data") or part.get("image") or ""
    media_type = part.get("mimeType") or ""
    kind = notes.pop("kind", None)
    if kind == "image_url":
        address = {"url": data, **notes.pop("inner", {})}
        return {"type": kind, "image_url": data if notes.pop("bare", False) else address, **notes}
    if kind is None:
        kind = media_type.partition("/")[0]
        kind = kind if kind in _MEDIA else "image" if part["type"] == "image" else "file"
    made: Json = {"type": kind}
    if media_type and not media_type.endswith("/*"):
        made["mime_type"] = media_type
    if data.startswith("data:") and ";base64," in data:
        made["base64"] = data.partition(";base64,")[2]
    else:
        made["url"] = data
    return made | notes
