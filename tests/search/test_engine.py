"""A search by words, by meaning, or by both."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction

from mastra_memory.db import sql
from mastra_memory.embedding import embedder, indexing
from mastra_memory.exceptions import (
    EmbedderMismatch,
    MastraMemoryError,
    ProviderRefused,
    ProviderUnavailable,
)
from mastra_memory.memory import Memory
from mastra_memory.models import Message
from mastra_memory.search import engine
from mastra_memory.search.scope import SearchScope
from mastra_memory.search.types import SearchRequest, SearchType
from mastra_memory.testing import FakeEmbedder
from tests.support.factories import a_message, make_thread

pytestmark = pytest.mark.django_db
ALICE = SearchScope(resource_id="alice")
TEXTS = ["green tea", "hot tea with milk", "green leaves", "nothing to drink", "milk of green cows"]


@pytest.fixture(autouse=True)
def model(memory_settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeEmbedder]:
    """A fake that makes all vectors and is tried once; messages `t0` … of alice."""
    memory_settings()
    monkeypatch.setattr(embedder, "RETRY_DELAYS_SECONDS", ())
    with FakeEmbedder(dimensions=256) as fake:
        say("t", TEXTS)
        yield fake


def say(thread_id: str, texts: list[str], role: str = "user") -> None:
    """Save messages `<thread>0` … that want vectors."""
    thread = make_thread("alice", thread_id)
    batch = [
        a_message(thread, f"{thread_id}{n}", text=text, at=n, role="assistant" if n % 2 else role)
        for n, text in enumerate(texts)
    ]
    Memory(options={"semanticRecall": True}).save_messages(batch)


def find(words: str, kind: SearchType = "hybrid", limit: int = 10, **more: Any) -> list[str]:
    """Ids of what is found, best first."""
    search = SearchRequest(query=words, scope=ALICE, **more)
    return [scored.id for scored in engine.find_matches(search, kind, limit=limit).scored]


def test_find_matches__both_find_more_than_words() -> None:
    assert set(find("tea", "text")) == {"t0", "t1"}
    assert set(find("tea")) == {"t0", "t1", "t2", "t3", "t4"}


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("green -tea", {"t2", "t3", "t4"}),
        ('green -"green tea"', {"t1", "t2", "t3", "t4"}),
        ('"green tea"', {"t0"}),
        ('"green leaves" tea', {"t2"}),
        ("-tea", {"t2", "t3", "t4"}),
        ('"nowhere said"', set()),
    ],
)
def test_find_matches__phrase_and_minus_hold_for_what_is_found_by_meaning_too(
    words: str, found: set[str]
) -> None:
    assert set(find(words)) == found


def test_find_matches__demands_do_not_make_a_result_shorter() -> None:
    say("u", ["tea " * n + "time" for n in range(1, 30)])
    assert len(find("tea -milk -green", limit=20)) == 20


def test_find_matches__without_syntax_a_quoted_word_demands_nothing() -> None:
    said = 'She said "tea and green things" but -leaves'
    assert find(said, "text") == []
    assert set(find(said, "text", parse_operators=False)) == {"t0", "t1", "t2", "t4"}
    assert find(said, parse_operators=False, limit=1) == ["t2"]


def test_find_matches__a_filter_holds_for_neighbours_too() -> None:
    for kind in ("text", "semantic", "hybrid"):
        found = find("tea", kind, filter={"role": "assistant"})
        assert "t1" in found
        assert set(found) <= {"t1", "t3"}


@pytest.mark.parametrize(
    "error", [ProviderUnavailable("down"), ProviderRefused("bad key"), ValueError("a fault")]
)
def test_find_matches__hybrid_uses_words_if_embedder_fails(
    model: FakeEmbedder, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    find("tea")
    model.error = error
    assert set(find("green tea", limit=2)) == {"t0", "t1"}
    assert "Hybrid search uses words only" in caplog.text
    with pytest.raises(MastraMemoryError, match=str(error)):
        find("something else", "semantic")


def test_find_matches__both_go_on_with_words_where_vectors_have_another_length() -> None:
    find("tea")
    with FakeEmbedder(dimensions=8):
        assert find("green tea", limit=1) == ["t0"]
        with pytest.raises(EmbedderMismatch, match="of 8 dimensions, but the stored ones have 256"):
            find("green tea", "semantic")


@pytest.mark.parametrize("kind", ["text", "semantic", "hybrid"])
def test_find_matches__without_catching_up_nothing_is_written(
    kind: SearchType, model: FakeEmbedder
) -> None:
    model.tokens_each = 5
    say("u", ["green tea"] * 12)  # so many that their words are written later
    assert Message.objects.filter(search=None).exists()
    with transaction.atomic():
        sql.execute("SET TRANSACTION READ ONLY")
        find("tea", kind, catch_up=False)
    assert model.texts == []
    find("tea", kind)
    assert Message.objects.filter(search=None).exists() == (kind == "semantic")


@pytest.mark.parametrize("kind", ["text", "semantic", "hybrid"])
def test_find_matches__limit_zero_finds_nothing(kind: SearchType) -> None:
    assert find("tea", kind, limit=0) == []


def test_find_matches__a_thread_that_goes_meanwhile_is_left_out(
    model: FakeEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    say("u", ["green tea too"])
    indexing.embed_pending(seconds=60)

    def embed(*args: Any, **more: Any) -> Any:
        Memory().delete_thread("u")
        return FakeEmbedder.embed(model, *args, **more)

    monkeypatch.setattr(model, "embed", embed)
    assert "u0" not in find("green tea")
