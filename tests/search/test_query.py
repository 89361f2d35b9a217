"""What a search box understands."""

import pytest

from mastra_memory.search import query
from mastra_memory.search.query import MAX_TERMS

pytestmark = pytest.mark.django_db


def test_parse_query__words_become_stems_in_their_order() -> None:
    found = query.parse_query("Running zebras, the APPLES")
    assert list(found.terms) == ["'run'", "'zebra'", "'appl'"]
    assert (found.required, found.excluded) == ([], [])


def test_parse_query__a_phrase_is_required_and_counts_as_one_term() -> None:
    found = query.parse_query('tea "red fox"')
    assert found.required == ["'red' <-> 'fox'"]
    assert list(found.terms) == ["'red' <-> 'fox'", "'tea'"]


def test_parse_query__minus_excludes_a_word_or_a_phrase() -> None:
    found = query.parse_query('fox -hound -"blue whale" well-known - 5-3')
    assert found.excluded == ["'hound'", "'blue' <-> 'whale'"]
    assert "'fox'" in found.terms


def test_parse_query__accents_are_ignored() -> None:
    assert list(query.parse_query("Été à Zürich").terms) == ["'ete'", "'zurich'"]


def test_parse_query__scripts_without_spaces_are_read_in_pairs() -> None:
    assert list(query.parse_query("天气好").terms) == ["'天' <-> '气'", "'气' <-> '好'"]
    assert list(query.parse_query("天").terms) == ["'天'"]


@pytest.mark.parametrize("text", ["", "   ", "the of and", "-only", '""', "'", "\\", "!&|()"])
def test_parse_query__nothing_to_look_for(text: str) -> None:
    assert query.parse_query(text).filter is None


@pytest.mark.parametrize(
    "text", ["it's \\ 'quoted'", "a:* b & !c <-> d", "%s %% $1", "x'); --", "\x00"]
)
def test_parse_query__signs_of_the_database_are_just_text(text: str) -> None:
    found = query.parse_query(f"{text} apple")
    assert "'appl'" in found.terms


def test_parse_query__a_long_text_is_looked_for_by_its_first_words() -> None:
    found = query.parse_query(" ".join(f"word{n}" for n in range(1_000)))
    assert len(found.terms) == MAX_TERMS
    assert found.terms[0] == "'word0'"
