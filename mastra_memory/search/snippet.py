"""Snippets: the part of a message that contains the query's words, with these highlighted."""

import html
import re
from collections.abc import Mapping, Sequence

import regex

from mastra_memory import conf
from mastra_memory.db import sql
from mastra_memory.search import words
from mastra_memory.search.query import LEXEME, WordQuery

SNIPPET_CHARACTERS = 220
"""The approximate length of a snippet."""


def highlight_snippets(texts: Mapping[str, str], query: WordQuery | None) -> dict[str, str]:
    """Return a snippet of each text, by the same keys.

    A snippet is escaped HTML with `<mark>` around each word of the query. It is the beginning of
    the text if there is no query, or if the text contains none of its words. The words
    of all texts are compared by PostgreSQL, with one statement, because it has the stemmer.
    """
    if query is None or not query.terms:
        return {key: _build_snippet(text, []) for key, text in texts.items()}
    spans = {key: list(words.iter_spans(text)) for key, text in texts.items()}
    distinct = {span[0] for matches in spans.values() for span in matches}
    matching = _find_matching_words(sorted(distinct), query)
    return {
        key: _build_snippet(text, [span for span in spans[key] if span[0] in matching])
        for key, text in texts.items()
    }


def _find_matching_words(spans: Sequence[str], query: WordQuery) -> frozenset[str]:
    lexemes = " | ".join(
        sorted({lexeme for term in query.terms for lexeme in LEXEME.findall(term)})
    )
    rows = sql.fetch_all(
        """SELECT span FROM unnest(%s::text[], %s::text[]) AS u (span, words)
        WHERE to_tsvector(%s::regconfig, words) @@ %s::tsquery""",
        [
            list(spans),
            [words.normalize_words(span) for span in spans],
            conf.app_settings().SEARCH_LANGUAGE,
            lexemes,
        ],
    )
    return frozenset(span for (span,) in rows)


def _build_snippet(text: str, marked: Sequence["regex.Match[str]"]) -> str:
    start = _find_best_start(text, marked)
    end = _find_word_boundary(text, start + SNIPPET_CHARACTERS)
    parts = ["… " if start else ""]
    position = start
    for word in marked:
        if word.start() >= start and word.end() <= end:
            parts += [html.escape(text[position : word.start()], quote=False), "<mark>"]
            parts += [html.escape(word[0], quote=False), "</mark>"]
            position = word.end()
    parts += [html.escape(text[position:end], quote=False), " …" if end < len(text) else ""]
    # In unspaced scripts each character is a word; mark adjacent ones together.
    return "".join(parts).replace("</mark><mark>", "")


def _find_best_start(text: str, marked: Sequence["regex.Match[str]"]) -> int:
    """Return the start of the snippet that contains the most different words of the query.

    It is a little before the first of these words, or 0 if a snippet from there has them all.
    """
    if not marked or len(text) <= SNIPPET_CHARACTERS or marked[-1].end() <= SNIPPET_CHARACTERS:
        return 0

    def count_different(first: int) -> int:
        end = marked[first].start() + SNIPPET_CHARACTERS * 3 // 4
        # Compare 24 words at most: a text in which every word matches would take too long.
        near = (word for word in marked[first : first + 24] if word.end() <= end)
        return len({word[0].lower() for word in near})

    best = max(range(len(marked)), key=lambda first: (count_different(first), -first))
    return _find_word_boundary(text, max(0, marked[best].start() - SNIPPET_CHARACTERS // 4))


def _find_word_boundary(text: str, position: int) -> int:
    """Return the first position at or after `position` that does not split a word.

    A word that continues for more than 40 characters is split.
    """
    if position <= 0 or position >= len(text):
        return max(0, min(position, len(text)))
    space = re.compile(r"\s").search(text, position, position + 40)
    return space.end() if space else position
