"""Messages of the time that a query names are preferred."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from django.utils import timezone as django_timezone

from mastra_memory.embedding import indexing
from mastra_memory.memory import Memory
from mastra_memory.options import TimeOptions
from mastra_memory.search.times import boost
from mastra_memory.search.types import ScoredMessage
from mastra_memory.testing import FakeEmbedder
from mastra_memory.types import MessagePage, SearchResult, TimeRange
from tests.conftest import Statements
from tests.support.factories import a_message, make_thread, moment

DAY = 86_400
NOW = "2024-02-10T12:00:00Z"
FEBRUARY = TimeRange("February", moment(31 * DAY), moment(60 * DAY))


def scored(*values: tuple[str, float, float]) -> list[ScoredMessage]:
    """Messages with an id, a day of 2024 and a score."""
    return [
        ScoredMessage(key, moment(day * DAY).timestamp(), number, score)
        for number, (key, day, score) in enumerate(values)
    ]


def test_boost_matches__a_good_match_of_the_time_is_first() -> None:
    matches = scored(("january", 3, 1.0), ("february", 33, 0.6), ("weak", 34, 0.1))
    boosted = boost.boost_matches(matches, [FEBRUARY])
    assert [match.id for match in boosted] == ["february", "january", "weak"]
    assert boosted[0].score == 1.0


def test_boost_matches__equal_scores_and_no_range() -> None:
    matches = scored(("february", 33, 0.5), ("march", 70, 0.5))
    assert [m.id for m in boost.boost_matches(matches, [FEBRUARY])] == ["february", "march"]
    assert boost.boost_matches(matches, []) == sorted(matches, key=lambda m: -m.created)
    assert boost.boost_matches([], [FEBRUARY]) == []
    unrelated = scored(("february", 33, 0.0), ("march", 70, 0.0))
    assert [m.id for m in boost.boost_matches(unrelated, [FEBRUARY])] == ["february", "march"]


def test_interpret_time__now_without_offset_is_in_the_zone() -> None:
    options = TimeOptions(now=datetime(2024, 2, 10), zone=timezone(timedelta(hours=2)))
    (found,) = boost.interpret_time("yesterday", options)
    assert found.start == datetime(2024, 2, 8, 22, tzinfo=UTC)
    assert boost.interpret_time("yesterday", None) == []


def test_interpret_time__without_a_zone_uses_the_current_one() -> None:
    options = TimeOptions(now=datetime(2024, 2, 10, 3, tzinfo=UTC))
    with django_timezone.override("America/New_York"):
        (found,) = boost.interpret_time("today", options)
    assert found.start == datetime(2024, 2, 9, 5, tzinfo=UTC)


def test_interpret_time__uses_the_languages_of_the_settings(memory_settings: Any) -> None:
    options = TimeOptions(now=datetime(2024, 2, 10, tzinfo=UTC))
    for languages, count in (((), 0), (("it",), 0), (("it", "en"), 1)):
        memory_settings(SEARCH_TIME_LANGUAGES=languages)
        assert len(boost.interpret_time("last week", options)) == count


@pytest.fixture
def embedder(db: None, memory_settings: Any) -> Iterator[FakeEmbedder]:
    """The same sentence on each of 40 days of 2024, in two threads of alice."""
    memory_settings()
    with FakeEmbedder(dimensions=256) as fake:
        memory = Memory(options={"semanticRecall": True})
        for thread_id, days in (("early", range(20)), ("late", range(20, 40))):
            thread = make_thread("alice", thread_id)
            memory.save_messages(
                [a_message(thread, f"d{n}", text="the price of tea", at=n * DAY) for n in days]
            )
        embed_all()
        yield fake


def embed_all() -> None:
    """Create all vectors. A search would create only some of them."""
    indexing.embed_pending(seconds=60)


def search(query: str, **time: Any) -> SearchResult:
    """The five best results of a hybrid search that is asked on February 10."""
    options = {"semanticRecall": {"time": {"now": NOW, "timeZone": "UTC"} | time}}
    return Memory(options=options).search(query, resource_id="alice", search_type="hybrid", limit=5)


WEEK = {"d28", "d29", "d30", "d31", "d32", "d33", "d34"}
"""January 29 to February 4, the week before February 10."""


@pytest.mark.usefixtures("embedder")
@pytest.mark.parametrize("search_type", ["text", "semantic", "hybrid"])
def test_search__prefers_the_time_of_the_query(search_type: Any) -> None:
    memory = Memory(options={"semanticRecall": {"time": {"now": NOW, "timeZone": "UTC"}}})
    found = memory.search(
        "price of tea last week", resource_id="alice", search_type=search_type, limit=7
    )
    assert {hit.id for hit in found.results} == WEEK
    (interpreted,) = found.interpreted_time
    assert (interpreted.text, interpreted.start, interpreted.end) == (
        "last week",
        datetime(2024, 1, 29, tzinfo=UTC),
        datetime(2024, 2, 5, tzinfo=UTC),
    )
    scores = [hit.score or 0 for hit in found.results]
    assert scores == sorted(scores, reverse=True) and 0 < scores[0]


@pytest.mark.usefixtures("embedder")
def test_search__time_can_be_turned_off() -> None:
    assert {hit.id for hit in search("tea last week").results} <= WEEK
    for off in (False, {"enabled": False, "now": NOW}):
        memory = Memory(options={"semantic_recall": {"time": off}})
        found = memory.search("tea last week", resource_id="alice", search_type="hybrid", limit=5)
        assert not found.interpreted_time
        assert not {hit.id for hit in found.results} <= WEEK


@pytest.mark.usefixtures("embedder")
@pytest.mark.parametrize("mode", ["vector", "hybrid"])
def test_recall__prefers_the_time_of_the_query(mode: str) -> None:
    def recall(time: Any) -> MessagePage:
        recall_options = {"topK": 4, "messageRange": 0, "mode": mode, "time": time}
        return Memory(options={"semanticRecall": recall_options}).recall(
            "late", resource_id="alice", per_page=0, vector_search_string="le thé il y a 2 semaines"
        )

    page = recall({"now": "2024-02-17T12:00:00Z", "timeZone": "UTC"})
    assert {message.id for message in page.messages} <= WEEK
    assert [item.text for item in page.interpreted_time] == ["il y a 2 semaines"]
    assert not recall(False).interpreted_time


@pytest.mark.usefixtures("embedder")
def test_search__finds_the_time_in_a_long_scope() -> None:
    thread = make_thread("alice", "noise")
    memory = Memory(options={"semanticRecall": True})
    texts = ["the price of green tea", "tea, tea and tea"]
    memory.save_messages(
        [a_message(thread, f"n{n}", text=texts[n % 2], at=(100 + n) * DAY) for n in range(600)]
    )
    embed_all()
    for search_type in ("text", "semantic", "hybrid"):
        options = {"semanticRecall": {"time": {"now": NOW, "timeZone": "UTC"}}}
        found = Memory(options=options).search(
            "price of tea last week", resource_id="alice", search_type=search_type, limit=5
        )
        assert {hit.id for hit in found.results} <= WEEK


@pytest.mark.usefixtures("embedder")
def test_search__a_filter_holds_for_the_time_too() -> None:
    options = {"semanticRecall": {"time": {"now": NOW}, "filter": {"message_id": "d3"}}}
    for search_type in ("text", "semantic", "hybrid"):
        found = Memory(options=options).search(
            "price of tea last week", resource_id="alice", search_type=search_type
        )
        assert [hit.id for hit in found.results] == ["d3"]


@pytest.mark.usefixtures("embedder")
def test_search__time_costs_few_statements(statements: Statements) -> None:
    counts = []
    for query in ("price of tea", "price of tea last week"):
        search(query)
        with statements() as sent:
            search(query)
        counts.append(len(sent))
    assert counts[1] - counts[0] <= 2
