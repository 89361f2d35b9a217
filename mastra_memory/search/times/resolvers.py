"""Compute the days that an expression of time means, once it is recognized."""

import re
from calendar import monthrange
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from mastra_memory.search.times.words import TimeWords

FEW = range(1, 6)
"""What `a few` means in `a few days ago`."""
Days = tuple[date, date] | None
"""The first day, and the day after the last one; None if it is not a time after all."""


@dataclass(frozen=True, slots=True)
class Language:
    """The words of a language, with its months and weekdays."""

    words: TimeWords
    months: Mapping[str, int]
    weekdays: Mapping[str, int]

    def count_days_ago(self, expression: str) -> int:
        """Return how many days ago an expression such as `yesterday` is."""
        return self.words.days_ago[re.sub(r"\s+", " ", expression.casefold())]

    def read_number(self, text: str) -> int | None:
        """Return the number that digits or a word stand for; None for `a few`."""
        if text.isdigit():
            return int(text)
        text = re.sub(r"\s+", " ", text)
        if re.fullmatch(self.words.few, text, re.IGNORECASE):
            return None
        return next(
            number
            for pattern, number in self.words.numbers.items()
            if re.fullmatch(pattern, text, re.IGNORECASE)
        )


def _day(day: date) -> Days:
    return day, day + timedelta(days=1)


def _week(day: date) -> Days:
    monday = day - timedelta(days=day.weekday())
    return monday, monday + timedelta(days=7)


def _weekend(day: date) -> Days:
    saturday = day + timedelta(days=5 - day.weekday())
    return saturday, saturday + timedelta(days=2)


def _month(year: int, month: int) -> Days:
    return date(year, month, 1), date(year + month // 12, month % 12 + 1, 1)


def _year(year: int) -> Days:
    return date(year, 1, 1), date(year + 1, 1, 1)


def _shift_months(day: date, months: int) -> date:
    count = day.year * 12 + day.month - 1 + months
    year, month = divmod(count, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def _shift(day: date, unit: str, count: int) -> date:
    """Return the day this many units earlier."""
    if unit in ("month", "year"):
        return _shift_months(day, -count * (12 if unit == "year" else 1))
    return day - timedelta(days=count * (1 if unit == "day" else 7))


def _period(day: date, unit: str) -> Days:
    """Return the day, week, weekend, month or year around a day."""
    if unit == "month":
        return _month(day.year, day.month)
    if unit == "year":
        return _year(day.year)
    return {"day": _day, "week": _week, "weekend": _weekend}[unit](day)


def _unit(match: re.Match[str]) -> str:
    names = ("day", "week", "weekend", "month", "year")
    return next(name for name in names if match[name] is not None)


def resolve_days_ago(match: re.Match[str], today: date, language: Language) -> Days:
    """Resolve `yesterday`."""
    return _day(today - timedelta(days=language.count_days_ago(match["expression"])))


def resolve_ago(match: re.Match[str], today: date, language: Language) -> Days:
    """Resolve `two weeks ago` as that week, and `a few days ago` as several days."""
    unit = _unit(match)
    count = language.read_number(match["number"])
    if count is None:
        return _shift(today, unit, max(FEW)), _shift(today, unit, min(FEW)) + timedelta(days=1)
    day = _shift(today, unit, count)
    return _period(day, "week" if unit == "weekend" else unit)


def resolve_last_several(match: re.Match[str], today: date, language: Language) -> Days:
    """Resolve `the last two weeks`, which end today."""
    count = language.read_number(match["number"]) or max(FEW)
    start = _shift(today, _unit(match), count)
    return start, today + timedelta(days=1)


def resolve_last(match: re.Match[str], today: date, _: Language) -> Days:
    """Resolve `last week` as the whole calendar week before the current one."""
    unit = _unit(match)
    if unit == "weekend":
        # On a Sunday, the last weekend is the one before the current one.
        return _weekend(today - timedelta(days=7))
    return None if unit == "day" else _period(_shift(today, unit, 1), unit)


def resolve_this(match: re.Match[str], today: date, _: Language) -> Days:
    """Resolve `this week`."""
    return _period(today, _unit(match))


def resolve_weekday(match: re.Match[str], today: date, language: Language) -> Days:
    """Resolve `on Friday` as the latest one."""
    last = match["last"] or match.groupdict().get("following")
    if not (match["prefix"] or last or language.words.bare_weekday):
        return None
    back = (today.weekday() - language.weekdays[match["weekday"].casefold()]) % 7
    if not back and last and not re.fullmatch(language.words.this, last, re.IGNORECASE):
        back = 7
    return _day(today - timedelta(days=back))


def resolve_month(match: re.Match[str], _today: date, language: Language) -> Days:
    """Resolve `May 2023`."""
    return _month(int(match["year"]), language.months[match["month"].casefold()])


def resolve_named_month(match: re.Match[str], today: date, language: Language) -> Days:
    """Resolve a month without a year, which is the current one or the latest before it."""
    last = match["last"] or match.groupdict().get("following")
    if not (match["prefix"] or last):
        return None
    month = language.months[match["month"].casefold()]
    is_last = last and not re.fullmatch(language.words.this, last, re.IGNORECASE)
    return _month(
        today.year - (month > today.month or bool(month == today.month and is_last)), month
    )


def resolve_date(match: re.Match[str], today: date, language: Language) -> Days:
    """Resolve `May 3, 2023`. Without a year it is the latest one."""
    name = match["month"]
    month, day = language.months[name.casefold()], int(match["day"])
    is_plain_word = name.casefold() in language.words.ambiguous and name[0].islower()
    if is_plain_word and not (match["year"] or match["ordinal"]):
        return None  # "may 5 people join?"
    if match["year"]:
        return _day(date(int(match["year"]), month, day))
    this_year = replace_year(date(2024, month, day), today.year)
    return _day(this_year if this_year <= today else replace_year(this_year, today.year - 1))


def resolve_days(match: re.Match[str], today: date, language: Language) -> Days:
    """Resolve `May 3-9`."""
    last_day = resolve_date(match, today, language)
    if last_day is None or int(match["first"]) > last_day[0].day:
        return None
    return last_day[0].replace(day=int(match["first"])), last_day[1]


def resolve_day_of_month(match: re.Match[str], today: date, _: Language) -> Days:
    """Return the latest day with this number, such as the 31st of the month before last."""
    day = int(match["day"])
    if match["previous"]:
        return _day(_shift_months(today.replace(day=1), -1).replace(day=day))
    for months_back in range(3):
        first = _shift_months(today.replace(day=1), -months_back)
        if 1 <= day <= monthrange(first.year, first.month)[1] and first.replace(day=day) <= today:
            return _day(first.replace(day=day))
    return None


def resolve_year(match: re.Match[str], _today: date, _: Language) -> Days:
    """Resolve `in 2023`."""
    return _year(int(match["year"]))


def replace_year(day: date, year: int) -> date:
    """Return the same day of another year; February 28 for February 29 if there is none."""
    return date(year, day.month, min(day.day, monthrange(year, day.month)[1]))


def resolve_numeric_date(match: re.Match[str], *, month_first: bool) -> Days:
    """Resolve a date such as `2023-05-03`, `2023-05`, `3.5.2023` and `5/3/2023`."""
    if match["y"]:
        year, month = int(match["y"]), int(match["m"])
        return _day(date(year, month, int(match["d"]))) if match["d"] else _month(year, month)
    day, month = int(match["first"]), int(match["second"])
    if month > 12 or (match["sep"] == "/" and month_first and day <= 12):
        day, month = month, day
    return _day(date(int(match["year"]), month, day))
