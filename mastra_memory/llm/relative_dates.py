"""Resolve relative dates such as `last Friday` in a sentence against the time of its message.

English first: other languages are recognized only where a word has no second meaning.
"""

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import date, timedelta

MAX_NOTES = 2
"""How many dates of one text are noted."""

_MONTHS = (
    "january february march april may june july august september october november december".split()
)
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_NUMBERS = {
    word: number
    for number, word in enumerate(
        "one two three four five six seven eight nine ten eleven twelve".split(), 1
    )
} | {"a": 1, "an": 1, "couple": 2, "few": 3}
_NUMBER = rf"(?P<number>\d{{1,3}}|(?:a )?couple(?: of)?|(?:a )?few|{'|'.join(_NUMBERS)})"
_MONTH = "(?P<month>" + "|".join(f"{name}|{name[:3]}" for name in _MONTHS) + ")"
_WEEKDAY = "(?P<weekday>" + "|".join(_WEEKDAYS) + ")"
_UNIT = "(?P<unit>day|week|month|year)s?"
_Resolver = Callable[[re.Match[str], str, date], str]
"""Return the note for a match in a text that was written on a day; empty if there is none."""

_FUTURE = re.compile(
    r"\b(?:will|shall|'ll|going to|gonna|plan(?:s|ning)?|next|upcoming|until|by|can't wait"
    r"|looking forward|hope|want|need|have to|should|let's)\b",
    re.IGNORECASE,
)


def find_date_notes(text: str, day: date) -> list[str]:
    """Return notes such as `meaning Jun 17-18, 2025` for the relative dates of a text.

    Args:
        text: One or several sentences.
        day: The day on which they were written.
    """
    notes: dict[int, str] = {}
    taken: list[range] = []
    for pattern, resolve in _RULES:
        for match in pattern.finditer(text):
            span = range(*match.span())
            if any(span.start < other.stop and other.start < span.stop for other in taken):
                continue
            taken.append(span)
            try:
                notes[span.start] = resolve(match, text, day)
            except (ValueError, OverflowError):  # not in the calendar, such as February 30
                continue
    return list(dict.fromkeys(note for _, note in sorted(notes.items()) if note))[:MAX_NOTES]


def format_day(day: date) -> str:
    """Return a day as the log has it: `Jun 7, 2025`."""
    return f"{day:%b} {day.day}, {day.year}"


def _format_month(day: date) -> str:
    return f"{day:%b} {day.year}"


def _format_range(first: date, last: date) -> str:
    if (first.year, first.month) == (last.year, last.month):
        return f"{first:%b} {first.day}-{last.day}, {last.year}"
    if first.year == last.year:
        return f"{first:%b} {first.day} - {last:%b} {last.day}, {last.year}"
    return f"{format_day(first)} - {format_day(last)}"


def _add_months(day: date, count: int) -> date:
    year, month = divmod(day.year * 12 + day.month - 1 + count, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def _shift_days(count: int) -> _Resolver:
    return lambda match, text, day: f"meaning {format_day(day + timedelta(days=count))}"


def _resolve_span(match: re.Match[str], text: str, day: date) -> str:
    """Resolve `two weeks ago` and `in three months`. Only days are exact."""
    word = match["number"].lower().removeprefix("a ").removesuffix(" of")
    number = int(word) if word.isdigit() else _NUMBERS[word]
    vague = word in ("couple", "few")
    count = -number if match["direction"].lower() in ("ago", "back") else number
    unit = match["unit"].lower()
    if unit == "day":
        return f"{'estimated' if vague else 'meaning'} {format_day(day + timedelta(days=count))}"
    if unit == "week":
        return f"estimated {format_day(day + timedelta(weeks=count))}"
    if unit == "month":
        return f"estimated {_format_month(_add_months(day, count))}"
    return f"estimated {day.year + count}" if abs(count) < 100 else ""


def _resolve_period(match: re.Match[str], text: str, day: date) -> str:
    """Resolve `last week`, `next month`, `this weekend`."""
    step = {"last": -1, "past": -1, "previous": -1, "this": 0, "next": 1, "coming": 1}[
        match["step"].lower()
    ]
    unit = match["period"].lower()
    if unit == "year":
        return f"meaning {day.year + step}" if step else ""
    if unit == "month":
        return f"meaning {_format_month(_add_months(day.replace(day=1), step))}" if step else ""
    monday = day - timedelta(days=day.weekday())
    if unit == "weekend":
        # On a weekend, "last weekend" is the one before.
        saturday = monday + timedelta(days=5, weeks=step)
        return f"meaning {_format_range(saturday, saturday + timedelta(days=1))}"
    monday += timedelta(weeks=step)
    return f"meaning {_format_range(monday, monday + timedelta(days=6))}"


def _resolve_weekday(match: re.Match[str], text: str, day: date) -> str:
    """Resolve `last Friday`, `next Friday` (of the next week) and `on Friday`."""
    step, index = (match["step"] or "on").lower(), _WEEKDAYS.index(match["weekday"].lower())
    ahead = (index - day.weekday()) % 7 or 7
    if step in ("last", "past") or (step == "on" and not _FUTURE.search(text)):
        return f"meaning {format_day(day + timedelta(days=ahead - 7 if ahead < 7 else -7))}"
    if step == "next":
        monday = day - timedelta(days=day.weekday())
        return f"meaning {format_day(monday + timedelta(days=7 + index))}"
    return f"meaning {format_day(day + timedelta(days=ahead))}"


def _resolve_month(match: re.Match[str], text: str, day: date) -> str:
    """Resolve `in June`, `last June`: a past one, a future one, or else the closest."""
    month = _find_month(match["month"])
    step = match["step"].lower()
    first = date(day.year, month, 1)
    if step == "last" and month >= day.month:
        first = date(day.year - 1, month, 1)
    elif step == "next" and month <= day.month:
        first = date(day.year + 1, month, 1)
    elif step not in ("last", "next", "this"):
        first = _find_closest(first, day)
    return f"meaning {_format_month(first)}"


def _resolve_day_of_month(match: re.Match[str], text: str, day: date) -> str:
    """Resolve `June 5` and `the 5th of June`, without a year, to the closest such day."""
    on = date(day.year, _find_month(match["month"]), int(match["day"]))
    return f"meaning {format_day(_find_closest(on, day))}"


def _find_month(name: str) -> int:
    return next(i for i, month in enumerate(_MONTHS, 1) if month.startswith(name.lower()))


def _find_closest(moment: date, day: date) -> date:
    years = (moment.year - 1, moment.year, moment.year + 1)
    return min((moment.replace(year=year) for year in years), key=lambda other: abs(other - day))


_NO_YEAR = r"(?!,? ?(?:of )?\d{4})"
# An expression that an earlier rule has matched is not matched again by a later one.
_RULES: tuple[tuple[re.Pattern[str], _Resolver], ...] = tuple(
    (re.compile(source, re.IGNORECASE), resolve)
    for source, resolve in (
        (r"\bday before yesterday\b|前天|前日|一昨日|그저께", _shift_days(-2)),
        (r"\bday after tomorrow\b|后天|後天|明後日|모레|\bübermorgen\b", _shift_days(2)),
        (r"\byesterday\b|\blast night\b|昨天|昨日|어제|\bgestern\b|\bayer\b", _shift_days(-1)),
        (r"\btomorrow\b|明天|明日|내일|\bdemain\b", _shift_days(1)),
        (rf"\b{_NUMBER} {_UNIT} (?P<direction>ago|back|from now|later)\b", _resolve_span),
        (rf"\b(?P<direction>in) {_NUMBER} {_UNIT}\b", _resolve_span),
        (
            r"\b(?P<step>last|past|previous|this|next|coming)"
            r" (?P<period>week|weekend|month|year)\b",
            _resolve_period,
        ),
        (rf"\b(?P<step>last|past|this|next|on)(?: coming)? {_WEEKDAY}\b", _resolve_weekday),
        (
            rf"\b{_MONTH}\.? (?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b{_NO_YEAR}(?!:)",
            _resolve_day_of_month,
        ),
        (
            rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? {_MONTH}\b{_NO_YEAR}",
            _resolve_day_of_month,
        ),
        (
            rf"\b(?P<step>in|last|next|this|since|until|by|early|mid|late) {_MONTH}\b{_NO_YEAR}"
            r"(?! ?\d)",
            _resolve_month,
        ),
    )
)
