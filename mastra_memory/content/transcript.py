"""Messages written out as lines for a model to read: who said what, which tool did what."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any

import orjson

from mastra_memory.content import normalization, prompt_escaping, tokens
from mastra_memory.types import StoredMessage

TITLE_CUT = 200
"""Characters of a tool's arguments or result that a title is made from."""
LINK_CUT = 100
ARGS_TOKENS, RESULT_TOKENS = 2_000, 5_000
LONG_TEXT, DEPTH, ENTRIES = 160, 5, 20
EMPTY_RESULT = "[empty result]"
_OUTCOMES = {
    normalization.DONE: "Tool Result",
    normalization.FAILED: "Tool Error",
    normalization.DENIED: "Tool Denied",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that was said or done."""

    moment: datetime
    label: str
    """`User`, `Assistant`, `Tool Call <name>`, `Reasoning`, `File`, …"""
    piece: normalization.Piece
    is_call: bool = False
    """Of a tool call with its outcome, whether this line tells the call."""


def lines_of(messages: Iterable[StoredMessage]) -> Iterator[Line]:
    """Everything in order; each call once and each outcome once, the last one told."""
    told: set[str] = set()
    read = [(message, piece, at) for message in messages for piece, at in _read(message)]
    last = {
        piece.id: place
        for place, (_, piece, _) in enumerate(read)
        if isinstance(piece, normalization.ToolCall) and piece.id and piece.state in _OUTCOMES
    }
    for place, (message, piece, at) in enumerate(read):
        if not isinstance(piece, normalization.ToolCall):
            yield Line(at, _label(message, piece), piece)
            continue
        if not piece.id or piece.id not in told:
            told.add(piece.id)
            yield Line(at, f"Tool Call {piece.name}", piece, is_call=True)
        if piece.state in _OUTCOMES and last.get(piece.id, place) == place:
            yield Line(at, f"{_OUTCOMES[piece.state]} {piece.name}", piece)


def _read(message: StoredMessage) -> Iterator[tuple[normalization.Piece, datetime]]:
    """The pieces of a message, each with its own time where it has one."""
    content = message.content
    parts = content.get("parts") or [{"type": "text", "text": content.get("content") or ""}]
    for index, part in enumerate(parts):
        piece = normalization.piece_at(parts, index)
        if piece is None or isinstance(piece, normalization.Unknown):
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


def _label(message: StoredMessage, piece: normalization.Piece) -> str:
    match piece:
        case normalization.Reasoning():
            return "Reasoning"
        case normalization.File():
            part = message.content["parts"][piece.index]
            is_image = part["type"] == "image" or piece.mime_type.startswith("image/")
            return "Image" if is_image else "File"
        case normalization.Source():
            return "Source"
    return message.role.capitalize()


# For a title


def for_title(messages: Iterable[StoredMessage]) -> str:
    """The transcript from which a title is made: long results and links are cut."""
    lines = [
        f"{line.label}: {prompt_escaping.indented(text)}"
        for line in lines_of(messages)
        if (text := _short(line).strip())
    ]
    return "\n".join(lines)


def _short(line: Line) -> str:
    piece = line.piece
    match piece:
        case normalization.Text() | normalization.Reasoning():
            return piece.text
        case normalization.ToolCall():
            return _json(_told(piece, line.is_call))[:TITLE_CUT]
        case normalization.File():
            return f"[{piece.name or piece.mime_type}] {piece.address[:LINK_CUT]}"
        case normalization.Source():
            return f"[{piece.title[:LINK_CUT]}] {piece.address[:LINK_CUT]}"
    return ""


def _told(call: normalization.ToolCall, is_call: bool) -> Any:
    if is_call:
        return call.args
    return call.result if call.state == normalization.DONE else call.error


def _json(value: Any, *, indent: bool = False) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 if indent else None, default=str).decode()


# For an observer


def for_observer(messages: Iterable[StoredMessage], *, timezone: tzinfo = UTC) -> str:
    """The transcript with days and times, from which notes and summaries are made.

    A day stands before the first line of each day, a time only where it differs from the line
    before. Arguments and results are there once each, long ones shortened.
    """
    written: list[str] = []
    day = clock = ""
    numbers = _Numbers()
    for line in lines_of(messages):
        text = _full(line, numbers)
        if not text.strip():
            continue
        moment = line.moment.astimezone(timezone)
        if (today := f"{moment:%b} {moment.day} {moment.year}:") != day:
            written.append(today)
            day, clock = today, ""
        now = f" ({moment.hour % 12 or 12}:{moment:%M %p})"
        written.append(
            f"{line.label}{'' if now == clock else now}: {prompt_escaping.defused(text)}"
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


def _full(line: Line, numbers: _Numbers) -> str:
    piece = line.piece
    match piece:
        case normalization.Text() | normalization.Reasoning():
            return piece.text
        case normalization.ToolCall() if line.is_call:
            return tokens.cut(outline(piece.args), ARGS_TOKENS) or "(no arguments)"
        case normalization.ToolCall():
            result = _json(_told(piece, False), indent=True)
            return tokens.cut(result, RESULT_TOKENS) if result.strip() else EMPTY_RESULT
        case normalization.File():
            name = piece.name or piece.address[:LINK_CUT] or piece.mime_type
            return f"[{line.label} #{numbers.next(line.label)}: {name}]"
        case normalization.Source():
            return f"[{piece.title}] {piece.address[:LINK_CUT]}"
    return ""


def outline(value: Any, depth: int = 0) -> str:
    """A JSON value on one line, the outermost braces dropped, long and deep things shortened."""
    if isinstance(value, Mapping):
        if depth >= DEPTH:
            return "{…}"
        inner = _entries([f"{key}: {outline(v, depth + 1)}" for key, v in value.items()])
        return inner if depth == 0 else f"{{{inner}}}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        if depth >= DEPTH:
            return "[…]"
        return f"[{_entries([outline(one, depth + 1) for one in value])}]"
    if isinstance(value, str) and depth == 0:
        return value
    if isinstance(value, str) and len(value) > LONG_TEXT:
        value = value[:LONG_TEXT] + "…"
    return "" if value is None and depth == 0 else _json_scalar(value)


def _entries(told: Sequence[str]) -> str:
    more = [f"… {len(told) - ENTRIES} more"] if len(told) > ENTRIES else []
    return ", ".join([*told[:ENTRIES], *more])


def _json_scalar(value: Any) -> str:
    return orjson.dumps(value, default=str).decode()
