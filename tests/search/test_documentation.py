"""The example of docs/search.md."""

import re
from pathlib import Path

import pytest

from mastra_memory.search import fusion, tsvector
from mastra_memory.search.types import ScoredMessage
from tests.support.factories import a_message, make_thread, moment, save

PAGE = Path(__file__).resolve().parents[2] / "docs" / "search.md"


def read_rows(first_cell: str) -> list[list[str]]:
    """The cells of the table rows that start with this text."""
    lines = PAGE.read_text().splitlines()
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines
        if re.match(rf"\| {first_cell}", line)
    ]


@pytest.mark.django_db
def test_search_page__the_scores_of_the_example_are_right() -> None:
    words, vectors = [], []
    threads = {key: make_thread("alice", key) for key in "tu"}
    for number, (key, thread, text, by_words, by_vectors) in enumerate(read_rows("(?:m|u)[0-9] ")):
        save([a_message(threads[thread], key, text=text, at=number)])
        created = moment(number).timestamp()
        if by_words:
            words.append(ScoredMessage(key, created, number, float(by_words)))
            vectors.append(ScoredMessage(key, created, number, float(by_vectors)))
    tsvector.index_pending_words()
    found = {item.id: item.score for item in fusion.fuse_scores(words, vectors, limit=10)}
    (header,) = read_rows("Step ")
    (totals,) = read_rows("Divided by")
    assert header[1:] == ["m1", "m2", "m3", "u1"] and "4.76" in totals[0]
    assert fusion.MAX_SCORE == pytest.approx(4.76)
    assert [f"{found[key]:.3f}" for key in header[1:]] == totals[1:]
