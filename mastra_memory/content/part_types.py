"""Message content as plain values to show to people: the reading side of what `parts` stores."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from mastra_memory.content import data_uris, message_text

STATE_FAILED, STATE_DENIED, STATE_RESULT = "output-error", "output-denied", "result"
_ADDRESS = re.compile(r"(?:[a-z][a-z0-9+.-]*:|/)", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TextPart:
    """What was said."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningPart:
    """What a model thought aloud."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call with its outcome."""

    name: str
    state: str
    """`call`, `result`, `output-error`, `output-denied`, ..."""
    args: Any
    result: Any
    error: str
    """Why it failed or was denied, empty when it did neither."""
    seconds: float | None
    """How long it took, where the parts say so."""
    id: str = ""
    """What joins a call to its result when they come in two parts."""

    @property
    def failed(self) -> bool:
        return self.state == STATE_FAILED


@dataclass(frozen=True, slots=True)
class FilePart:
    """A file or image; its bytes stay where they are."""

    index: int
    """The place of its part in the content."""
    name: str
    mime_type: str
    address: str
    """Where it lies, when it is a link; empty when the content holds it."""
    size: int
    """Bytes, roughly, when the content holds it."""


@dataclass(frozen=True, slots=True)
class SourcePart:
    """Something a model cites."""

    title: str
    address: str


@dataclass(frozen=True, slots=True)
class UnknownPart:
    """A part of a kind nobody here knows, or a broken one."""

    kind: str
    value: Any


Part = TextPart | ReasoningPart | ToolCall | FilePart | SourcePart | UnknownPart


def read_parts(content: Any, limit: int | None = None) -> list[Part]:
    """The content in order, at most `limit` pieces of it.

    Never fails: what cannot be read is an `UnknownPart`.
    """
    return list(islice(iter_parts(content), limit))


def iter_parts(content: Any) -> Iterator[Part]:
    """Yield the content in order, each piece when it is asked for."""
    if not isinstance(content, Mapping) or not isinstance(content.get("parts"), list):
        yield UnknownPart("content", content)
        return
    parts = content["parts"]
    has_text = False
    for index in range(len(parts)):
        if piece := read_part(parts, index):
            has_text = has_text or isinstance(piece, TextPart)
            yield piece
    whole = content.get("content")
    if not has_text and isinstance(whole, str) and whole.strip():
        yield TextPart(whole)


def read_part(parts: Sequence[Any], index: int) -> Part | None:
    """The part at `index`; None for one that has nothing to show."""
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
            return _tool_call(parts, index)
        case "file" | "image" as kind:
            return _file(index, kind, part)
        case "source" | "source-url" | "source-document":
            return _source(part)
        case "step-start":
            return None
    return UnknownPart(str(part.get("type") or "part"), dict(part))


def _tool_call(parts: Sequence[Any], index: int) -> ToolCall:
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
        seconds=_seconds(parts, index),
        id=str(call.get("toolCallId") or ""),
    )


def _seconds(parts: Sequence[Any], index: int) -> float | None:
    """From this part's time to the next one's."""
    times = [
        moment
        for part in parts[index : index + 2]
        if isinstance(part, Mapping)
        and isinstance(moment := part.get("createdAt"), int | float)
        and not isinstance(moment, bool)
    ]
    return max(0.0, (times[1] - times[0]) / 1000) if len(times) == 2 else None


def _file(index: int, kind: str, part: Mapping[str, Any]) -> FilePart:
    data = part.get("data", part.get("url")) if kind == "file" else part.get("image")
    data = data if isinstance(data, str) else ""
    given = part.get("mimeType") or part.get("mediaType")
    mime_type = given if isinstance(given, str) else ""
    if uri := data_uris.parse_data_uri(data):
        mime_type, size, address = mime_type or uri.mime_type, len(uri.data) * 3 // 4, ""
    elif _ADDRESS.match(data) and len(data) < 5000:
        size, address = 0, data
    else:
        size, address = len(data) * 3 // 4, ""
    name = part.get("filename") or part.get("name")
    return FilePart(index, name if isinstance(name, str) else "", mime_type, address, size)


def read_file(content: Any, index: int) -> tuple[bytes, str, str] | None:
    """Bytes, type and name of the file that the content holds at `index`; None without one."""
    parts = content.get("parts") if isinstance(content, Mapping) else None
    if not isinstance(parts, list) or not 0 <= index < len(parts):
        return None
    piece = read_part(parts, index)
    if not isinstance(piece, FilePart) or piece.address or not piece.size:
        return None
    part = parts[index]
    data = part[get_file_key(part)]
    uri = data_uris.parse_data_uri(data)
    decoded = uri.decode() if uri else data_uris.decode_base64(data)
    return None if decoded is None else (decoded, piece.mime_type, piece.name)


def get_file_key(part: Mapping[str, Any]) -> str:
    """Return the key under which a `file` or `image` part keeps its data or address."""
    if part["type"] == "image":
        return "image"
    return "data" if "data" in part else "url"


def _source(part: Mapping[str, Any]) -> SourcePart:
    inner = part["source"] if isinstance(part.get("source"), Mapping) else part
    title, address = inner.get("title") or inner.get("filename"), inner.get("url")
    address = address if isinstance(address, str) else ""
    return SourcePart(title if isinstance(title, str) else address, address)
