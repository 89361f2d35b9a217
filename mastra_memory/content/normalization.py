"""The JSON shape of message content; the only module that knows it."""

import re
from collections.abc import Mapping
from typing import Any, TypeGuard

from mastra_memory.db import json_text
from mastra_memory.exceptions import InvalidInput, Issue

WORKING_MEMORY_TOOLS = frozenset({"updateWorkingMemory", "setWorkingMemory"})
_WORKING_MEMORY = re.compile(r"<working_memory>.*?</working_memory>", re.DOTALL)

Content = dict[str, Any]


def normalize_content(message: Mapping[str, Any]) -> Content:
    """Format-2 content of a message in any of the forms that clients send.

    Text, a list of parts, a format-2 object, an object with `parts`, or `parts` beside the role;
    `metadata` beside the content is taken where the content has no place of its own for it.
    Raises `InvalidInput` for every other shape.
    """
    content = message.get("content")
    if _is_object(content):
        return _from_object(content)
    if isinstance(content, str):
        made = content_from_text(content)
    elif isinstance(content, list):
        made = {"format": 2, "parts": _from_core_parts(content)}
    elif content is None and isinstance(message.get("parts"), list):
        made = {"format": 2, "parts": _checked_parts(message["parts"], "parts")}
    else:
        raise _fault("content", "expected text, a list of parts, or an object with `parts`")
    if _is_object(message.get("metadata")):
        made["metadata"] = dict(message["metadata"])
    return made


def _is_object(value: Any) -> TypeGuard[Mapping[str, Any]]:
    """A dict is told at once; asking for a Mapping is slow, and every message is asked often."""
    return type(value) is dict or (value is not None and isinstance(value, Mapping))


def content_from_text(text: str) -> Content:
    """The content that says just this."""
    return {"format": 2, "parts": [{"type": "text", "text": text}], "content": text}


def content_from_parts(parts: list[dict[str, Any]], metadata: Mapping[str, Any]) -> Content:
    """The content with these parts, and this metadata unless it is empty."""
    content: Content = {"format": 2, "parts": parts}
    return {**content, "metadata": dict(metadata)} if metadata else content


def content_from_storage(text: str) -> tuple[Content, bool]:
    """Content as Mastra's own tables hold it: format 2, an older list of parts, or bare text.

    A value of no known shape is kept as `metadata.importRaw` of an empty message; then the second
    value is False.
    """
    try:
        value = json_text.loads(text)
    except InvalidInput:
        return content_from_text(text), True
    if isinstance(value, str):
        return content_from_text(value), True
    if isinstance(value, int | float | None):  # somebody said just `42` or `true`
        return content_from_text(text), True
    try:
        return normalize_content({"content": value}), True
    except InvalidInput:
        return {"format": 2, "parts": [], "metadata": {"importRaw": value}}, False


def _from_object(content: Mapping[str, Any]) -> Content:
    if content.get("format", 2) != 2:
        raise _fault("content.format", "expected 2")
    if not isinstance(content.get("parts"), list):
        raise _fault("content.parts", "expected a list")
    if not (content.get("metadata") is None or _is_object(content["metadata"])):
        raise _fault("content.metadata", "expected an object")
    _checked_parts(content["parts"], "content.parts")
    return {"format": 2, **content}


def _checked_parts(parts: list[Any], path: str) -> list[Any]:
    for index, part in enumerate(parts):
        if not _is_object(part) or not isinstance(part.get("type"), str):
            raise _fault(f"{path}.{index}", "expected an object with a `type`")
    return parts


def _fault(path: str, reason: str) -> InvalidInput:
    return InvalidInput(f"Invalid message: {path} {reason}", [Issue(path, reason)])


def _from_core_parts(parts: list[Any]) -> list[dict[str, Any]]:
    """The older list form, tool results joined to their calls."""
    made: list[dict[str, Any]] = []
    calls: dict[str, dict[str, Any]] = {}
    for part in _checked_parts(parts, "content"):
        call_id = str(part.get("toolCallId"))
        if part["type"] == "tool-result" and call_id in calls:
            result, failed = _outcome(part)
            set_result(calls[call_id], result, failed=failed)
            continue
        converted = _from_core_part(part)
        made.append(converted)
        if part["type"] == "tool-call":
            calls[converted["toolInvocation"]["toolCallId"]] = converted["toolInvocation"]
    return made


def _from_core_part(part: Mapping[str, Any]) -> dict[str, Any]:
    made = _converted(part)
    about = part.get("providerOptions", part.get("providerMetadata"))
    if about is not None:
        made.pop("providerOptions", None)
        made["providerMetadata"] = about
    return made


def _converted(part: Mapping[str, Any]) -> dict[str, Any]:
    match part["type"]:
        case "image":
            return _file_part(part, part.get("image"))
        case "file":
            return _file_part(part, part.get("data"))
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
            made = build_call_part(part.get("toolCallId"), part.get("toolName"), {})
            result, failed = _outcome(part)
            set_result(made["toolInvocation"], result, failed=failed)
            return made
    return dict(part)


def _file_part(part: Mapping[str, Any], data: Any) -> dict[str, Any]:
    """A file; its kind is `mimeType`, by whichever name it came."""
    kept = {k: v for k, v in part.items() if k not in ("type", "image", "data", "mediaType")}
    if "mediaType" in part:
        kept.setdefault("mimeType", part["mediaType"])
    return {"type": "file", **kept, "data": data}


def _outcome(part: Mapping[str, Any]) -> tuple[Any, bool]:
    """What a call gave, and whether it failed: `result`, or the newer `output` with its kind."""
    output = part.get("output")
    if "result" in part or not _is_object(output):
        return part.get("result", output), part.get("isError") is True
    return output.get("value", dict(output)), str(output.get("type")).startswith("error")


def build_call_part(call_id: Any, name: Any, args: Any) -> dict[str, Any]:
    """A tool-invocation part in state `call`."""
    invocation = {"state": "call", "toolCallId": str(call_id), "toolName": str(name), "args": args}
    return {"type": "tool-invocation", "toolInvocation": invocation}


def build_result_part(call_id: Any, name: Any, result: Any) -> dict[str, Any]:
    """A tool-invocation part for a result whose call is not known."""
    part = build_call_part(call_id, name, {})
    set_result(part["toolInvocation"], result)
    return part


def set_result(invocation: dict[str, Any], result: Any, *, failed: bool = False) -> None:
    """Write the result of a call into its invocation."""
    invocation.update(state="result", result=result)
    if failed:
        invocation["isError"] = True


def may_contain_working_memory(content_json: str) -> bool:
    """A quick look at the JSON text: False when there is surely nothing to take out."""
    return "<working_memory>" in content_json or "WorkingMemory" in content_json


def strip_working_memory(content: Content) -> Content | None:
    """The content without working-memory tags and update calls; None when nothing else was there.

    Text around a tag is trimmed, all other text is kept as it is.
    """
    parts = [_without_tags(part) for part in content["parts"] if not _updates_memory(part)]
    stripped = {**content, "parts": parts}
    if isinstance(content.get("content"), str):
        stripped["content"] = _strip_tags(content["content"])
    if stripped == content:
        return content
    return stripped if parts or stripped.get("content") else None


def _updates_memory(part: Mapping[str, Any]) -> bool:
    invocation = part.get("toolInvocation")
    name = invocation.get("toolName") if isinstance(invocation, Mapping) else None
    return isinstance(name, str) and name in WORKING_MEMORY_TOOLS


def _without_tags(part: Any) -> Any:
    if part["type"] != "text" or not isinstance(part.get("text"), str):
        return part
    text = _strip_tags(part["text"])
    return part if text == part["text"] else {**part, "text": text}


def _strip_tags(text: str) -> str:
    if "<working_memory>" not in text:
        return text
    return _WORKING_MEMORY.sub("", text).strip()
