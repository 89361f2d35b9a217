"""Found messages with their neighbours."""

import pytest

from mastra_memory.memory import Memory
from mastra_memory.search import hits, queries
from tests.support.factories import a_message, make_thread


@pytest.mark.django_db
def test_read_hits__cuts_huge_texts() -> None:
    thread = make_thread("r", "t")
    huge = "word " * (queries.MAX_TEXT_CHARACTERS // 2)
    Memory().save_messages([a_message(thread, f"m{n}", text=huge, at=n) for n in range(3)])
    (hit,) = hits.read_hits(["m1"])
    assert hit.context is not None
    neighbours = [*hit.context.before, *hit.context.after]
    assert [one.id for one in neighbours] == ["m0", "m2"]
    assert {len(text) for text in [hit.text, *(one.text for one in neighbours)]} == {
        queries.MAX_TEXT_CHARACTERS
    }
