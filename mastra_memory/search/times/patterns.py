"""Compile the words of a language to patterns of expressions of time."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache

from django.utils import dates, translation

from mastra_memory.search.times import resolvers
from mastra_memory.search.times.resolvers import Days, Language
from mastra_memory.search.times.words import LANGUAGES, TimeWords

_SPACE = r"\s{1,3}"
_YEAR = r"(?:19[7-9]|20\d)\d"

Resolver = Callable[[re.Match[str], date, Language], Days]
"""Compute the days of a match, on a given day."""


@dataclass(frozen=True, slots=True)
class LanguagePatterns:
    """The compiled patterns of a language."""

    language: Language
    anchor: re.Pattern[str]
    """Words of which every expression without a digit has at least one."""
    patterns: Sequence[tuple[re.Pattern[str], Resolver]]
    between: re.Pattern[str]
    """`between`, at the end of the text before a date."""
    joining: re.Pattern[str]
    """`and`, the whole text between two dates."""
    since: re.Pattern[str]
    """`since`, at the end of the text before a date."""
    relation: re.Pattern[str]
    """`the week before`, at the end of the text before a date."""


@cache
def compile_language(code: str) -> LanguagePatterns:
    """Return the patterns of a language, compiled once per process."""
    words = LANGUAGES[code]
    with translation.override(code):
        months = {str(name).casefold(): number for number, name in dates.MONTHS.items()}
        weekdays = {str(name).casefold(): number for number, name in dates.WEEKDAYS.items()}
    # In Portuguese, "sexta" is as usual as "sexta-feira".
    weekdays |= {name.removesuffix("-feira"): number for name, number in weekdays.items()}
    months |= words.short_months
    starts, ends = words.between
    return LanguagePatterns(
        language=Language(words, months, weekdays),
        anchor=_compile(_build_anchor(words, [*months, *weekdays])),
        patterns=[
            (_compile(rf"(?<!\w){pattern}(?!\w)"), resolve)
            for pattern, resolve in _list_patterns(words, months, weekdays)
        ],
        between=_compile(rf"(?<!\w)(?:{starts})\s*$"),
        joining=_compile(rf"\s*(?:{ends}|-|–)\s*(?:(?:{words.on})\s*)?"),
        since=_compile(rf"(?<!\w)(?:{words.since})\s+(?:\w+\s+)?$"),
        relation=_compile(
            rf"(?<!\w)(?P<unit>{words.weekend}|{words.week}|{words.month}|{words.day}"
            rf"|{_any(weekdays)})\s+(?:(?P<before>{words.before})|(?P<after>{words.after}))\s+$"
        ),
    )


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def _build_anchor(words: TimeWords, names: Iterable[str]) -> str:
    """Return a pattern of the words of which every expression without a digit has one."""
    units = (words.day, words.week, words.month, words.year, words.weekend)
    return rf"(?<!\w)(?:{'|'.join([*units, *words.days_ago, *names])})(?!\w)"


def _list_patterns(
    words: TimeWords, months: Iterable[str], weekdays: Iterable[str]
) -> Iterator[tuple[str, Resolver]]:
    """Yield the patterns without their boundaries. Each has the group `expression`."""
    for pattern, resolve in (*_list_relative(words), *_list_dates(words, _any(months))):
        yield f"(?P<expression>{pattern})", resolve
    yield from _list_prefixed(words, _any(months), _any(weekdays))
    yield _build_day_of_month(words)


def _list_relative(words: TimeWords) -> Iterator[tuple[str, Resolver]]:
    """Yield patterns such as `yesterday`, `last week` and `two weeks ago`."""
    unit = (
        f"(?:(?P<weekend>{words.weekend})|(?P<day>{words.day})|(?P<week>{words.week})"
        f"|(?P<month>{words.month})|(?P<year>{words.year}))"
    )
    number = rf"(?P<number>\d{{1,3}}|{_any([*words.numbers, words.few])})"
    last = f"(?:{words.last})"
    yield _any(words.days_ago), resolvers.resolve_days_ago
    yield f"{last}{_SPACE}{unit}", resolvers.resolve_last
    yield f"(?:{words.this}){_SPACE}{unit}", resolvers.resolve_this
    yield f"{last}{_SPACE}{number}{_SPACE}{unit}", resolvers.resolve_last_several
    if words.last_follows:
        yield f"{unit}{_SPACE}{last}", resolvers.resolve_last
        yield f"{number}{_SPACE}{last}{_SPACE}{unit}", resolvers.resolve_last_several
    before, after = words.ago
    if before:
        yield f"(?:{before}){_SPACE}{number}{_SPACE}{unit}", resolvers.resolve_ago
    if after:
        yield f"{number}{_SPACE}{unit}{_SPACE}(?:{after})", resolvers.resolve_ago


def _list_dates(words: TimeWords, months: str) -> Iterator[tuple[str, Resolver]]:
    """Yield patterns such as `May 2023`, `3 May 2023`, `May 3, 2023` and `May 3-9`."""
    month, year = f"(?P<month>{months})", f"(?P<year>{_YEAR})"
    ordinal, of = f"(?P<ordinal>{words.ordinal})?", f"(?:(?:{words.of}){_SPACE})?"
    optional_year = rf"(?:,?\s{{0,3}}{of}{year})?"
    first = rf"(?P<first>\d{{1,2}})(?:{words.ordinal})?\s{{0,3}}(?:{words.between[1]}|-|–)\s{{0,3}}"
    day = rf"(?P<day>\d{{1,2}}){ordinal}"
    yield rf"{month}\.?,?{_SPACE}{of}{year}", resolvers.resolve_month
    for prefix, resolve in (("", resolvers.resolve_date), (first, resolvers.resolve_days)):
        yield rf"{prefix}{day}\s{{0,3}}{of}{month}\.?{optional_year}", resolve
        yield rf"{month}\.?{_SPACE}(?:the{_SPACE})?{prefix}{day}{optional_year}", resolve


def _list_prefixed(words: TimeWords, months: str, weekdays: str) -> Iterator[tuple[str, Resolver]]:
    """Yield patterns of a month, a weekday and a year, which need a word such as `in` or `last`.

    A weekday next to a date, as in `Friday, May 3`, adds nothing to it.
    """
    joined = f"{words.since}|{words.between[0]}|{words.between[1]}"
    before_month = f"{words.inside}|{words.of}|{joined}" if words.of else f"{words.inside}|{joined}"
    last = rf"(?:(?P<last>{words.last}|{words.this}){_SPACE})?"
    following = f"(?:{_SPACE}(?P<following>{words.last}))?" if words.last_follows else ""
    yield (
        rf"(?P<prefix>(?:{before_month})\s{{0,3}})?"
        rf"(?P<expression>{last}(?P<month>{months}){following})"
        rf"(?!\.?,?\s{{0,3}}(?:{words.of}{_SPACE})?\d)",
        resolvers.resolve_named_month,
    )
    yield (
        rf"(?P<prefix>(?:{words.on}|{joined}){_SPACE})?"
        rf"(?P<expression>{last}(?P<weekday>{weekdays}){following})"
        rf"(?!,?\s{{0,3}}(?:(?:{words.on}){_SPACE})?(?:\d|{months})"
        rf"|{_SPACE}(?:{words.before}|{words.after})(?!\w))",
        resolvers.resolve_weekday,
    )
    yield (
        rf"(?:{words.inside}|{joined}){_SPACE}(?P<expression>(?P<year>{_YEAR}))(?!\w|[-/.]\d)",
        resolvers.resolve_year,
    )


def _build_day_of_month(words: TimeWords) -> tuple[str, Resolver]:
    """Return the pattern of `on the 3rd`, which is not followed by a noun as in `the 3rd floor`."""
    ordinal = f"(?:{words.ordinal}){'' if words.ordinal_is_required else '?'}"
    last, month = f"(?P<previous>{words.last})", f"(?:{words.month})"
    orders = [f"(?:{last}|{words.this}){_SPACE}{month}"]
    if words.last_follows:
        orders = [f"{month}{_SPACE}{last}", f"(?:{words.this}){_SPACE}{month}"]
    of_month = f"(?:{_SPACE}(?:{words.of}){_SPACE}(?:{'|'.join(orders)}))"
    follows = rf"\s*(?:$|[,;:?!)]|\.(?:\s|$))|\s+(?:{_any(words.common)})(?!\w)"
    if not words.nouns_are_capitalized:
        follows += r"|\s+(?-i:[A-ZÀ-Ý])"
    return (
        rf"(?:{words.on}){_SPACE}(?P<expression>(?P<day>\d{{1,2}}){ordinal}"
        rf"(?:{of_month}|(?={follows})))",
        resolvers.resolve_day_of_month,
    )


def _any(alternatives: Iterable[str]) -> str:
    """Return a pattern of any of these, the longest first, with any space between their words."""
    ordered = sorted(alternatives, key=len, reverse=True)
    return "(?:" + "|".join(ordered).replace(" ", _SPACE) + ")"
