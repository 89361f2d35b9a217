"""The part of a text that shows why it was found."""

import pytest

from mastra_memory.search import query, snippet
from tests.conftest import Statements

pytestmark = pytest.mark.django_db


def marked(text: str, words: str) -> str:
    """The snippet of one text."""
    return snippet.highlight_snippets({"m": text}, query.parse_query(words))["m"]


def test_highlight_snippets__every_form_of_a_word_is_marked() -> None:
    assert marked("Running? I run.", "runs") == "<mark>Running</mark>? I <mark>run</mark>."


def test_highlight_snippets__accents_are_kept_and_ignored() -> None:
    assert marked("Un été à Zürich", "ete zurich") == "Un <mark>été</mark> à <mark>Zürich</mark>"


def test_highlight_snippets__text_is_escaped() -> None:
    shown = marked("<script>alert('x')</script> & fox", "fox")
    assert shown == "&lt;script&gt;alert('x')&lt;/script&gt; &amp; <mark>fox</mark>"
    assert marked("<mark>fox</mark>", "fox") == "&lt;mark&gt;<mark>fox</mark>&lt;/mark&gt;"


def test_highlight_snippets__a_long_text_is_cut_around_what_was_found() -> None:
    text = "word " * 200 + "here the submarine dives under the ice " + "word " * 200
    shown = marked(text, "submarine ice")
    assert shown.startswith("… ") and shown.endswith(" …")
    assert "<mark>submarine</mark> dives under the <mark>ice</mark>" in shown
    assert len(shown) < 300


def test_highlight_snippets__the_place_with_most_different_words_is_shown() -> None:
    text = "tea " * 30 + "x " * 200 + "tea with milk and honey"
    assert "<mark>tea</mark> with <mark>milk</mark>" in marked(text, "tea milk honey")


def test_highlight_snippets__without_words_the_beginning_is_shown() -> None:
    assert snippet.highlight_snippets({"m": "a < b " * 100}, None)["m"].startswith("a &lt; b a")
    assert snippet.highlight_snippets({"m": ""}, None) == {"m": ""}


def test_highlight_snippets__one_endless_word() -> None:
    shown = marked("x" * 100_000, "y")
    assert shown == "x" * snippet.SNIPPET_CHARACTERS + " …"


def test_highlight_snippets__runs_of_chinese_are_marked_as_one() -> None:
    assert marked("我们去公园玩", "公园") == "我们去<mark>公园</mark>玩"


def test_highlight_snippets__one_statement_for_all(statements: Statements) -> None:
    words = query.parse_query("tea")
    with statements() as sent:
        snippet.highlight_snippets({f"m{n}": f"tea {n}" for n in range(20)}, words)
    assert len(sent) == 1
