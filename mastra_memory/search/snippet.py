"""The part of a message that shows why it was found, its words marked."""

import html
import re
from collections.abc import Mapping, Sequence

from mastra_memory import conf
from mastra_memory.db import sql
from mastra_memory.search.query import UNSPACED, WordQuery

SNIPPET_CHARACTERS = 220
"""About how many characters of a message a snippet shows."""
MAX_CHARACTERS = 100_000
"""What lies beyond is not indexed either."""

_WORD = re.compile(rf"{UNSPACED}|(?:(?!{UNSPACED})[^\W_])+")


def highlight_snippets(texts: Mapping[str, str], query: WordQuery | None) -> dict[str, str]:
    """A snippet of every text: escaped HTML with `<mark>` around each word of the query.

    One statement, since only the database knows that `running` is found by `run`. Without a
    query, or where nothing fits it, the beginning of the text.
    """
    words = {key: list(_WORD.finditer(text[:MAX_CHARACTERS])) for key, text in texts.items()}
    distinct = {word[0] for found in words.values() for word in found}
    matching = (
        _find_matching_words(sorted(distinct), query) if query and query.terms else frozenset()
    )
    return {
        key: _build_snippet(text, [word for word in words[key] if word[0] in matching])
        for key, text in texts.items()
    }


def _find_matching_words(words: Sequence[str], query: WordQuery) -> frozenset[str]:
    lexemes = " | ".join(sorted({lexeme for term in query.terms for lexeme in _lexemes(term)}))
    found = sql.fetch_all(
        """SELECT word FROM unnest(%s::text[]) AS word
        WHERE mastra_memory_words(%s::regconfig, word) @@ %s::tsquery""",
        [list(words), conf.app_settings().SEARCH_LANGUAGE, lexemes],
    )
    return frozenset(word for (word,) in found)


def _lexemes(term: str) -> list[str]:
    return re.findall(r"'(?:[^']|'')*'", term)


def _build_snippet(text: str, marked: Sequence[re.Match[str]]) -> str:
    start = _find_best_start(text, marked)
    end = _find_word_boundary(text, start + SNIPPET_CHARACTERS)
    shown = ["… " if start else ""]
    at = start
    for word in marked:
        if word.start() >= start and word.end() <= end:
            shown += [html.escape(text[at : word.start()], quote=False), "<mark>"]
            shown += [html.escape(word[0], quote=False), "</mark>"]
            at = word.end()
    shown += [html.escape(text[at:end], quote=False), " …" if end < len(text) else ""]
    return "".join(shown).replace("</mark><mark>", "")


def _find_best_start(text: str, marked: Sequence[re.Match[str]]) -> int:
    """Where a snippet shows the most different words of the query, a little before the first."""
    if not marked or len(text) <= SNIPPET_CHARACTERS or marked[-1].end() <= SNIPPET_CHARACTERS:
        return 0

    def variety(first: int) -> int:
        limit = marked[first].start() + SNIPPET_CHARACTERS * 3 // 4
        near = (word for word in marked[first : first + 24] if word.end() <= limit)
        return len({word[0].lower() for word in near})

    best = max(range(len(marked)), key=lambda first: (variety(first), -first))
    return _find_word_boundary(text, max(0, marked[best].start() - SNIPPET_CHARACTERS // 4))


def _find_word_boundary(text: str, at: int) -> int:
    """The nearest place at or after `at` that does not cut a word, unless the word is endless."""
    if at <= 0 or at >= len(text):
        return max(0, min(at, len(text)))
    space = re.compile(r"\s").search(text, at, at + 40)
    return space.end() if space else at
