"""Convert between LangChain's content blocks with tool calls and the parts of a message."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from mastra_memory.adapters.assistant_steps import is_tool_call
from mastra_memory.adapters.library_metadata import (
    Json,
    attach_metadata,
    get_part_metadata,
    make_opaque_part,
)
from mastra_memory.content import data_uris
from mastra_memory.content.message_text import get_reasoning_text

LIBRARY = "langchain"
_REASONING_KEYS = {"reasoning": "reasoning", "thinking": "thinking"}
"""The types of reasoning blocks, and the keys of their texts."""
_MEDIA_TYPES = ("image", "audio", "video", "file")


def dump_json(value: Any) -> str:
    """Return a value as JSON text."""
    return orjson.dumps(value, default=str).decode()


def build_parts(content: str | Sequence[Any], tool_calls: Sequence[Json]) -> list[Json]:
    """Return the parts of a message, its tool calls last."""
    calls_by_id = {call.get("id"): call for call in tool_calls}
    if isinstance(content, str):
        parts = [{"type": "text", "text": content}] if content else []
    else:
        parts = [_convert_block(block, calls_by_id) for block in content]
    return [*parts, *(_convert_call(call) for call in tool_calls)]


def _convert_block(block: Any, calls_by_id: Mapping[Any, Json]) -> Json:
    if isinstance(block, str):
        return attach_metadata(LIBRARY, {"type": "text", "text": block}, {"bare": True})
    kind = block.get("type")
    if kind == "text" and isinstance(block.get("text"), str):
        part = {"type": "text", "text": block["text"]}
        return attach_metadata(LIBRARY, part, _omit(block, "text"))
    if kind in _REASONING_KEYS and isinstance(block.get(_REASONING_KEYS[kind]), str):
        key = _REASONING_KEYS[kind]
        reasoning: Json = {"type": "reasoning", "reasoning": block[key]}
        reasoning["details"] = [{"type": "text", "text": block[key]}]
        return attach_metadata(LIBRARY, reasoning, _omit(block, key) | {"kind": kind})
    if kind == "image_url":
        return _convert_image_url(block)
    if kind in _MEDIA_TYPES and ("url" in block or "base64" in block):
        return _convert_media(kind, block)
    call = calls_by_id.get(block.get("id"), {})
    if kind == "tool_use" and block.get("input") == call.get("args"):
        # The arguments are stored in the tool call, from which `build_blocks` restores them.
        return make_opaque_part(LIBRARY, _omit(block, "input") | {"type": kind})
    return make_opaque_part(LIBRARY, block)


def _omit(block: Mapping[str, Any], *keys: str) -> Json:
    """Return the block without its type and these keys."""
    return {key: value for key, value in block.items() if key not in ("type", *keys)}


def _convert_image_url(block: Json) -> Json:
    image_url = block["image_url"]
    is_object = isinstance(image_url, Mapping)
    inner = image_url if is_object else {"url": image_url}
    metadata = _omit(block, "image_url") | {"kind": "image_url", "inner": _omit(inner, "url")}
    metadata["bare"] = None if is_object else True
    part = {"type": "file", "mimeType": "image/*", "data": inner.get("url") or ""}
    return attach_metadata(LIBRARY, part, metadata)


def _convert_media(kind: str, block: Json) -> Json:
    media_type = block.get("mime_type") or ""
    part: Json = {"type": "file", "mimeType": media_type or f"{kind}/*"}
    if "url" in block:
        part["data"] = block["url"]
    else:
        part["data"] = data_uris.build_data_uri(block["base64"], media_type)
    metadata = _omit(block, "url", "base64", "mime_type") | {"kind": kind}
    return attach_metadata(LIBRARY, part, metadata)


def _convert_call(call: Json) -> Json:
    invocation = {
        "state": "call",
        "toolCallId": call.get("id"),
        "toolName": call["name"],
        "args": call["args"],
    }
    part = {"type": "tool-invocation", "toolInvocation": invocation}
    metadata = {"no_id": True} if call.get("id") is None else {}
    metadata |= _omit(call, "id", "name", "args")
    return attach_metadata(LIBRARY, part, metadata, under="call")


def build_blocks(parts: Sequence[Json], *, is_list: bool) -> tuple[str | list[Any], list[Json]]:
    """Return the content and the tool calls of a message.

    Args:
        parts: The parts of the message.
        is_list: Return a list of blocks even if plain text is sufficient.
    """
    calls = [_build_call(part) for part in parts if is_tool_call(part)]
    calls_by_id = {call["id"]: call for call in calls}
    blocks = [block for part in parts if (block := _build_block(part, calls_by_id)) is not None]
    texts = [block["text"] for block in blocks if _is_plain_text(block)]
    if len(texts) == len(blocks) and not is_list:
        return "\n\n".join(texts), calls
    return blocks, calls


def _is_plain_text(block: Any) -> bool:
    return isinstance(block, Mapping) and block.keys() == {"type", "text"}


def _build_call(part: Json) -> Json:
    call = part["toolInvocation"]
    metadata = get_part_metadata(LIBRARY, part).get("call", {})
    args = call.get("args")
    return {
        "name": call.get("toolName") or "",
        "args": args if isinstance(args, dict) else {} if args is None else {"value": args},
        "id": None if metadata.pop("no_id", False) else str(call.get("toolCallId")),
        "type": "tool_call",
        **metadata,
    }


def _build_block(part: Json, calls_by_id: Mapping[str, Json]) -> Any:
    metadata = get_part_metadata(LIBRARY, part)
    match part.get("type"):
        case "text":
            if metadata.pop("bare", False):
                return part["text"]
            return {"type": "text", "text": part["text"], **metadata}
        case "reasoning":
            kind = metadata.pop("kind", "reasoning")
            return {"type": kind, _REASONING_KEYS[kind]: get_reasoning_text(part), **metadata}
        case "file" | "image":
            # An imported upload may have only a name, for which LangChain has no block.
            has_data = part.get("data") or part.get("image")
            return _build_media_block(part, metadata) if has_data else None
        case kind if kind == f"data-{LIBRARY}":
            block = part["data"]
            if block.get("type") == "tool_use" and block.get("id") in calls_by_id:
                args = calls_by_id[block["id"]]["args"]
                return {**block, "input": block.get("input", args)}
            return block
    return None


def _build_media_block(part: Json, metadata: Json) -> Json:
    data = part.get("data") or part.get("image") or ""
    media_type = part.get("mimeType") or ""
    kind = metadata.pop("kind", None)
    if kind == "image_url":
        image_url = {"url": data, **metadata.pop("inner", {})}
        is_bare = metadata.pop("bare", False)
        return {"type": kind, "image_url": data if is_bare else image_url, **metadata}
    if kind is None:
        kind = media_type.partition("/")[0]
        kind = kind if kind in _MEDIA_TYPES else "image" if part["type"] == "image" else "file"
    block: Json = {"type": kind}
    if media_type and not media_type.endswith("/*"):
        block["mime_type"] = media_type
    uri = data_uris.parse_data_uri(data)
    if uri is not None and uri.is_base64:
        block["base64"] = uri.data
    else:
        block["url"] = data
    return block | metadata
