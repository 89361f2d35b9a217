"""What a person typed into a search box: loose words, "phrases", and -words to leave out."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mastra_memory import conf
from mastra_memory.db import json_text, sql

MAX_CHARACTERS = 4_000
MAX_TERMS = 48
"""Terms that count; a longer query is a text of its own and its first words say enough."""

_TOKEN = re.compile(r'(?P<minus>(?<!\S)-)?(?:"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+))')
_OPERATORS = re.compile(r'"|(?<!\S)-+')
_LEXEME = re.compile(r"'(?:[^']|'')*'")

# Scripts written without spaces: their runs are looked up pair by pair.
UNSPACED = (
    r"[\u0e00-\u0edf\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    r"\uf900-\ufaff\U00020000-\U0003ffff]"
)
_UNSPACED_RUN = re.compile(UNSPACED + "+")


@dataclass(frozen=True, slots=True)
class WordQuery:
    """A query in the database's terms; each is a `tsquery` as text."""

    terms: Sequence[str]
    """Any of them makes a message a candidate; all of them count for its rank."""
    required: Sequence[str]
    """Phrases; every one must be there."""
    excluded: Sequence[str]

    @property
    def filter(self) -> str | None:
        """What a message must match; None when nothing is asked for."""
        if not self.terms:
            return None
        any_term = " | ".join(f"({term})" for term in self.terms)
        return " & ".join(filter(None, [f"({any_term})", self.demand]))

    @property
    def demand(self) -> str | None:
        """What a message must match however it was found; None when nothing is demanded."""
        parts = [f"({part})" for part in self.required] + [f"!({x})" for x in self.excluded]
        return " & ".join(parts) or None

    def as_prefixes(self) -> "WordQuery":
        """The same for texts whose words are not reduced to their stems: stems as prefixes."""
        return WordQuery(*map(_to_prefixes, (self.terms, self.required, self.excluded)))


def is_phrase(term: str) -> bool:
    """Whether a term is more than one word."""
    return len(_LEXEME.findall(term)) > 1


def _to_prefixes(queries: Sequence[str]) -> list[str]:
    return [_LEXEME.sub(lambda found: found[0] + ":*", query) for query in queries]


def parse_query(text: str, *, parse_operators: bool = True) -> WordQuery:
    """Split the text and reduce its words to stems, in one statement.

    Without `with_syntax` quotes and minus signs are no more than that: in what somebody wrote to
    somebody else they demand nothing.
    """
    text = json_text.clean_text(text[:MAX_CHARACTERS])
    words, soft, required, excluded = _split_query(
        text if parse_operators else _OPERATORS.sub(" ", text)
    )
    language = conf.app_settings().SEARCH_LANGUAGE
    found = sql.fetch_one(
        """SELECT ARRAY(SELECT lexeme FROM unnest(mastra_memory_words(language, %s))
                ORDER BY positions[1]),
            ARRAY(SELECT mastra_memory_phrase(language, p)::text FROM unnest(%s::text[]) p),
            ARRAY(SELECT mastra_memory_phrase(language, p)::text FROM unnest(%s::text[]) p),
            ARRAY(SELECT mastra_memory_phrase(language, p)::text FROM unnest(%s::text[]) p)
        FROM (SELECT %s::regconfig AS language) AS chosen""",
        [" ".join(words), soft, required, excluded, language],
    )
    assert found is not None
    lexemes, soft, required, excluded = found
    single = ["'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'" for lexeme in lexemes]
    required = [phrase for phrase in required if phrase]
    terms = dict.fromkeys([*required, *single, *filter(None, soft)])
    return WordQuery(list(terms)[:MAX_TERMS], required, [phrase for phrase in excluded if phrase])


def _split_query(text: str) -> tuple[list[str], list[str], list[str], list[str]]:
    words: list[str] = []
    pairs: list[str] = []
    required: list[str] = []
    excluded: list[str] = []
    for piece in _TOKEN.finditer(text):
        said = piece["phrase"] if piece["phrase"] is not None else piece["word"]
        if piece["minus"]:
            excluded.append(said)
        elif piece["phrase"] is not None:
            required.append(said)
        else:
            words.append(_UNSPACED_RUN.sub(" ", said))
            pairs += [pair for run in _UNSPACED_RUN.findall(said) for pair in _make_bigrams(run)]
    return words, pairs, required, excluded


def _make_bigrams(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(max(len(run) - 1, 1))]
