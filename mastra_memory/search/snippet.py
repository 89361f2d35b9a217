"""Snippets: the part of a message that contains the query's words, with these highlighted."""

import html
import re
from collections.abc import Mapping, Sequence

from mastra_memory import conf
from mastra_memory.db import sql
from mastra_memory.search.query import LEXEME, UNSPACED, WordQuery

SNIPPET_CHARACTERS = 220
"""About how many characters of a message a snippet shows."""
MAX_CHARACTERS = 100_000
"""Only so much of a message is indexed, so only so much is searched for words."""

_WORD = re.compile(rf"{UNSPACED}|(?:(?!{UNSPACED})[^\W_])+")


def highlight_snippets(texts: Mapping[str, str], query: WordQuery | None) -> dict[str, str]:
    """Return a snippet of each text, by the same keys.

    A snippet is escaped HTML with `<mark>` around each word of the query. It is the beginning of
    the text if there is no query, or if the text contains none of its words. One statement finds
    the words of all texts, since only PostgreSQL can tell that `running` matches `run`.
    """
    words = {key: list(_WORD.finditer(text[:MAX_CHARACTERS])) for key, text in texts.items()}
    distinct = {word[0] for matches in words.values() for word in matches}
    matching = (
        _find_matching_words(sorted(distinct), query) if query and query.terms else frozenset()
    )
    return {
        key: _build_snippet(text, [word for word in words[key] if word[0] in matching])
        for key, text in texts.items()
    }


def _find_matching_words(words: Sequence[str], query: WordQuery) -> frozenset[str]:
    lexemes = " | ".join(
        sorted({lexeme for term in query.terms for lexeme in LEXEME.findall(term)})
    )
    rows = sql.fetch_all(
        """SELECT word FROM unnest(%s::text[]) AS word
        WHERE mastra_memory_words(%s::regconfig, word) @@ %s::tsquery""",
        [list(words), conf.app_settings().SEARCH_LANGUAGE, lexemes],
    )
    return frozenset(word for (word,) in rows)


def _build_snippet(text: str, marked: Sequence[re.Match[str]]) -> str:
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
    # Characters of unspaced scripts are words of their own; mark a run of them as one.
    return "".join(parts).replace("</mark><mark>", "")


def _find_best_start(text: str, marked: Sequence[re.Match[str]]) -> int:
    """Return where to start so that the snippet shows the most different words of the query.

    It starts a little before the first of them, or at the beginning if all words fit then.
    """
    if not marked or len(text) <= SNIPPET_CHARACTERS or marked[-1].end() <= SNIPPET_CHARACTERS:
        return 0

    def count_different(first: int) -> int:
        end = marked[first].start() + SNIPPET_CHARACTERS * 3 // 4
        # 24 words are enough to compare; a text of nothing but matches would take long.
        near = (word for word in marked[first : first + 24] if word.end() <= end)
        return len({word[0].lower() for word in near})

    best = max(range(len(marked)), key=lambda first: (count_different(first), -first))
    return _find_word_boundary(text, max(0, marked[best].start() - SNIPPET_CHARACTERS // 4))


def _find_word_boundary(text: str, position: int) -> int:
    """Return the nearest position from `position` on that does not cut a word.

    A word that goes on for 40 characters is cut.
    """
    if position <= 0 or position >= len(text):
        return max(0, min(position, len(text)))
    space = re.compile(r"\s").search(text, position, position + 40)
    return space.end() if space else position
