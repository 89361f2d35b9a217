"""Cleaning the title in a model's answer."""

import pytest

from mastra_memory.content.truncation import truncate_at_word
from mastra_memory.llm.titles import MAX_LENGTH, clean_title


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ("Trip plan", "Trip plan"),
        ('"Hi there"', "Hi there"),
        ("'Hi there'", "Hi there"),
        ("„Reise nach Rom“", "Reise nach Rom"),
        ("«Voyage à Rome»", "Voyage à Rome"),
        ("「ローマ旅行」", "ローマ旅行"),
        ("**Trip plan**", "Trip plan"),
        ("`Trip plan`", "Trip plan"),
        ("# Trip plan", "Trip plan"),
        ("- Trip plan", "Trip plan"),
        ("<think>x</think>Trip plan", "Trip plan"),
        ("<thinking>\nlong\n</thinking>\n\nTrip plan", "Trip plan"),
        ("so it is</think>Trip plan", "Trip plan"),
        ("<think>never ends", ""),
        ("Title: X", "X"),
        ("**Title:** Trip plan", "Trip plan"),
        ('Title: "Trip plan"', "Trip plan"),
        ("The title is: Trip plan", "Trip plan"),
        ("Suggested title - Trip plan", "Trip plan"),
        ("Here is one:\nTrip plan", "Trip plan"),
        ("Trip plan\n\nI chose it because it is short.", "Trip plan"),
        ("  Trip\t plan.  ", "Trip plan"),
        ("The user wants to plan a trip to Rome", "Plan a trip to Rome"),
        ("The user is asking about refunds", "Refunds"),
        ('Say "cheese" and "wine"', 'Say "cheese" and "wine"'),
        ("To be continued...", "To be continued..."),
        ("Titles of nobility", "Titles of nobility"),
        ("```\nTrip plan\n```", "Trip plan"),
        ("```text\nTrip plan\n```", "Trip plan"),
        ("# Title\n\nTrip plan", "Trip plan"),
        ("Here is a title for the conversation: Trip plan", "Trip plan"),
        ("Here's your title: Trip plan", "Trip plan"),
        ('The title is "Trip plan"', "Trip plan"),
        ("The title is lost", "The title is lost"),
        ("Trip\u202e plan\u200b\x07", "Trip plan"),
        ("🎉", "🎉"),
        ("\u200b\u2060", ""),
        ("...", ""),
        ("", ""),
        (' "" ', ""),
    ],
)
def test_clean_title__returns_only_the_title(answer: str, title: str) -> None:
    assert clean_title(answer) == title


def test_clean_title__is_cut_at_a_word() -> None:
    title = clean_title("word " * 80)
    assert len(title) <= MAX_LENGTH
    assert title.endswith("word…")


@pytest.mark.parametrize("unit", ["x", "é", "👩‍👩‍👧‍👦", "👍🏽", "한", "❤️", "🇫🇷", "กำ", "각", "🏴󠁧󠁢󠁥󠁮󠁧󠁿"])
def test_truncate_at_word__does_not_split_a_character(unit: str) -> None:
    for lead in range(6):
        cut = truncate_at_word("a" * lead + unit * 100, 60)
        assert len(cut) <= 60
        rest = cut[lead:].removesuffix("…")
        assert rest == unit * (len(rest) // len(unit))


def test_truncate_at_word__leaves_short_texts_alone() -> None:
    assert truncate_at_word("Trip", 4) == "Trip"
