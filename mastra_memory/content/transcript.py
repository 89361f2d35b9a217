"""Format messages as a transcript for a model to read."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any

import orjson

from mastra_memory.content import part_types, prompt_escaping, tokens
from mastra_memory.db import json_text
from mastra_memory.types import StoredMessage

MAX_TITLE_VALUE_CHARS = 200
"""Characters of the arguments or the result of a tool in the transcript for a title."""
MAX_LINK_CHARS = 100
MAX_ARGS_TOKENS, MAX_RESULT_TOKENS = 2_000, 5_000
MAX_OUTLINE_TEXT_CHARS, MAX_OUTLINE_DEPTH, MAX_OUTLINE_ENTRIES = 160, 5, 20
EMPTY_RESULT = "[empty result]"
SKILL_RESULT = "[text of a skill]"
SKILL_TOOLS = frozenset({"skill", "skill_search", "skill_read"})
"""Tools that return instructions for the agent. They are the same in every conversation."""
GAP_REMINDER = "temporal-gap"
"""The type of reminders about the time between two messages."""
_OUTCOMES = {
    part_types.STATE_RESULT: "Tool Result",
    part_types.STATE_FAILED: "Tool Error",
    part_types.STATE_DENIED: "Tool Denied",
}


@dataclass(frozen=True, slots=True)
class TranscriptLine:
    """One entry of a transcript."""

    time: datetime
    label: str
    """`User`, `Assistant`, `Tool Call <name>`, `Reasoning`, `File`, …; empty for a reminder about
    the time between two messages."""
    part: part_types.Part
    is_call: bool = False
    """A tool call has two lines: one for the call, where this is True, and one for its outcome."""


def iter_lines(messages: Iterable[StoredMessage]) -> Iterator[TranscriptLine]:
    """Yield the entries in order.

    A tool call has one entry for the call and one for its last outcome, even if it is in several
    messages.
    """
    seen_calls: set[str] = set()
    entries: list[tuple[StoredMessage, part_types.Part, datetime]] = [
        (message, part, time) for message in messages for part, time in _read_message_parts(message)
    ]
    last = {
        part.id: position
        for position, (_, part, _) in enumerate(entries)
        if isinstance(part, part_types.ToolCall) and part.id and part.state in _OUTCOMES
    }
    for position, (message, part, time) in enumerate(entries):
        if not isinstance(part, part_types.ToolCall):
            yield TranscriptLine(time, _get_label(message, part), part)
            continue
        if not part.id or part.id not in seen_calls:
            seen_calls.add(part.id)
            yield TranscriptLine(time, f"Tool Call {part.name}", part, is_call=True)
        if part.state in _OUTCOMES and last.get(part.id, position) == position:
            yield TranscriptLine(time, f"{_OUTCOMES[part.state]} {part.name}", part)


def _read_message_parts(message: StoredMessage) -> Iterator[tuple[part_types.Part, datetime]]:
    """Yield the parts of a message with their times.

    A part without a time gets the time of the message.
    """
    content = message.content
    if message.role == "signal" and (gap := _get_gap_text(content)):
        yield part_types.TextPart(gap), message.created_at
        return
    parts = content.get("parts") or [{"type": "text", "text": content.get("content") or ""}]
    for index, stored_part in enumerate(parts):
        part = part_types.read_part(parts, index)
        if part is None or isinstance(part, part_types.UnknownPart):
            continue
        yield part, get_part_time(stored_part) or message.created_at


def _get_gap_text(content: Mapping[str, Any]) -> str:
    """Return how much time a reminder says has passed, or an empty text for another message."""
    metadata = content.get("metadata")
    if not isinstance(metadata, Mapping) or metadata.get("reminderType") != GAP_REMINDER:
        return ""
    gap = metadata.get("gapText")
    return gap if isinstance(gap, str) else ""


def get_part_time(part: Any) -> datetime | None:
    """Return the time of a stored part, or None if it has none."""
    created_at = part.get("createdAt") if isinstance(part, Mapping) else None
    if not isinstance(created_at, int | float) or isinstance(created_at, bool):
        return None
    try:
        return datetime.fromtimestamp(created_at / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return None


def _get_label(message: StoredMessage, part: part_types.Part) -> str:
    match part:
        case part_types.ReasoningPart():
            return "Reasoning"
        case part_types.FilePart():
            stored_part = message.content["parts"][part.index]
            is_image = stored_part["type"] == "image" or part.mime_type.startswith("image/")
            return "Image" if is_image else "File"
        case part_types.SourcePart():
            return "Source"
    if message.role == "signal" and _get_gap_text(message.content):
        return ""
    return message.role.capitalize()


def format_for_title(messages: Iterable[StoredMessage]) -> str:
    """Return the transcript for the model that writes titles. Long results and links are cut."""
    lines = [
        f"{line.label}: {prompt_escaping.indent_lines(text)}"
        for line in iter_lines(messages)
        if line.label and (text := _format_line_for_title(line).strip())
    ]
    return "\n".join(lines)


def _format_line_for_title(line: TranscriptLine) -> str:
    part = line.part
    match part:
        case part_types.TextPart() | part_types.ReasoningPart():
            return part.text
        case part_types.ToolCall():
            return _dump_json(_get_value(part, line.is_call))[:MAX_TITLE_VALUE_CHARS]
        case part_types.FilePart():
            return f"[{part.name or part.mime_type}] {part.address[:MAX_LINK_CHARS]}"
        case part_types.SourcePart():
            return f"[{part.title[:MAX_LINK_CHARS]}] {part.address[:MAX_LINK_CHARS]}"
    return ""


def _get_value(call: part_types.ToolCall, is_call: bool) -> Any:
    """Return the arguments of a call, or its result or error."""
    if is_call:
        return call.args
    return call.result if call.state == part_types.STATE_RESULT else call.error


def _dump_json(value: Any, *, indent: bool = False) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    try:
        option = orjson.OPT_INDENT_2 if indent else None
        return orjson.dumps(value, option=option, default=str).decode()
    except orjson.JSONEncodeError:  # Such as a number of more than 64 bits.
        return json_text.dumps(value)


def format_for_observer(
    messages: Iterable[StoredMessage],
    *,
    timezone: tzinfo = UTC,
    max_part_chars: int | None = None,
) -> str:
    """Return the transcript with days and times, for observations and summaries.

    The date precedes the first line of each day. A line has a time only if it differs from that
    of the line before. Long arguments and results are shortened.

    Args:
        messages: Messages in the order of the conversation.
        timezone: The time zone of days and times.
        max_part_chars: The maximum length of each entry. Longer ones end with `…`.
    """
    lines: list[str] = []
    day = clock = ""
    numbers = _AttachmentNumbers()
    for line in iter_lines(messages):
        text = _format_line_for_observer(line, numbers)
        if not text.strip():
            continue
        if max_part_chars is not None and len(text) > max_part_chars:
            text = f"{text[:max_part_chars]}…"
        moment = line.time.astimezone(timezone)
        if (today := f"{moment:%b} {moment.day} {moment.year}:") != day:
            lines.append(today)
            day, clock = today, ""
        text = prompt_escaping.escape_tags(text)
        if not line.label:
            lines.append(text)
            continue
        now = f" ({moment.hour % 12 or 12}:{moment:%M %p})"
        lines.append(f"{line.label}{'' if now == clock else now}: {text}")
        clock = now
    return "\n".join(lines)


class _AttachmentNumbers:
    """Number the attachments of a transcript, separately for each type."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def next(self, kind: str) -> int:
        self.counts[kind] = self.counts.get(kind, 0) + 1
        return self.counts[kind]


def format_line(line: TranscriptLine) -> str:
    """Return the text of one entry, as the Observer reads it, without label and time."""
    return _format_line_for_observer(line, _AttachmentNumbers())


def _format_line_for_observer(line: TranscriptLine, numbers: _AttachmentNumbers) -> str:
    part = line.part
    match part:
        case part_types.TextPart() | part_types.ReasoningPart():
            return part.text
        case part_types.ToolCall() if line.is_call:
            return (
                tokens.truncate_to_tokens(format_outline(part.args), MAX_ARGS_TOKENS)
                or "(no arguments)"
            )
        case part_types.ToolCall() if part.name in SKILL_TOOLS:
            return SKILL_RESULT
        case part_types.ToolCall():
            result = _dump_json(_get_value(part, False), indent=True)
            return (
                tokens.truncate_to_tokens(result, MAX_RESULT_TOKENS)
                if result.strip()
                else EMPTY_RESULT
            )
        case part_types.FilePart():
            name = part.name or part.address[:MAX_LINK_CHARS] or part.mime_type
            return f"[{line.label} #{numbers.next(line.label)}: {name}]"
        case part_types.SourcePart():
            return f"[{part.title}] {part.address[:MAX_LINK_CHARS]}"
    return ""


def format_outline(value: Any, depth: int = 0) -> str:
    """Return a JSON value on one line, without the outer braces. Long and deep values are cut."""
    if isinstance(value, Mapping):
        if depth >= MAX_OUTLINE_DEPTH:
            return "{…}"
        inner = _join_entries(
            [f"{key}: {format_outline(v, depth + 1)}" for key, v in value.items()]
        )
        return inner if depth == 0 else f"{{{inner}}}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        if depth >= MAX_OUTLINE_DEPTH:
            return "[…]"
        return f"[{_join_entries([format_outline(item, depth + 1) for item in value])}]"
    if isinstance(value, str) and depth == 0:
        return value
    if isinstance(value, str) and len(value) > MAX_OUTLINE_TEXT_CHARS:
        value = value[:MAX_OUTLINE_TEXT_CHARS] + "…"
    return "" if value is None and depth == 0 else _json_scalar(value)


def _join_entries(entries: Sequence[str]) -> str:
    more = (
        [f"… {len(entries) - MAX_OUTLINE_ENTRIES} more"]
        if len(entries) > MAX_OUTLINE_ENTRIES
        else []
    )
    return ", ".join([*entries[:MAX_OUTLINE_ENTRIES], *more])


def _json_scalar(value: Any) -> str:
    try:
        return orjson.dumps(value, default=str).decode()
    except orjson.JSONEncodeError:
        return json_text.dumps(value)
