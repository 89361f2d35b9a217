"""Read message content as typed parts, to show or export it.

No function here raises an exception for an invalid part, so that the other parts can still be
shown.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from mastra_memory.content import data_uris, message_text

STATE_FAILED, STATE_DENIED, STATE_RESULT = "output-error", "output-denied", "result"
_URL = re.compile(r"(?:[a-z][a-z0-9+.-]*:|/)", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TextPart:
    """A text."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningPart:
    """The reasoning of a model."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call with its outcome."""

    name: str
    state: str
    """`call`, `result`, `output-error`, `output-denied`, ..."""
    args: Any
    result: Any
    error: str
    """Why the call failed or was denied; empty otherwise."""
    seconds: float | None
    """Duration of the call, if the parts have times."""
    id: str = ""
    """The id that a call shares with a result in another part."""

    @property
    def failed(self) -> bool:
        """Return whether the call failed."""
        return self.state == STATE_FAILED


@dataclass(frozen=True, slots=True)
class FilePart:
    """A file or image, without its bytes; `read_file` returns them."""

    index: int
    """The index of its part in the content."""
    name: str
    mime_type: str
    address: str
    """The URL of a linked file; empty if the content contains the bytes."""
    size: int
    """The approximate size in bytes; 0 for a linked file."""


@dataclass(frozen=True, slots=True)
class SourcePart:
    """A source that a model cites."""

    title: str
    address: str


@dataclass(frozen=True, slots=True)
class UnknownPart:
    """A part of an unknown type, or one that is not valid."""

    kind: str
    value: Any


Part = TextPart | ReasoningPart | ToolCall | FilePart | SourcePart | UnknownPart


def read_parts(content: Any, limit: int | None = None) -> list[Part]:
    """Return the parts in order, at most `limit` of them.

    A part that cannot be read is returned as an `UnknownPart`.
    """
    return list(islice(iter_parts(content), limit))


def iter_parts(content: Any) -> Iterator[Part]:
    """Yield the parts in order, reading each one when it is needed."""
    if not isinstance(content, Mapping) or not isinstance(content.get("parts"), list):
        yield UnknownPart("content", content)
        return
    parts = content["parts"]
    has_text = False
    for index in range(len(parts)):
        if typed_part := read_part(parts, index):
            has_text = has_text or isinstance(typed_part, TextPart)
            yield typed_part
    whole = content.get("content")
    if not has_text and isinstance(whole, str) and whole.strip():
        yield TextPart(whole)


def read_part(parts: Sequence[Any], index: int) -> Part | None:
    """Return the part at `index`, or None if it has nothing to show."""
    part = parts[index]
    if not isinstance(part, Mapping):
        return UnknownPart("part", part)
    match part.get("type"):
        case "text" if isinstance(part.get("text"), str):
            return TextPart(part["text"]) if part["text"].strip() else None
        case "reasoning":
            text = message_text.get_reasoning_text(part)
            return ReasoningPart(text) if text.strip() else None
        case "tool-invocation" if isinstance(part.get("toolInvocation"), Mapping):
            return _read_tool_call(parts, index)
        case "file" | "image" as kind:
            return _read_file_part(index, kind, part)
        case "source" | "source-url" | "source-document":
            return _read_source(part)
        case "step-start":
            return None
    return UnknownPart(str(part.get("type") or "part"), dict(part))


def _read_tool_call(parts: Sequence[Any], index: int) -> ToolCall:
    call = parts[index]["toolInvocation"]
    state = str(call.get("state") or "call")
    approval = call.get("approval") if isinstance(call.get("approval"), Mapping) else {}
    error = ""
    if state == STATE_DENIED:
        error = str(approval.get("reason") or "")
    elif state == STATE_FAILED or call.get("isError") is True:
        state, error = STATE_FAILED, str(call.get("errorText") or call.get("result") or "")
    return ToolCall(
        name=str(call.get("toolName") or "?"),
        state=state,
        args=call.get("args", call.get("rawInput")),
        result=call.get("result"),
        error=error,
        seconds=_measure_seconds(parts, index),
        id=str(call.get("toolCallId") or ""),
    )


def _measure_seconds(parts: Sequence[Any], index: int) -> float | None:
    """Return the seconds from the time of this part to that of the next one."""
    times = [
        moment
        for part in parts[index : index + 2]
        if isinstance(part, Mapping)
        and isinstance(moment := part.get("createdAt"), int | float)
        and not isinstance(moment, bool)
    ]
    return max(0.0, (times[1] - times[0]) / 1000) if len(times) == 2 else None


def _read_file_part(index: int, kind: str, part: Mapping[str, Any]) -> FilePart:
    data = part.get("data", part.get("url")) if kind == "file" else part.get("image")
    data = data if isinstance(data, str) else ""
    mime_type = part.get("mimeType") or part.get("mediaType")
    mime_type = mime_type if isinstance(mime_type, str) else ""
    if uri := data_uris.parse_data_uri(data):
        mime_type, size, address = mime_type or uri.mime_type, len(uri.data) * 3 // 4, ""
    elif _URL.match(data) and len(data) < 5000:
        size, address = 0, data
    else:
        size, address = len(data) * 3 // 4, ""
    name = part.get("filename") or part.get("name")
    return FilePart(index, name if isinstance(name, str) else "", mime_type, address, size)


def format_file_names(parts: Sequence[Part]) -> str:
    """Return the names of files as text, for messages that have nothing else to show."""
    names = (part.name for part in parts if isinstance(part, FilePart))
    return " ".join(f"[{name}]" for name in names if name)


def read_file(content: Any, index: int) -> tuple[bytes, str, str] | None:
    """Return bytes, MIME type and name of the file at `index`.

    None means that there is no file, that it is a link, or that its data is not valid.
    """
    parts = content.get("parts") if isinstance(content, Mapping) else None
    if not isinstance(parts, list) or not 0 <= index < len(parts):
        return None
    typed_part = read_part(parts, index)
    if not isinstance(typed_part, FilePart) or typed_part.address or not typed_part.size:
        return None
    part = parts[index]
    data = part[get_file_key(part)]
    uri = data_uris.parse_data_uri(data)
    decoded = uri.decode() if uri else data_uris.decode_base64(data)
    return None if decoded is None else (decoded, typed_part.mime_type, typed_part.name)


def get_file_key(part: Mapping[str, Any]) -> str:
    """Return the key under which a `file` or `image` part keeps its data or address."""
    if part["type"] == "image":
        return "image"
    return "data" if "data" in part else "url"


def _read_source(part: Mapping[str, Any]) -> SourcePart:
    inner = part["source"] if isinstance(part.get("source"), Mapping) else part
    title, address = inner.get("title") or inner.get("filename"), inner.get("url")
    address = address if isinstance(address, str) else ""
    return SourcePart(title if isinstance(title, str) else address, address)
