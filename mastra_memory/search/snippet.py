"""The part of a message that shows why it was found, its words marked."""

import html
import re
from collections.abc import Mapping, Sequence

from mastra_memory import conf
from mastra_memory.db import sql
from mastra_memory.search.query import UNSPACED, WordQuery

LENGTH = 220
"""About how many characters of a message a snippet shows."""
MAX_CHARACTERS = 100_000
"""What lies beyond is not indexed either."""

_WORD = re.compile(rf"{UNSPACED}|(?:(?!{UNSPACED})[^\W_])+")


def mark(texts: Mapping[str, str], query: WordQuery | None) -> dict[str, str]:
    """A snippet of every text: escaped HTML with `<mark>` around each word of the query.

    One statement, since only the database knows that `running` is found by `run`. Without a
    query, or where nothing fits it, the beginning of the text.
    """
    words = {key: list(_WORD.finditer(text[:MAX_CHARACTERS])) for key, text in texts.items()}
    distinct = {word[0] for found in words.values() for word in found}
    matching = _matching(sorted(distinct), query) if query and query.terms else frozenset()
    return {
        key: _snippet(text, [word for word in words[key] if word[0] in matching])
        for key, text in texts.items()
    }


def _matching(words: Sequence[str], query: WordQuery) -> frozenset[str]:
    lexemes = " | ".join(sorted({lexeme for term in query.terms for lexeme in _lexemes(term)}))
    found = sql.rows(
        """SELECT word FROM unnest(%s::text[]) AS word
        WHERE mastra_memory_words(%s::regconfig, word) @@ %s::tsquery""",
        [list(words), conf.app_settings().SEARCH_LANGUAGE, lexemes],
    )
    return frozenset(word for (word,) in found)


def _lexemes(term: str) -> list[str]:
    return re.findall(r"'(?:[^']|'')*'", term)


def _snippet(text: str, marked: Sequence[re.Match[str]]) -> str:
    start = _best_start(text, marked)
    end = _cut(text, start + LENGTH)
    shown = ["… " if start else ""]
    at = start
    for word in marked:
        if word.start() >= start and word.end() <= end:
            shown += [html.escape(text[at : word.start()], quote=False), "<mark>"]
            shown += [html.escape(word[0], quote=False), "</mark>"]
            at = word.end()
    shown += [html.escape(text[at:end], quote=False), " …" if end < len(text) else ""]
    return "".join(shown).replace("</mark><mark>", "")


def _best_start(text: str, marked: Sequence[re.Match[str]]) -> int:
    """Where a snippet shows the most different words of the query, a little before the first."""
    if not marked or len(text) <= LENGTH or marked[-1].end() <= LENGTH:
        return 0

    def variety(first: int) -> int:
        limit = marked[first].start() + LENGTH * 3 // 4
        near = (word for word in marked[first : first + 24] if word.end() <= limit)
        return len({word[0].lower() for word in near})

    best = max(range(len(marked)), key=lambda first: (variety(first), -first))
    return _cut(text, max(0, marked[best].start() - LENGTH // 4))


def _cut(text: str, at: int) -> int:
    """The nearest place at or after `at` that does not cut a word, unless the word is endless."""
    if at <= 0 or at >= len(text):
        return max(0, min(at, len(text)))
    space = re.compile(r"\s").search(text, at, at + 40)
    return space.end() if space else at
