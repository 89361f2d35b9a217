"""Find expressions of time in a query, such as `last week` or `in May 2023`, as ranges of time.

The words are in `words`, the patterns in `patterns`, and `resolvers` computes the days. This is a
search for patterns, not a grammar: an expression that is not recognized has no effect, and a false
match would mislead the ranking, so only patterns with one meaning are listed. `two weeks` is a
duration and no time; `may` alone is a verb.

The work is bounded: the beginning of the query is read, and a language is tried only if the query
contains one of its words of time.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from mastra_memory.search.times import patterns, resolvers
from mastra_memory.search.times.patterns import LanguagePatterns
from mastra_memory.types import TimeRange

MAX_CHARACTERS = 500
"""The rest of a longer query is ignored."""
MAX_RANGES = 4
"""How many expressions of one query are used, the first ones."""
YEARS = range(1970, 2100)
"""Years that a number can mean."""

_TOKEN = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")
_NUMERIC_DATE = re.compile(
    r"(?<![\d./-])(?:(?P<y>\d{4})-(?P<m>\d{1,2})(?:-(?P<d>\d{1,2}))?"
    r"|(?P<first>\d{1,2})(?P<sep>[./-])(?P<second>\d{1,2})(?P=sep)(?P<year>\d{4}))(?![\d./-]*\d)"
)


@dataclass(frozen=True, slots=True)
class DayRange:
    """The days that an expression means, and where it is in the text."""

    start: date
    end: date
    """The day after the last one."""
    span: tuple[int, int]


def find_time_ranges(
    text: str, *, now: datetime, languages: Sequence[str], zone: tzinfo
) -> list[TimeRange]:
    """Return the ranges of time that the text names, at most `MAX_RANGES`, in order.

    Ranges that start after `now` are omitted: nothing was said then.

    Args:
        text: A query.
        now: The time that `yesterday` refers to.
        languages: The languages to try, as keys of `words.LANGUAGES`.
        zone: The time zone in which a day starts.
    """
    text = text[:MAX_CHARACTERS].replace("’", "'")
    today = now.astimezone(zone).date()
    numeric = list(_find_numeric_dates(text, languages))
    found = list(numeric)
    for language in _list_candidate_languages(text, languages):
        found += _find_in_language(text, today, language, numeric)
    ranges = [_to_time_range(text, days, zone) for days in _remove_overlaps(found)]
    return [item for item in ranges if item.start <= now][:MAX_RANGES]


def _to_time_range(text: str, days: DayRange, zone: tzinfo) -> TimeRange:
    start, end = (
        datetime.combine(day, time(), zone).astimezone(UTC) for day in (days.start, days.end)
    )
    return TimeRange(text[slice(*days.span)], start, end)


def _remove_overlaps(found: Iterable[DayRange]) -> list[DayRange]:
    """Keep the longest of overlapping expressions, in the order of the text."""

    def get_size(item: DayRange) -> tuple[int, timedelta]:
        return item.span[1] - item.span[0], item.end - item.start

    kept: list[DayRange] = []
    for item in sorted(found, key=get_size, reverse=True):
        if all(item.span[1] <= other.span[0] or other.span[1] <= item.span[0] for other in kept):
            kept.append(item)
    return sorted(kept, key=lambda item: item.span)


def _list_candidate_languages(text: str, languages: Sequence[str]) -> list[LanguagePatterns]:
    """Return the languages that may have an expression in the text.

    Words such as the French `hier`, which is a frequent German word, do not count if the text has
    more words of another language.
    """
    tokens = {match[0].casefold() for match in _TOKEN.finditer(text)}
    has_digit = any(character.isdigit() for character in text)
    compiled = [patterns.compile_language(code) for code in languages]
    ambiguous = {word for language in compiled for word in language.language.words.ambiguous}
    scores = [len((tokens - ambiguous) & language.language.words.common) for language in compiled]
    spoken = []
    for language, score in zip(compiled, scores, strict=True):
        anchors = {match[0].casefold() for match in language.anchor.finditer(text)}
        if score < max(scores):
            anchors -= language.language.words.ambiguous
        if anchors or has_digit:
            spoken.append(language)
    return spoken


def _find_in_language(
    text: str, today: date, language: LanguagePatterns, numeric: Sequence[DayRange]
) -> Iterator[DayRange]:
    """Yield the expressions of a language. `numeric` has the dates that need no words."""
    found = list(numeric)
    for pattern, resolve in language.patterns:
        for match in pattern.finditer(text):
            try:
                days = resolve(match, today, language.language)
            except (LookupError, ValueError, OverflowError):
                # Not in the calendar, such as February 30; or a word is not in the table, because
                # IGNORECASE lets the Turkish dotless i match an i.
                continue
            if days is not None:
                found.append(DayRange(*days, match.span("expression")))
    return _extend_ranges(text, _remove_overlaps(found), today, language)


def _extend_ranges(
    text: str, found: Sequence[DayRange], today: date, language: LanguagePatterns
) -> Iterator[DayRange]:
    """Yield the ranges, with `between A and B` and `since A` as one range."""
    index = 0
    while index < len(found):
        item = found[index]
        before = text[max(0, item.span[0] - 30) : item.span[0]]
        following = found[index + 1] if index + 1 < len(found) else None
        if following and language.between.search(before):
            gap = text[item.span[1] : following.span[0]]
            if language.joining.fullmatch(gap):
                yield _join_ranges(item, following)
                index += 2
                continue
        if language.since.search(before):
            item = replace(item, end=max(item.end, today + timedelta(days=1)))
        elif relation := language.relation.search(before):
            item = _widen(item, relation, language)
        yield item
        index += 1


def _widen(item: DayRange, relation: re.Match[str], language: LanguagePatterns) -> DayRange:
    """Add the week, month or day before or after a date, as in `the week before May 3`."""
    words, unit = language.language.words, relation["unit"]
    days = 7
    if re.fullmatch(words.month, unit, re.IGNORECASE):
        days = 31
    elif re.fullmatch(words.day, unit, re.IGNORECASE):
        days = 1
    if relation["before"]:
        return replace(item, start=item.start - timedelta(days=days))
    return replace(item, end=item.end + timedelta(days=days))


def _join_ranges(first: DayRange, second: DayRange) -> DayRange:
    """Return the range from one day to another, moving the first day to the year of the second.

    If it would then be later, it is moved to the year before.
    """
    start = first.start
    if start > second.start or second.start.year != start.year:
        start = resolvers.replace_year(start, second.start.year)
        if start > second.start:
            start = resolvers.replace_year(start, second.start.year - 1)
    return DayRange(start, second.end, (first.span[0], second.span[1]))


def _find_numeric_dates(text: str, languages: Sequence[str]) -> Iterator[DayRange]:
    """Yield dates such as `2023-05-03`, `2023-05`, `3.5.2023` and `5/3/2023`.

    With slashes, English puts the month first, if the number can be a month.
    """
    for match in _NUMERIC_DATE.finditer(text):
        try:
            days = resolvers.resolve_numeric_date(match, month_first=list(languages[:1]) == ["en"])
        except ValueError:  # not in the calendar
            continue
        if days is not None and days[0].year in YEARS:
            yield DayRange(*days, match.span())
