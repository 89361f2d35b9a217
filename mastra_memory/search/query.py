"""Parse a search query: optional words, required `"phrases"`, and excluded `-words`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mastra_memory import conf
from mastra_memory.db import json_text, sql

MAX_CHARACTERS = 4_000
"""The rest of a longer query is ignored."""
MAX_TERMS = 48
"""How many terms of a query are used. Further terms hardly change the result."""

_TOKEN = re.compile(r'(?P<minus>(?<!\S)-)?(?:"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+))')
_OPERATORS = re.compile(r'"|(?<!\S)-+')
LEXEME = re.compile(r"'(?:[^']|'')*'")
"""One lexeme in the text of a `tsquery`."""

# Scripts without spaces between words (Thai and Lao, Burmese, Khmer, kana, Han). Each of their
# characters is indexed as a separate word, so a run of them is split into overlapping pairs of
# characters, and each pair is searched for as a phrase.
UNSPACED = (
    r"[\u0e00-\u0edf\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    r"\uf900-\ufaff\U00020000-\U0003ffff]"
)
_UNSPACED_RUN = re.compile(UNSPACED + "+")


@dataclass(frozen=True, slots=True)
class WordQuery:
    """A parsed query. Each item is the text of a `tsquery`."""

    terms: Sequence[str]
    """Words and phrases. A message must contain one of them; each one adds to its score."""
    required: Sequence[str]
    """Phrases; every one must occur."""
    excluded: Sequence[str]
    """Words and phrases; none may occur."""

    @property
    def filter(self) -> str | None:
        """The `tsquery` that a message must match; None if the query has no terms."""
        if not self.terms:
            return None
        any_term = " | ".join(f"({term})" for term in self.terms)
        return " & ".join(filter(None, [f"({any_term})", self.required_filter]))

    @property
    def required_filter(self) -> str | None:
        """The part of `filter` that matches by vectors must meet too; None if there is none."""
        parts = [f"({phrase})" for phrase in self.required]
        parts += [f"!({term})" for term in self.excluded]
        return " & ".join(parts) or None

    def as_prefixes(self) -> "WordQuery":
        """Return the query for text whose words are not stemmed: each stem matches as a prefix."""
        return WordQuery(*map(_to_prefixes, (self.terms, self.required, self.excluded)))


def is_phrase(term: str) -> bool:
    """Return whether a term has more than one word."""
    return len(LEXEME.findall(term)) > 1


def _to_prefixes(queries: Sequence[str]) -> list[str]:
    return [LEXEME.sub(lambda lexeme: lexeme[0] + ":*", query) for query in queries]


def parse_query(text: str, *, parse_operators: bool = True) -> WordQuery:
    """Split the text into words and phrases, and reduce the words to their stems.

    Without `parse_operators`, quotes and minus signs have no special meaning, because they are
    ordinary punctuation in messages. PostgreSQL reduces the words to stems, in the language of
    `SEARCH_LANGUAGE`, with one statement.
    """
    text = json_text.clean_text(text[:MAX_CHARACTERS])
    words, pairs, required, excluded = _split_query(
        text if parse_operators else _OPERATORS.sub(" ", text)
    )
    row = sql.fetch_one(
        """SELECT ARRAY(SELECT lexeme FROM unnest(mastra_memory_words(language, %s))
                ORDER BY positions[1]),
            ARRAY(SELECT mastra_memory_phrase(language, p)::text FROM unnest(%s::text[]) p),
            ARRAY(SELECT mastra_memory_phrase(language, p)::text FROM unnest(%s::text[]) p),
            ARRAY(SELECT mastra_memory_phrase(language, p)::text FROM unnest(%s::text[]) p)
        FROM (SELECT %s::regconfig AS language) AS chosen""",
        [" ".join(words), pairs, required, excluded, conf.app_settings().SEARCH_LANGUAGE],
    )
    assert row is not None
    lexemes, pairs, required, excluded = row
    singles = ["'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'" for lexeme in lexemes]
    # A phrase of stop words, such as "of the", becomes an empty query.
    required = [phrase for phrase in required if phrase]
    terms = dict.fromkeys([*required, *singles, *filter(None, pairs)])
    return WordQuery(list(terms)[:MAX_TERMS], required, [term for term in excluded if term])


def _split_query(text: str) -> tuple[list[str], list[str], list[str], list[str]]:
    """Return words, pairs of characters of unspaced scripts, phrases, and excluded terms."""
    words: list[str] = []
    pairs: list[str] = []
    required: list[str] = []
    excluded: list[str] = []
    for token in _TOKEN.finditer(text):
        part = token["phrase"] if token["phrase"] is not None else token["word"]
        if token["minus"]:
            excluded.append(part)
        elif token["phrase"] is not None:
            required.append(part)
        else:
            words.append(_UNSPACED_RUN.sub(" ", part))
            pairs += [pair for run in _UNSPACED_RUN.findall(part) for pair in _make_bigrams(run)]
    return words, pairs, required, excluded


def _make_bigrams(run: str) -> list[str]:
    return [run[start : start + 2] for start in range(max(len(run) - 1, 1))]
