"""Convert message content to Mastra's format 2, in which it is stored.

Format 2 is an object with a list of `parts`, and optionally a `content` text and `metadata`.
"""

import re
from collections.abc import Mapping
from typing import Any, TypeGuard

from mastra_memory.db import json_text
from mastra_memory.exceptions import InvalidInput, Issue

WORKING_MEMORY_TOOLS = frozenset({"updateWorkingMemory", "setWorkingMemory"})
_WORKING_MEMORY = re.compile(r"<working_memory>.*?</working_memory>", re.DOTALL)

Content = dict[str, Any]


def normalize_content(message: Mapping[str, Any]) -> Content:
    """Return the content of a message in format 2.

    Accepted forms of `content` are a text, a list of parts (AI SDK core messages), and an object
    with `parts`. A message without `content` may have `parts` itself (AI SDK UI messages). Unless
    `content` is an object, the `metadata` of the message becomes the metadata of the content.

    Raises:
        InvalidInput: The content has another form.
    """
    content = message.get("content")
    if _is_object(content):
        return _check_object(content)
    if isinstance(content, str):
        normalized = content_from_text(content)
    elif isinstance(content, list):
        normalized = {"format": 2, "parts": _convert_core_parts(content)}
    elif content is None and isinstance(message.get("parts"), list):
        normalized = {"format": 2, "parts": _check_parts(message["parts"], "parts")}
    else:
        raise _build_error("content", "expected text, a list of parts, or an object with `parts`")
    if _is_object(message.get("metadata")):
        normalized["metadata"] = dict(message["metadata"])
    return normalized


def _is_object(value: Any) -> TypeGuard[Mapping[str, Any]]:
    """Return whether the value is a mapping.

    `isinstance` with the abstract class is slow, and this runs several times for each message, so
    plain dicts are recognized first.
    """
    return type(value) is dict or (value is not None and isinstance(value, Mapping))


def content_from_text(text: str) -> Content:
    """Return content with a text as its only part."""
    return {"format": 2, "parts": [{"type": "text", "text": text}], "content": text}


def content_from_parts(parts: list[dict[str, Any]], metadata: Mapping[str, Any]) -> Content:
    """Return content with these parts, and with the metadata unless it is empty."""
    content: Content = {"format": 2, "parts": parts}
    return {**content, "metadata": dict(metadata)} if metadata else content


def content_from_storage(text: str) -> tuple[Content, bool]:
    """Return content from a column of Mastra's tables, and whether its format is known.

    Known formats are format 2, an older list of parts, and plain text. Any other value is kept as
    `metadata.importRaw` of an empty message.
    """
    try:
        value = json_text.loads(text)
    except InvalidInput:
        return content_from_text(text), True
    if isinstance(value, str):
        return content_from_text(value), True
    if isinstance(value, int | float | None):  # The text of the message is `42` or `true`.
        return content_from_text(text), True
    try:
        return normalize_content({"content": value}), True
    except InvalidInput:
        return {"format": 2, "parts": [], "metadata": {"importRaw": value}}, False


def _check_object(content: Mapping[str, Any]) -> Content:
    if content.get("format", 2) != 2:
        raise _build_error("content.format", "expected 2")
    if not isinstance(content.get("parts"), list):
        raise _build_error("content.parts", "expected a list")
    if not (content.get("metadata") is None or _is_object(content["metadata"])):
        raise _build_error("content.metadata", "expected an object")
    _check_parts(content["parts"], "content.parts")
    return {"format": 2, **content}


def _check_parts(parts: list[Any], path: str) -> list[Any]:
    for index, part in enumerate(parts):
        if not _is_object(part) or not isinstance(part.get("type"), str):
            raise _build_error(f"{path}.{index}", "expected an object with a `type`")
    return parts


def _build_error(path: str, reason: str) -> InvalidInput:
    return InvalidInput(f"Invalid message: {path} {reason}", [Issue(path, reason)])


def _convert_core_parts(parts: list[Any]) -> list[dict[str, Any]]:
    """Convert a list of AI SDK core parts, and store each result in the part of its call."""
    converted_parts: list[dict[str, Any]] = []
    calls: dict[str, dict[str, Any]] = {}
    for part in _check_parts(parts, "content"):
        call_id = str(part.get("toolCallId"))
        if part["type"] == "tool-result" and call_id in calls:
            result, failed = _read_outcome(part)
            set_result(calls[call_id], result, failed=failed)
            continue
        converted = _convert_with_metadata(part)
        converted_parts.append(converted)
        if part["type"] == "tool-call":
            calls[converted["toolInvocation"]["toolCallId"]] = converted["toolInvocation"]
    return converted_parts


def _convert_with_metadata(part: Mapping[str, Any]) -> dict[str, Any]:
    converted = _convert_core_part(part)
    metadata = part.get("providerOptions", part.get("providerMetadata"))
    if metadata is not None:
        converted.pop("providerOptions", None)
        converted["providerMetadata"] = metadata
    return converted


def _convert_core_part(part: Mapping[str, Any]) -> dict[str, Any]:
    match part["type"]:
        case "image":
            return _build_file_part(part, part.get("image"))
        case "file":
            return _build_file_part(part, part.get("data"))
        case "reasoning" if "text" in part:
            detail = {"type": "text"} | {k: part[k] for k in ("text", "signature") if k in part}
            return {"type": "reasoning", "reasoning": part["text"], "details": [detail]}
        case "redacted-reasoning":
            detail = {"type": "redacted", "data": part.get("data")}
            return {"type": "reasoning", "reasoning": "", "details": [detail]}
        case "tool-call":
            args = part.get("args", part.get("input", {}))
            return build_call_part(part.get("toolCallId"), part.get("toolName"), args)
        case "tool-result":
            result_part = build_call_part(part.get("toolCallId"), part.get("toolName"), {})
            result, failed = _read_outcome(part)
            set_result(result_part["toolInvocation"], result, failed=failed)
            return result_part
    return dict(part)


def _build_file_part(part: Mapping[str, Any], data: Any) -> dict[str, Any]:
    """Return a file part. `mediaType` is stored as `mimeType`."""
    others = {k: v for k, v in part.items() if k not in ("type", "image", "data", "mediaType")}
    if "mediaType" in part:
        others.setdefault("mimeType", part["mediaType"])
    return {"type": "file", **others, "data": data}


def _read_outcome(part: Mapping[str, Any]) -> tuple[Any, bool]:
    """Return the result of a call, and whether it failed.

    AI SDK 4 sends `result` and `isError`, AI SDK 5 an `output` object with a `type`.
    """
    output = part.get("output")
    if "result" in part or not _is_object(output):
        return part.get("result", output), part.get("isError") is True
    return output.get("value", dict(output)), str(output.get("type")).startswith("error")


def build_call_part(call_id: Any, name: Any, args: Any) -> dict[str, Any]:
    """Return a tool-invocation part in the state `call`."""
    invocation = {"state": "call", "toolCallId": str(call_id), "toolName": str(name), "args": args}
    return {"type": "tool-invocation", "toolInvocation": invocation}


def build_result_part(call_id: Any, name: Any, result: Any) -> dict[str, Any]:
    """Return a tool-invocation part for a result whose call is not known."""
    part = build_call_part(call_id, name, {})
    set_result(part["toolInvocation"], result)
    return part


def set_result(invocation: dict[str, Any], result: Any, *, failed: bool = False) -> None:
    """Store the result of a call in its invocation."""
    invocation.update(state="result", result=result)
    if failed:
        invocation["isError"] = True


def may_contain_working_memory(content_json: str) -> bool:
    """Return False if `strip_working_memory` would not change the content.

    This searches the JSON text without parsing it, so True may be wrong.
    """
    return "<working_memory>" in content_json or "WorkingMemory" in content_json


def strip_working_memory(content: Content) -> Content | None:
    """Return the content without working-memory tags and update calls, or None if nothing is left.

    Texts with a tag are trimmed after its removal. Other texts do not change.
    """
    parts = [_strip_part(part) for part in content["parts"] if not _is_memory_update(part)]
    stripped = {**content, "parts": parts}
    if isinstance(content.get("content"), str):
        stripped["content"] = _strip_tags(content["content"])
    if stripped == content:
        return content
    return stripped if parts or stripped.get("content") else None


def _is_memory_update(part: Mapping[str, Any]) -> bool:
    invocation = part.get("toolInvocation")
    name = invocation.get("toolName") if isinstance(invocation, Mapping) else None
    return isinstance(name, str) and name in WORKING_MEMORY_TOOLS


def _strip_part(part: Any) -> Any:
    if part["type"] != "text" or not isinstance(part.get("text"), str):
        return part
    text = _strip_tags(part["text"])
    return part if text == part["text"] else {**part, "text": text}


def _strip_tags(text: str) -> str:
    if "<working_memory>" not in text:
        return text
    return _WORKING_MEMORY.sub("", text).strip()
