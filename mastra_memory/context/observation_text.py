"""An observation log as an agent reads it: slim, and with how long ago things were.

What is stored stays as it is; a log is written for whoever observes next, and read by whoever
answers today.
"""

import re
from collections.abc import Iterator
from datetime import date

_BOUNDARY = re.compile(r"\n*^--- message boundary \([^)\n]*\) ---$\n*", re.MULTILINE)
_GROUP = re.compile(r"</?observation-group\b[^>\n]*>\n?", re.IGNORECASE)
_SLIMMER = (
    (re.compile(r"^([ \t]*(?:[*-] )?)\[O\d+\][ \t]*", re.MULTILINE), r"\1"),
    (re.compile(r"[🟡🟢][ \t]*"), ""),
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
_HEADING = re.compile(rf"^Date: {_MONTH} (?P<day>\d{{1,2}}), (?P<year>\d{{4}})[ \t]*$")
_NOTE = re.compile(r"\((?P<kind>meaning|estimated) (?P<said>[^()\n]*\d{4})\)")
_DAY = re.compile(rf"{_MONTH} (?P<day>\d{{1,2}})(?:-\d{{1,2}})?, (?P<year>\d{{4}})")
_PART = re.compile(rf"(?:(?P<part>early|mid|late)[ -])?{_MONTH} (?P<year>\d{{4}})", re.IGNORECASE)
_SPAN = re.compile(rf"[A-Za-z]+ to (?:early )?{_MONTH} (?P<year>\d{{4}})", re.IGNORECASE)
_DAY_OF_PART = {"early": 7, "mid": 15, "late": 23}
_INTENT = re.compile(
    r"\b(?:will|plans?(?: on| to)?|planning to|looking forward to|going to|intends? to|wants? to"
    r"|needs? to|about to)\b",
    re.IGNORECASE,
)


def format_observations(log: str, today: date) -> str:
    """The log without marks that are for the Observer, its dates told relative to `today`."""
    text = _GROUP.sub("", _BOUNDARY.sub("\n\n", log))
    for pattern, instead in _SLIMMER:
        text = pattern.sub(instead, text)
    told = "\n".join(_with_times(text.strip().split("\n"), today))
    return re.sub(r"\n{3,}", "\n\n", told).strip()


def _with_times(lines: list[str], today: date) -> Iterator[str]:
    before: date | None = None
    for line in lines:
        found = _HEADING.match(line)
        day = _date(found, int(found["day"])) if found else None
        if day is None:
            yield _NOTE.sub(lambda note: _dated(note, today), line)
            continue
        if before is not None and (gap := (day - before).days) > 1:
            yield from ("", f"[{_gap(gap)}]", "")
        yield f"{line.rstrip()} ({format_relative_days((today - day).days)})"
        before = day


def _dated(note: re.Match[str], today: date) -> str:
    day = _read(note["said"])
    if day is None:
        return note[0]
    told = f"{note['said']} - {format_relative_days((today - day).days)}"
    line = note.string[: note.start()]
    if day < today and _INTENT.search(line):
        told += ", likely already happened"
    return f"({note['kind']} {told})"


def _read(said: str) -> date | None:
    if found := _DAY.fullmatch(said):
        return _date(found, int(found["day"]))
    if found := _SPAN.fullmatch(said):
        return _date(found, 1)
    if found := _PART.fullmatch(said):
        return _date(found, _DAY_OF_PART[found["part"].lower()]) if found["part"] else None
    return None


def _date(found: re.Match[str], day: int) -> date | None:
    name = found["month"].lower()
    months = [number for full, number in _MONTHS.items() if full.startswith(name)]
    try:
        return date(int(found["year"]), months[0], day) if months else None
    except ValueError:
        return None


def format_relative_days(days: int) -> str:
    """How long ago so many days are; negative ones are ahead."""
    if days in (0, 1, -1):
        return {0: "today", 1: "yesterday", -1: "tomorrow"}[days]
    told = _amount(abs(days))
    return f"{told} ago" if days > 0 else f"in {told}"


def _amount(days: int) -> str:
    for limit, size, unit in ((7, 1, "day"), (30, 7, "week"), (365, 30, "month")):
        if days < limit:
            return _counted(days // size, unit)
    return _counted(days // 365, "year")


def _gap(days: int) -> str:
    if days >= 30:
        return f"{_counted(days // 30, 'month')} later"
    return f"{_amount(days)} later"


def _counted(number: int, unit: str) -> str:
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
