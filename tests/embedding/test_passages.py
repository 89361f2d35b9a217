"""Cutting texts into passages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mastra_memory.embedding import passages


@pytest.mark.parametrize("text", ["", "   ", "\n\t\n", "data:image/png;base64,AAAA/BBBB=="])
def test_split_into_passages__nothing_to_say_has_no_passage(text: str) -> None:
    assert passages.split_into_passages(text, 100) == []


def test_split_into_passages__a_text_that_fits_is_one_passage() -> None:
    assert passages.split_into_passages("  Hello there.  How are you? ", 100) == [
        "Hello there.  How are you?"
    ]


def test_split_into_passages__between_paragraphs_first() -> None:
    text = "One sentence. And one more.\n\nA new thought begins here"
    assert passages.split_into_passages(text, 40) == [
        "One sentence. And one more.",
        "A new thought begins here",
    ]


def test_split_into_passages__between_sentences_else() -> None:
    text = "This is a test! Another one? Yes, it is. The end"
    assert passages.split_into_passages(text, 32) == [
        "This is a test! Another one?",
        "Yes, it is. The end",
    ]


def test_split_into_passages__between_words_else() -> None:
    assert passages.split_into_passages("aaa bbb ccc ddd", 8) == ["aaa bbb", "ccc ddd"]


def test_split_into_passages__within_a_word_where_nothing_else_is_left() -> None:
    assert passages.split_into_passages("abcdefghijklmno pq", 10) == ["abcdefghij", "klmno pq"]


def test_split_into_passages__one_word_of_a_hundred_thousand_letters() -> None:
    found = passages.split_into_passages("x" * 100_000, 1_600)
    assert "".join(found) == "x" * 100_000
    assert len(found) == 63


def test_split_into_passages__chinese_sentences() -> None:
    found = passages.split_into_passages("今天天气很好。我们去公园。然后回家吃饭。", 30)
    assert found == ["今天天气很好。", "我们去公园。", "然后回家吃饭。"]


@pytest.mark.parametrize("sign", ["👩‍👩‍👧‍👦", "👍🏽", "é", "❤️", "नि", "🇫🇷", "กำ", "각", "क्षि"])
def test_split_into_passages__signs_made_of_several_stay_whole(sign: str) -> None:
    found = passages.split_into_passages(sign * 40, len(sign.encode()) * 3 + 1)
    assert "".join(found) == sign * 40
    assert all(passage.count(sign) * len(sign) == len(passage) for passage in found)


def test_split_into_passages__base64_is_left_out() -> None:
    text = f"Look: data:image/png;charset=x;base64,{'QUJD' * 50_000} isn't it nice?"
    assert passages.split_into_passages(text, 100) == ["Look:   isn't it nice?"]


def test_split_into_passages__megabytes_end_somewhere() -> None:
    assert len(passages.split_into_passages("word " * 1_000_000, 400)) == passages.MAX_PASSAGES


@given(st.text(max_size=400), st.integers(min_value=8, max_value=60))
def test_split_into_passages__nothing_is_lost_and_nothing_is_too_long(
    text: str, limit: int
) -> None:
    found = passages.split_into_passages(text, limit)
    assert all(len(passage.encode()) <= limit and passage.strip() for passage in found)
    assert "".join("".join(found).split()) == "".join(text.split())
