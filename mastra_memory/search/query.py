"""Parse a search query, in the language that docs/search.md describes.

A query has words, required `"phrases"`, excluded `-words`, alternatives with `OR`, and fields such
as `tool:refundPayment`, `role:user` or `after:2024-05-01`. It means the same in every search,
except that a ranked search needs only one of the words, and a list all of them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time
from itertools import pairwise
from typing import Any, Literal

from django.utils import timezone

from mastra_memory import conf
from mastra_memory.db import json_text, sql, times
from mastra_memory.exceptions import InvalidInput, Issue
from mastra_memory.models import Message
from mastra_memory.search import words
from mastra_memory.search.fields import PREFIXES

MAX_CHARACTERS = 4_000
"""The rest of a longer query is ignored."""
MAX_TERMS = 48
"""How many terms of a query are used. Further terms hardly change the result."""
THREAD_FIELDS = ("note", "tag", "resource")
"""Fields of conversations, which only the lists of the admin search."""
_CONDITION_FIELDS = ("role", "before", "after")

LEXEME = re.compile(r"'(?:[^']|'')*'")
"""One lexeme in the text of a `tsquery`."""
_CURLY_QUOTES = str.maketrans(dict.fromkeys("“”„‟«»", '"'))
_ITEM = re.compile(
    r"(?P<minus>(?<!\S)-(?=\S))?(?:(?P<name>[a-z]+):(?=[^\s:]))?"
    r'(?:"(?P<phrase>[^"]*)"|(?P<word>[^\s"]\S*|"\S*))',
    re.IGNORECASE,
)
_DATE = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?")

Problem = Literal["", "no_words", "stop_words", "only_excluded"]
"""Why a query cannot find anything; empty if it can."""
PROBLEMS: Mapping[Problem, str] = {
    "no_words": "has no letters or digits to search for",
    "stop_words": "has only words that are too common to be indexed",
    "only_excluded": "only excludes words; add at least one word that must occur",
}


@dataclass(frozen=True, slots=True)
class QueryWord:
    """A word of the query, or alternatives joined by `OR`."""

    text: str
    """As it was entered."""
    condition: str
    """A `tsquery`, as a string, that matches texts with the word."""


@dataclass(frozen=True, slots=True)
class ThreadField:
    """A condition on conversations, such as `tag:vip`."""

    name: str
    value: str
    condition: str
    """The text of a `tsquery`, for notes."""
    excluded: bool


@dataclass(frozen=True, slots=True)
class WordQuery:
    """A parsed query. Terms and conditions are `tsquery` strings."""

    terms: Sequence[str]
    """What adds to the score of a message. In a ranked search, one of these must occur."""
    required: Sequence[str]
    """Phrases, fields, and `OR` groups that contain one; all of them must match."""
    excluded: Sequence[str]
    """Words, phrases and fields; none may occur."""
    words: Sequence[QueryWord] = ()
    """The words, of which a list requires all."""
    message_filter: Mapping[str, Any] = field(default_factory=dict)
    """Conditions on role and time, as a filter of `metadata_filters`."""
    thread_fields: Sequence[ThreadField] = ()
    text: str = ""
    """The query without operators, fields and excluded words, for a search by meaning."""
    problem: Problem = ""

    @property
    def filter(self) -> str | None:
        """The `tsquery` that a message of a ranked search matches; None if there are no terms."""
        return self._join([" | ".join(f"({term})" for term in self.terms)]) if self.terms else None

    @property
    def required_filter(self) -> str | None:
        """The part of `filter` that also applies to vector matches; None if there is none."""
        return self._join([])

    @property
    def all_words_filter(self) -> str | None:
        """The `tsquery` that a message of a list matches; None if nothing is required."""
        conditions = [word.condition for word in self.words]
        return self._join(conditions) if conditions or self.required else None

    @property
    def any_word_filter(self) -> str | None:
        """The same, but with one of the words instead of all; None if there are no words."""
        conditions = " | ".join(f"({word.condition})" for word in self.words)
        return self._join([conditions]) if conditions else None

    @property
    def has_message_conditions(self) -> bool:
        """Whether the query requires any word, phrase, field, role or time."""
        return bool(self.words or self.required or self.message_filter)

    def without_exclusions(self) -> "WordQuery":
        """Return the query without excluded words."""
        return replace(self, excluded=())

    def _join(self, conditions: Sequence[str]) -> str | None:
        parts = [f"({condition})" for condition in (*conditions, *self.required)]
        parts += [f"!({term})" for term in self.excluded]
        return " & ".join(parts) or None


def is_phrase(term: str) -> bool:
    """Return whether a term has more than one word."""
    return len(LEXEME.findall(term)) > 1


@dataclass(slots=True)
class _Item:
    """A word, a phrase or a field of the query."""

    text: str
    name: str = ""
    """The name of the field; empty for a word or a phrase."""
    quoted: bool = False
    excluded: bool = False
    follows_or: bool = False
    """Whether this is an alternative to the previous item."""
    pieces: list[str] = field(default_factory=list)
    """The item as one phrase, then its parts, as `_list_pieces` returns them. `_read_stems`
    replaces each with a `tsquery` string, which is empty for stop words."""


def parse_query(
    text: str, *, parse_operators: bool = True, thread_fields: bool = False
) -> WordQuery:
    """Split the query into words, phrases and fields, and reduce the words to their stems.

    PostgreSQL has the stemmer for the language of `SEARCH_LANGUAGE`; one statement is executed.

    Args:
        text: The query.
        parse_operators: Whether quotes, minus signs, `OR` and fields have their meaning. False
            for the text of a conversation.
        thread_fields: Whether `THREAD_FIELDS` have their meaning too.

    Raises:
        InvalidInput: A role or a date is invalid.
    """
    text = json_text.clean_text(text[:MAX_CHARACTERS])
    if not parse_operators:
        items = [_Item(word) for word in text.split()]
        return _build_query(_read_stems(items), {}, text)
    items = _mark_alternatives(list(_iter_items(text, thread_fields)))
    message_filter = _build_message_filter(item for item in items if item.name in _CONDITION_FIELDS)
    items = [item for item in items if item.name not in _CONDITION_FIELDS]
    positive = " ".join(item.text for item in items if not (item.excluded or item.name))
    return _build_query(_read_stems(items), message_filter, positive)


def _iter_items(text: str, thread_fields: bool) -> Iterator[_Item]:
    names = {*PREFIXES, *_CONDITION_FIELDS, *(THREAD_FIELDS if thread_fields else ())}
    for match in _ITEM.finditer(text.translate(_CURLY_QUOTES)):
        entered, name = match["name"] or "", (match["name"] or "").lower()
        value = match["word"] if match["phrase"] is None else match["phrase"]
        is_quoted = match["phrase"] is not None
        if name and name not in names:
            # `http:` or `note:` of a query that has no such field is part of the text.
            value, name, is_quoted = f"{entered}:{value}", "", False
        yield _Item(value, name, is_quoted, bool(match["minus"]))


def _mark_alternatives(items: Sequence[_Item]) -> list[_Item]:
    """Remove `OR` between two items and mark the second one. In English, `or` is the same."""
    operators = ("OR", "or") if conf.app_settings().SEARCH_LANGUAGE == "english" else ("OR",)
    result: list[_Item] = []
    follows_or = False
    for position, item in enumerate(items):
        is_last = position == len(items) - 1
        is_operator = item.text in operators and not (item.quoted or item.name or item.excluded)
        if is_operator and result and not is_last:
            follows_or = True
            continue
        item.follows_or = (
            follows_or and not item.excluded and not result[-1].excluded
            and item.name not in (*_CONDITION_FIELDS, *THREAD_FIELDS)
            and result[-1].name not in (*_CONDITION_FIELDS, *THREAD_FIELDS)
        )  # fmt: skip
        result.append(item)
        follows_or = False
    return result


def _build_message_filter(items: Iterator[_Item]) -> dict[str, Any]:
    """Return the conditions on role and time as a filter of `metadata_filters`."""
    conditions: list[dict[str, Any]] = []
    for item in items:
        if item.name == "role":
            if item.text.lower() not in Message.Role.values:
                raise _invalid(item, f"must be one of {', '.join(Message.Role.values)}")
            conditions.append({"role": {"$ne" if item.excluded else "$eq": item.text.lower()}})
        else:
            is_lower_limit = (item.name == "after") != item.excluded
            moment = _parse_date(item)
            conditions.append({"created_at": {"$gte" if is_lower_limit else "$lt": moment}})
    return {"$and": conditions} if conditions else {}


def _parse_date(item: _Item) -> str:
    """Return the beginning of a year, month or day in the current time zone, or the time itself.

    The time has the format of the API.
    """
    zone = timezone.get_current_timezone()
    try:
        if match := _DATE.fullmatch(item.text):
            day = date(int(match[1]), int(match[2] or 1), int(match[3] or 1))
            return times.format_time(datetime.combine(day, time(), zone))
        moment = datetime.fromisoformat(item.text)
        return times.format_time(moment if moment.tzinfo else moment.replace(tzinfo=zone))
    except (ValueError, OverflowError):
        raise _invalid(item, "expects a date such as 2024-05-31, 2024-05 or 2024") from None


def _invalid(item: _Item, reason: str) -> InvalidInput:
    return InvalidInput(f"{item.name}:{item.text}: {reason}", [Issue(item.name, reason)])


def _list_pieces(item: _Item) -> list[str]:
    """Return what PostgreSQL reduces to stems: the item as a phrase, then its parts.

    The parts are the single words and, of scripts without spaces, overlapping pairs of characters.
    """
    split = words.normalize_words(item.text).split()
    if not split:
        return []
    prefix = PREFIXES.get(item.name, "")
    phrase = " ".join(prefix + word for word in split)
    if item.name or item.quoted or item.excluded:
        return [phrase]
    parts: list[str] = []
    run: list[str] = []
    for word in [*split[:MAX_CHARACTERS], ""]:
        if word and words.is_unspaced(word):
            run.append(word)
            continue
        parts += run if len(run) == 1 else [f"{a} {b}" for a, b in pairwise(run)]
        run = []
        if word:
            parts.append(word)
    return [phrase, *dict.fromkeys(parts)][: MAX_TERMS + 1]


def _has_pairs(item: _Item) -> bool:
    """Return whether the item has characters of a script without spaces."""
    return any(words.is_unspaced(word) for word in words.normalize_words(item.text).split())


def _read_stems(items: Sequence[_Item]) -> list[_Item]:
    """Replace the pieces of each item by texts of a `tsquery`, with one statement."""
    for item in items:
        item.pieces = _list_pieces(item)
    pieces = [piece for item in items for piece in item.pieces]
    row = sql.fetch_one(
        """SELECT ARRAY(SELECT phraseto_tsquery(%s::regconfig, piece)::text
            FROM unnest(%s::text[]) WITH ORDINALITY AS u (piece, n) ORDER BY n)""",
        [conf.app_settings().SEARCH_LANGUAGE, pieces],
    )
    assert row is not None
    stems = iter(row[0])
    for item in items:
        item.pieces = [next(stems) for _ in item.pieces]
    return list(items)


def _build_query(items: list[_Item], message_filter: Mapping[str, Any], text: str) -> WordQuery:
    required: list[str] = []
    terms: list[str] = []
    phrases: list[str] = []
    query_words: list[QueryWord] = []
    for group in _iter_groups(items):
        condition = " | ".join(f"({_join_parts(item)})" for item in group if _join_parts(item))
        if not condition:
            continue
        if len(group) == 1:
            condition = _join_parts(group[0])
        if any(item.quoted or item.name for item in group):
            required.append(condition)
            phrases += [item.pieces[0] for item in group if item.pieces]
        else:
            query_words.append(QueryWord(" OR ".join(item.text for item in group), condition))
        terms += [term for item in group for term in _list_terms(item)]
    excluded = [
        item.pieces[0]
        for item in items
        if item.excluded and item.name not in THREAD_FIELDS and item.pieces and item.pieces[0]
    ]
    thread_fields = [
        ThreadField(item.name, item.text, "".join(item.pieces[:1]), item.excluded)
        for item in items
        if item.name in THREAD_FIELDS
    ]
    return WordQuery(
        terms=[term for term in dict.fromkeys([*phrases, *terms]) if term][:MAX_TERMS],
        required=required,
        excluded=excluded,
        words=query_words[:MAX_TERMS],
        message_filter=message_filter,
        thread_fields=thread_fields,
        text=text,
        problem=_find_problem(
            items,
            can_find=bool(query_words or required or message_filter)
            or bool(thread_fields and not excluded),
        ),
    )


def _iter_groups(items: Sequence[_Item]) -> Iterator[list[_Item]]:
    """Yield the items that are searched for, each with its alternatives."""
    group: list[_Item] = []
    for item in items:
        if item.excluded or item.name in THREAD_FIELDS:
            continue
        if group and not item.follows_or:
            yield group
            group = []
        group.append(item)
    if group:
        yield group


def _join_parts(item: _Item) -> str:
    """Return the condition that a text with the item meets; empty for stop words."""
    if item.quoted or item.name or not item.pieces:
        return "".join(item.pieces[:1])
    # Words that belong together, such as `user_id`, must occur next to each other. Of a script
    # without spaces, all pairs of characters must occur, because the words in it are not known.
    if not _has_pairs(item):
        return item.pieces[0]
    return " & ".join(f"({piece})" for piece in item.pieces[1:] if piece)


def _list_terms(item: _Item) -> list[str]:
    """Return the terms of a word: its parts and, if these are words, all of them as a phrase."""
    whole, *parts = item.pieces or [""]
    return parts if parts and _has_pairs(item) else [*parts, whole]


def _find_problem(items: Sequence[_Item], *, can_find: bool) -> Problem:
    if can_find:
        return ""
    if any(item.excluded for item in items):
        return "only_excluded"
    return "stop_words" if any(item.pieces for item in items) else "no_words"
