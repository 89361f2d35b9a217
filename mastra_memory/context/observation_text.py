"""Format stored observations for the model that answers.

The log of the Observer contains dates, and marks that only the Observer needs. The marks are
removed, and a relative date such as `3 weeks ago` is added to each date, because models are
unreliable at date arithmetic. The stored log does not change.
"""

import re
from collections.abc import Iterator
from datetime import date

from mastra_memory.observational import groups
from mastra_memory.observational.log import split_at_boundaries

_REPLACEMENTS = (
    # The number of an observation at the beginning of a line: [O12].
    (re.compile(r"^([ \t]*(?:[*-] )?)\[O\d+\][ \t]*", re.MULTILINE), r"\1"),
    # Marks of medium and low importance.
    (re.compile(r"[🟡🟢][ \t]*"), ""),
    # Tags in brackets, but neither links nor "[3 items collapsed]".
    (re.compile(r"\[(?!\d+ items collapsed)[^\[\]\n]*\](?!\()"), ""),
    (re.compile(r"[ \t]*->[ \t]*"), " "),
    (re.compile(r"[ \t]{2,}"), " "),
    (re.compile(r"\n{3,}"), "\n\n"),
)

_MONTHS = {
    name: number
    for number, name in enumerate(
        "january february march april may june july august september october november "
        "december".split(),
        1,
    )
}
_MONTH = r"(?P<month>[A-Za-z]{3,9})\.?"
# "Date: May 15, 2025", a line of its own.
_HEADING = re.compile(rf"^Date: {_MONTH} (?P<day>\d{{1,2}}), (?P<year>\d{{4}})[ \t]*$")
# "(meaning May 30, 2025)" or "(estimated mid July 2025)", within a line.
_NOTE = re.compile(r"\((?P<kind>meaning|estimated) (?P<date>[^()\n]*\d{4})\)")
# The dates in notes: "May 30, 2025", "May 30-31, 2025", "mid July 2025", "June to July 2025".
_DAY = re.compile(rf"{_MONTH} (?P<day>\d{{1,2}})(?:-\d{{1,2}})?, (?P<year>\d{{4}})")
_PART_OF_MONTH = re.compile(
    rf"(?:(?P<part>early|mid|late)[ -])?{_MONTH} (?P<year>\d{{4}})", re.IGNORECASE
)
_SPAN = re.compile(rf"[A-Za-z]+ to (?:early )?{_MONTH} (?P<year>\d{{4}})", re.IGNORECASE)
_DAY_OF_PART = {"early": 7, "mid": 15, "late": 23}
_INTENTION = re.compile(
    r"\b(?:will|plans?(?: on| to)?|planning to|looking forward to|going to|intends? to|wants? to"
    r"|needs? to|about to)\b",
    re.IGNORECASE,
)


def format_observations(log: str, today: date) -> str:
    """Return the log without the Observer's marks, and with dates relative to `today`."""
    return "\n\n".join(format_pieces(log, today))


def format_pieces(log: str, today: date, *, with_groups: bool = False) -> list[str]:
    """Return the pieces between the boundaries of a log, formatted for the agent.

    Empty pieces are left out.

    Args:
        log: The observations as they are stored.
        today: The day to which dates are relative.
        with_groups: Show groups as headings with their ranges, and keep the Observer's marks, so
            that the agent can look up the messages behind a group.
    """
    dates = _RelativeDates(today)
    pieces = []
    for piece in split_at_boundaries(log):
        text = groups.render_groups(piece.text) if with_groups else _slim(piece.text)
        lines = "\n".join(dates.add_to(text.strip().split("\n")))
        if lines := re.sub(r"\n{3,}", "\n\n", lines).strip():
            pieces.append(lines)
    return pieces


def _slim(text: str) -> str:
    """Return the text without what only the Observer and the Reflector need."""
    text = groups.strip_group_tags(text)
    for pattern, replacement in _REPLACEMENTS:
        text = pattern.sub(replacement, text)
    return text


class _RelativeDates:
    """Add relative dates to the pieces of one log, in order."""

    def __init__(self, today: date) -> None:
        self.today = today
        self.previous: date | None = None

    def add_to(self, lines: list[str]) -> Iterator[str]:
        """Add relative dates to headings and notes, and a line for each gap of more than a day."""
        for line in lines:
            heading = _HEADING.match(line)
            day = _make_date(heading, int(heading["day"])) if heading else None
            if day is None:
                yield _NOTE.sub(lambda note: _format_note(note, self.today), line)
                continue
            if self.previous is not None and (gap := (day - self.previous).days) > 1:
                yield from ("", f"[{_format_gap(gap)}]", "")
            yield f"{line.rstrip()} ({format_relative_days((self.today - day).days)})"
            self.previous = day


def _format_note(note: re.Match[str], today: date) -> str:
    day = _parse_date(note["date"])
    if day is None:
        return note[0]
    text = f"{note['date']} - {format_relative_days((today - day).days)}"
    line_before = note.string[: note.start()]
    if day < today and _INTENTION.search(line_before):
        text += ", likely already happened"
    return f"({note['kind']} {text})"


def _parse_date(text: str) -> date | None:
    """Return the day of a note.

    For a span of months, this is the first day of the last month. For a month alone it is None.
    """
    if match := _DAY.fullmatch(text):
        return _make_date(match, int(match["day"]))
    if match := _SPAN.fullmatch(text):
        return _make_date(match, 1)
    if match := _PART_OF_MONTH.fullmatch(text):
        return _make_date(match, _DAY_OF_PART[match["part"].lower()]) if match["part"] else None
    return None


def _make_date(match: re.Match[str], day: int) -> date | None:
    """Return the date, or None if it is invalid. Months may be abbreviated."""
    name = match["month"].lower()
    months = [number for full_name, number in _MONTHS.items() if full_name.startswith(name)]
    try:
        return date(int(match["year"]), months[0], day) if months else None
    except ValueError:
        return None


def format_relative_days(days: int) -> str:
    """Return how long ago a day was, like `3 weeks ago`. Negative numbers are in the future."""
    if days in (0, 1, -1):
        return {0: "today", 1: "yesterday", -1: "tomorrow"}[days]
    amount = _format_amount(abs(days))
    return f"{amount} ago" if days > 0 else f"in {amount}"


def _format_amount(days: int) -> str:
    for limit, size, unit in ((7, 1, "day"), (30, 7, "week"), (365, 30, "month")):
        if days < limit:
            return _pluralize(days // size, unit)
    return _pluralize(days // 365, "year")


def _format_gap(days: int) -> str:
    # Gaps are never counted in years: "13 months later".
    amount = _pluralize(days // 30, "month") if days >= 30 else _format_amount(days)
    return f"{amount} later"


def _pluralize(number: int, unit: str) -> str:
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
