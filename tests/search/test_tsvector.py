"""Searchable words: at once for a small save, soon after a large one, never missed by a search."""

from typing import Any

import pytest

from mastra_memory.db import sql
from mastra_memory.memory import Memory
from mastra_memory.models import Message
from mastra_memory.search import tsvector
from tests.support.factories import a_message, make_thread, save

pytestmark = pytest.mark.django_db


def pending() -> int:
    return Message.objects.filter(search__isnull=True).count()


def save_texts(resource_id: str, count: int) -> None:
    thread = make_thread(resource_id)
    save([a_message(thread, text=f"lighthouse number {n}") for n in range(count)])


def found(resource_id: str) -> int:
    return Memory().search("lighthouse", resource_id=resource_id, search_type="text").count


@pytest.mark.parametrize(
    ("count", "left"),
    [
        (tsvector.MAX_MESSAGES_ON_SAVE, 0),
        (tsvector.MAX_MESSAGES_ON_SAVE + 1, tsvector.MAX_MESSAGES_ON_SAVE + 1),
    ],
)
def test_save__leaves_the_words_of_a_large_batch_to_later(count: int, left: int) -> None:
    save_texts("r", count)
    assert pending() == left


def test_search__finds_what_a_large_save_has_just_stored() -> None:
    save_texts("r", 15)
    save_texts("other", 15)
    assert found("r") == 15
    assert pending() == 15  # another resource's are none of this search's business


def test_index_pending_words__takes_the_newest_up_to_its_limit() -> None:
    save_texts("r", 15)
    assert tsvector.index_pending_words(limit=4) == 4
    assert tsvector.index_pending_words() == 11
    assert tsvector.index_pending_words() == 0


def test_index_pending_words__is_found_by_an_index_of_its_own(
    django_assert_num_queries: Any,
) -> None:
    save_texts("r", 15)
    with django_assert_num_queries(5):  # list, lock, write, and two for the transaction
        tsvector.index_pending_words()
    with django_assert_num_queries(1):
        tsvector.index_pending_words()
    sql.execute("SET LOCAL enable_seqscan = off")
    plan = sql.fetch_all(
        "EXPLAIN SELECT id FROM mastra_memory_message WHERE search IS NULL AND resource_id = 'r'"
    )
    assert any("mastra_message_wordless" in line for (line,) in plan)
