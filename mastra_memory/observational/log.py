"""The text of a log: pieces between boundaries, items, and dates.

A log only grows at its end. Each batch of observations after the first one follows a boundary line
with the time of the newest message that it covers:

    Date: Jan 1, 2025
    * 🔴 (10:00) User has a dog

    --- message boundary (2025-01-04T10:07:00.000Z) ---

    Date: Jan 4, 2025
    * 🟡 (10:01) The dog is called Rex
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Literal

from mastra_memory.content import tokens
from mastra_memory.db import times

Priority = Literal["high", "medium", "low", "done", ""]

# With spaces around it, since a text is stripped when it is read. `[^\S\n]` is a space, but not a
# line break.
_BOUNDARY_TEXT = r"^[^\S\n]*--- message boundary \(([^)\n]*)\) ---[^\S\n]*$"
BOUNDARY_LINE = re.compile(_BOUNDARY_TEXT, re.MULTILINE)
_BOUNDARY = re.compile(rf"\n*{_BOUNDARY_TEXT}\n*", re.MULTILINE)
HEADING = re.compile(r"^Date: ([A-Za-z]{3,9})\.? (\d{1,2}), (\d{4})[ \t]*$")
_ITEM = re.compile(
    r"^(?P<indent>[ \t]*)[*-] (?:-> ?)?(?:(?P<mark>[🔴🟡🟢✅])\ufe0f? ?)?"
    r"(?:\((?P<time>\d{1,2}:\d{2})\) ?)?(?P<text>.*)$"
)
_ENTITIES = {"&": "&amp;", '"': "&quot;", "<": "&lt;", ">": "&gt;", "\n": "&#10;"}
_UNSAFE_IN_ID = re.compile('[&"<>\n]')
_THREAD_OPENING = re.compile(r'^<thread id="([^"\n]*)">$')
_GROUP_OPENING = re.compile(r'^<observation-group\b[^>\n]*\bid="([^"\n]*)"[^>\n]*>$')
_CLOSING = {"</thread>": "thread", "</observation-group>": "group"}
_PRIORITIES: dict[str, Priority] = {"🔴": "high", "🟡": "medium", "🟢": "low", "✅": "done"}
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()


@dataclass(frozen=True, slots=True)
class LogPiece:
    """The part of a log between two boundaries."""

    observed_at: datetime | None
    """The time in the boundary before the piece; None for the first one."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogItem:
    """One line of observations."""

    index: int
    """The position among the items of the log."""
    line: int
    """The index of its line in the log."""
    end: int
    """The index of the line after its nested items."""
    raw: str
    """The line as it is stored."""
    text: str
    """The line without bullet, mark and time."""
    depth: int
    """0, or the number of spaces before a nested item."""
    priority: Priority = ""
    day: date | None = None
    """The day of the heading above."""
    time: str = ""
    """The time in the line, such as `14:30`."""
    thread_id: str | None = None
    """The thread of the section that the item is in, in the log of a resource."""
    group_id: str | None = None
    """The id of the observation group that the item is in."""
    observed_at: datetime | None = None
    """The time in the boundary above; None in the first piece."""


def append_observations(log: str, text: str, moment: datetime) -> str:
    """Return the log with a new batch of observations at its end.

    Args:
        log: The log so far.
        text: The new observations. If they are blank, the log is returned unchanged.
        moment: The time of the newest message that they cover.
    """
    text = text.strip()
    if not text:
        return log
    if not log.strip():
        return text
    return f"{log}\n\n{format_boundary(moment)}\n\n{text}"


def format_boundary(moment: datetime) -> str:
    """Return the line that separates two batches."""
    return f"--- message boundary ({times.format_time(moment.astimezone(UTC))}) ---"


def wrap_in_thread(thread_id: str, text: str) -> str:
    """Return the observations as the section of a thread, for the log of a resource.

    Blank observations return an empty text.
    """
    text = text.strip()
    return f"{format_thread_tag(thread_id)}\n{text}\n</thread>" if text else ""


def format_thread_tag(thread_id: str) -> str:
    """Return the opening tag of a thread."""
    return f'<thread id="{escape_attribute(thread_id)}">'


def escape_attribute(value: str) -> str:
    """Return the value with entities for the characters that would end an attribute."""
    return _UNSAFE_IN_ID.sub(lambda match: _ENTITIES[match[0]], value)


def read_thread_id(attribute: str) -> str:
    """Return the id of a thread from the attribute of its tag."""
    for character, entity in reversed(_ENTITIES.items()):
        attribute = attribute.replace(entity, character)
    return attribute


def split_at_boundaries(log: str) -> list[LogPiece]:
    """Return the pieces of a log, oldest first. An empty log has none."""
    if not log.strip():
        return []
    parts = _BOUNDARY.split(log)
    pieces = [LogPiece(None, parts[0].strip())]
    for moment, text in zip(parts[1::2], parts[2::2], strict=True):
        pieces.append(LogPiece(_parse_moment(moment), text.strip()))
    return pieces


def _parse_moment(text: str) -> datetime | None:
    try:
        return times.parse_time(text)
    except ValueError:
        return None


def observations_as_of(log: str, moment: datetime) -> str:
    """Return the part of the log that existed at a time.

    The first piece has no time, so it is always included.
    """
    return "\n\n".join(
        piece.text
        for piece in split_at_boundaries(log)
        if piece.observed_at is None or piece.observed_at <= moment
    )


def replace_prefix(log: str, read_log: str, reflection: str) -> str | None:
    """Return the log with the part that the Reflector read replaced by its reflection.

    What was appended while it worked is kept. None means that the log does not start with
    `read_log` any more, so the reflection must be discarded.
    """
    if not log.startswith(read_log):
        return None
    return _join(reflection, log[len(read_log) :])


def find_cut(log: str, count: int) -> int:
    """Return the number of lines to cut off the log so that no group or section is split.

    Args:
        log: The log.
        count: The number of lines that should be cut off. The result is the nearest smaller
            number between two groups or threads, or a larger one if there is none.
    """
    lines = log.split("\n")
    cut = depth = 0
    for number, line in enumerate(lines, 1):
        if _THREAD_OPENING.match(line) or _GROUP_OPENING.match(line):
            depth += 1
        elif line in _CLOSING:
            depth = max(0, depth - 1)
        if depth == 0:
            cut = number
        if number >= count and cut:
            return cut
    return len(lines)


def take_lines(log: str, count: int) -> str:
    """Return the first `count` lines of the log."""
    return "\n".join(log.split("\n")[:count])


def drop_lines(log: str, count: int) -> str:
    """Return the log without its first `count` lines."""
    return "\n".join(log.split("\n")[count:])


def replace_lines(log: str, count: int, reflection: str) -> str:
    """Return the log with its first `count` lines replaced by their reflection."""
    return _join(reflection, drop_lines(log, count))


def _join(reflection: str, rest: str) -> str:
    rest = rest.strip()
    return f"{reflection.strip()}\n\n{rest}" if rest else reflection.strip()


def parse_heading(line: str) -> date | None:
    """Return the day of a line like `Date: Dec 4, 2025`, or None for another line."""
    match = HEADING.match(line.strip())
    if match is None or match[1][:3].lower() not in _MONTHS:
        return None
    try:
        return date(int(match[3]), _MONTHS.index(match[1][:3].lower()) + 1, int(match[2]))
    except ValueError:
        return None


def format_heading(day: date) -> str:
    """Return the heading of a day, like `Date: Dec 4, 2025`."""
    return f"Date: {_MONTHS[day.month - 1].capitalize()} {day.day}, {day.year}"


def get_items(log: str) -> list[LogItem]:
    """Return all items of the log in order, nested ones included."""
    lines = log.split("\n")
    indents = [_get_indent(line) for line in lines]
    return [
        LogItem(
            index=index,
            line=line,
            end=_find_end(indents, line),
            raw=lines[line],
            text=match["text"].strip(),
            depth=len(match["indent"]),
            priority=_PRIORITIES.get(match["mark"] or "", ""),
            day=place.day,
            time=match["time"] or "",
            thread_id=place.thread_id,
            group_id=place.group_id,
            observed_at=place.observed_at,
        )
        for index, (line, match, place) in enumerate(_iter_item_lines(lines))
    ]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in a log a line is."""

    day: date | None = None
    thread_id: str | None = None
    group_id: str | None = None
    observed_at: datetime | None = None


def _iter_item_lines(lines: Sequence[str]) -> Iterator[tuple[int, re.Match[str], _Place]]:
    """Yield the lines that are items, with their place in the log."""
    place = _Place()
    for number, line in enumerate(lines):
        if boundary := BOUNDARY_LINE.match(line):
            place = _Place(observed_at=_parse_moment(boundary[1]))
        elif opening := _THREAD_OPENING.match(line):
            place = _Place(None, read_thread_id(opening[1]), place.group_id, place.observed_at)
        elif opening := _GROUP_OPENING.match(line):
            place = _Place(None, place.thread_id, opening[1], place.observed_at)
        elif closed := _CLOSING.get(line):
            thread_id = None if closed == "thread" else place.thread_id
            group_id = None if closed == "group" else place.group_id
            place = _Place(None, thread_id, group_id, place.observed_at)
        elif day := parse_heading(line):
            place = _Place(day, place.thread_id, place.group_id, place.observed_at)
        elif match := _ITEM.match(line):
            yield number, match, place


def _get_indent(line: str) -> int:
    """Return the number of spaces and tabs before the text of a line, or -1 for a blank line."""
    return len(line) - len(line.lstrip(" \t")) if line.strip() else -1


def _find_end(indents: Sequence[int], line: int) -> int:
    """Return the index of the line after the items nested below a line."""
    end = line + 1
    while end < len(indents) and indents[end] > indents[line]:
        end += 1
    return end


def take_tail(log: str, max_tokens: int) -> str:
    """Return the newest lines of the log that fit into `max_tokens`.

    The heading of their day is kept, after a line with the number of omitted observations.
    """
    counter = tokens.get_token_counter()
    lines = log.split("\n")
    start, left = len(lines), max_tokens
    while start > 0 and (left := left - counter.text(lines[start - 1])) >= 0:
        start -= 1
    if start == 0:
        return log
    kept = "\n".join(lines[start:]).strip()
    if not kept:
        return ""
    omitted = sum(1 for _ in _iter_item_lines(lines[:start]))
    note = f"[{omitted} observations truncated here]"
    heading = _find_heading(lines, start)
    return "\n".join(filter(None, (note, heading, kept)))


def _find_heading(lines: Sequence[str], start: int) -> str:
    """Return the heading of the day of the line at `start`, unless it follows there."""
    for line in reversed(lines[: start + 1]):
        if parse_heading(line):
            return "" if line is lines[start] else line
        if BOUNDARY_LINE.match(line):
            return ""
    return ""
