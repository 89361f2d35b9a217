"""Cutting texts between grapheme clusters."""

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from mastra_memory.content import truncation


@pytest.mark.parametrize(
    ("text", "end", "boundary"),
    [
        ("abc", 2, 2),
        ("abc", 3, 3),
        ("abc", 9, 3),
        ("e\u0301e\u0301", 3, 2),
        ("\U0001f1eb\U0001f1f7\U0001f1e9\U0001f1ea", 3, 2),
        ("a\r\nb", 2, 1),
        ("\u0e01\u0e33", 1, 0),
    ],
    ids=["letters", "end", "past the end", "accents", "flags", "CR LF", "Thai vowel"],
)
def test_find_boundary__does_not_split_a_cluster(text: str, end: int, boundary: int) -> None:
    assert truncation.find_boundary(text, end) == boundary


def test_find_boundary__is_the_start_if_one_cluster_is_too_long() -> None:
    assert truncation.find_boundary("ab" + "e" + "\u0301" * 50, 20, start=2) == 2


CHARACTERS = st.sampled_from("ab \r\n\u0301\u200d\ufe0f\U0001f1eb\U0001f3fd\U0001f469\u0e33\u0600")


@given(st.text(CHARACTERS, max_size=30), st.integers(0, 30))
@example("\u0600a", 1)
def test_find_boundary__agrees_with_a_scan_of_the_whole_text(text: str, end: int) -> None:
    boundaries = [0, *(cluster.end() for cluster in regex.finditer(r"\X", text))]
    expected = max(boundary for boundary in boundaries if boundary <= end)
    assert truncation.find_boundary(text, end) == expected
