"""Messages written out as lines for a model to read: who said what, which tool did what."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any

import orjson

from mastra_memory.content import part_types, prompt_escaping, tokens
from mastra_memory.types import StoredMessage

MAX_TITLE_VALUE_CHARS = 200
"""Characters of a tool's arguments or result that a title is made from."""
MAX_LINK_CHARS = 100
MAX_ARGS_TOKENS, MAX_RESULT_TOKENS = 2_000, 5_000
MAX_OUTLINE_TEXT_CHARS, MAX_OUTLINE_DEPTH, MAX_OUTLINE_ENTRIES = 160, 5, 20
EMPTY_RESULT = "[empty result]"
_OUTCOMES = {
    part_types.STATE_RESULT: "Tool Result",
    part_types.STATE_FAILED: "Tool Error",
    part_types.STATE_DENIED: "Tool Denied",
}


@dataclass(frozen=True, slots=True)
class TranscriptLine:
    """One thing that was said or done."""

    moment: datetime
    label: str
    """`User`, `Assistant`, `Tool Call <name>`, `Reasoning`, `File`, …"""
    piece: part_types.Part
    is_call: bool = False
    """Of a tool call with its outcome, whether this line tells the call."""


def iter_lines(messages: Iterable[StoredMessage]) -> Iterator[TranscriptLine]:
    """Everything in order; each call once and each outcome once, the last one told."""
    told: set[str] = set()
    read = [(message, piece, at) for message in messages for piece, at in _read(message)]
    last = {
        piece.id: place
        for place, (_, piece, _) in enumerate(read)
        if isinstance(piece, part_types.ToolCall) and piece.id and piece.state in _OUTCOMES
    }
    for place, (message, piece, at) in enumerate(read):
        if not isinstance(piece, part_types.ToolCall):
            yield TranscriptLine(at, _label(message, piece), piece)
            continue
        if not piece.id or piece.id not in told:
            told.add(piece.id)
            yield TranscriptLine(at, f"Tool Call {piece.name}", piece, is_call=True)
        if piece.state in _OUTCOMES and last.get(piece.id, place) == place:
            yield TranscriptLine(at, f"{_OUTCOMES[piece.state]} {piece.name}", piece)


def _read(message: StoredMessage) -> Iterator[tuple[part_types.Part, datetime]]:
    """The pieces of a message, each with its own time where it has one."""
    content = message.content
    parts = content.get("parts") or [{"type": "text", "text": content.get("content") or ""}]
    for index, part in enumerate(parts):
        piece = part_types.read_part(parts, index)
        if piece is None or isinstance(piece, part_types.UnknownPart):
            continue
        yield piece, _moment(part) or message.created_at


def _moment(part: Any) -> datetime | None:
    given = part.get("createdAt") if isinstance(part, Mapping) else None
    if not isinstance(given, int | float) or isinstance(given, bool):
        return None
    try:
        return datetime.fromtimestamp(given / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return None


def _label(message: StoredMessage, piece: part_types.Part) -> str:
    match piece:
        case part_types.ReasoningPart():
            return "Reasoning"
        case part_types.FilePart():
            part = message.content["parts"][piece.index]
            is_image = part["type"] == "image" or piece.mime_type.startswith("image/")
            return "Image" if is_image else "File"
        case part_types.SourcePart():
            return "Source"
    return message.role.capitalize()


# For a title


def format_for_title(messages: Iterable[StoredMessage]) -> str:
    """The transcript from which a title is made: long results and links are cut."""
    lines = [
        f"{line.label}: {prompt_escaping.indent_lines(text)}"
        for line in iter_lines(messages)
        if (text := _short(line).strip())
    ]
    return "\n".join(lines)


def _short(line: TranscriptLine) -> str:
    piece = line.piece
    match piece:
        case part_types.TextPart() | part_types.ReasoningPart():
            return piece.text
        case part_types.ToolCall():
            return _json(_told(piece, line.is_call))[:MAX_TITLE_VALUE_CHARS]
        case part_types.FilePart():
            return f"[{piece.name or piece.mime_type}] {piece.address[:MAX_LINK_CHARS]}"
        case part_types.SourcePart():
            return f"[{piece.title[:MAX_LINK_CHARS]}] {piece.address[:MAX_LINK_CHARS]}"
    return ""


def _told(call: part_types.ToolCall, is_call: bool) -> Any:
    if is_call:
        return call.args
    return call.result if call.state == part_types.STATE_RESULT else call.error


def _json(value: Any, *, indent: bool = False) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 if indent else None, default=str).decode()


# For an observer


def format_for_observer(messages: Iterable[StoredMessage], *, timezone: tzinfo = UTC) -> str:
    """The transcript with days and times, from which notes and summaries are made.

    A day stands before the first line of each day, a time only where it differs from the line
    before. Arguments and results are there once each, long ones shortened.
    """
    written: list[str] = []
    day = clock = ""
    numbers = _Numbers()
    for line in iter_lines(messages):
        text = _full(line, numbers)
        if not text.strip():
            continue
        moment = line.moment.astimezone(timezone)
        if (today := f"{moment:%b} {moment.day} {moment.year}:") != day:
            written.append(today)
            day, clock = today, ""
        now = f" ({moment.hour % 12 or 12}:{moment:%M %p})"
        written.append(
            f"{line.label}{'' if now == clock else now}: {prompt_escaping.escape_tags(text)}"
        )
        clock = now
    return "\n".join(written)


class _Numbers:
    """Counts the attachments of one transcript."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def next(self, kind: str) -> int:
        self.counts[kind] = self.counts.get(kind, 0) + 1
        return self.counts[kind]


def _full(line: TranscriptLine, numbers: _Numbers) -> str:
    piece = line.piece
    match piece:
        case part_types.TextPart() | part_types.ReasoningPart():
            return piece.text
        case part_types.ToolCall() if line.is_call:
            return (
                tokens.truncate_to_tokens(format_outline(piece.args), MAX_ARGS_TOKENS)
                or "(no arguments)"
            )
        case part_types.ToolCall():
            result = _json(_told(piece, False), indent=True)
            return (
                tokens.truncate_to_tokens(result, MAX_RESULT_TOKENS)
                if result.strip()
                else EMPTY_RESULT
            )
        case part_types.FilePart():
            name = piece.name or piece.address[:MAX_LINK_CHARS] or piece.mime_type
            return f"[{line.label} #{numbers.next(line.label)}: {name}]"
        case part_types.SourcePart():
            return f"[{piece.title}] {piece.address[:MAX_LINK_CHARS]}"
    return ""


def format_outline(value: Any, depth: int = 0) -> str:
    """A JSON value on one line, the outermost braces dropped, long and deep things shortened."""
    if isinstance(value, Mapping):
        if depth >= MAX_OUTLINE_DEPTH:
            return "{…}"
        inner = _entries([f"{key}: {format_outline(v, depth + 1)}" for key, v in value.items()])
        return inner if depth == 0 else f"{{{inner}}}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        if depth >= MAX_OUTLINE_DEPTH:
            return "[…]"
        return f"[{_entries([format_outline(one, depth + 1) for one in value])}]"
    if isinstance(value, str) and depth == 0:
        return value
    if isinstance(value, str) and len(value) > MAX_OUTLINE_TEXT_CHARS:
        value = value[:MAX_OUTLINE_TEXT_CHARS] + "…"
    return "" if value is None and depth == 0 else _json_scalar(value)


def _entries(told: Sequence[str]) -> str:
    more = [f"… {len(told) - MAX_OUTLINE_ENTRIES} more"] if len(told) > MAX_OUTLINE_ENTRIES else []
    return ", ".join([*told[:MAX_OUTLINE_ENTRIES], *more])


def _json_scalar(value: Any) -> str:
    return orjson.dumps(value, default=str).decode()
