"""The command that makes vectors."""

import io
from collections.abc import Sequence
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from mastra_memory.embedding import stats
from mastra_memory.embedding.embedder import Embeddings
from mastra_memory.embedding.vector_index import VectorIndex
from mastra_memory.exceptions import ProviderUnavailable
from mastra_memory.memory import Memory
from mastra_memory.models import EmbeddingRequest, MessageEmbedding
from mastra_memory.testing import FakeEmbedder
from tests.support.factories import make_thread, save, some_messages

pytestmark = pytest.mark.django_db
OLD, NEW = "old/model", "new/model"


def run(*words: str, **options: Any) -> str:
    """What the command says."""
    out = io.StringIO()
    call_command("mastra_embed", *words, stdout=out, **options)
    return out.getvalue()


@pytest.fixture(autouse=True)
def embedder(memory_settings: Any) -> None:
    """The old model is in use."""
    memory_settings(EMBEDDER=OLD)


def say(count: int, thread_id: str = "t") -> None:
    """Save messages that want vectors."""
    batch = some_messages(make_thread("alice", thread_id), count, prefix=f"{thread_id}-")
    Memory(options={"semanticRecall": True}).save_messages(batch)


def test_mastra_embed__makes_what_is_pending() -> None:
    say(3)
    with FakeEmbedder():
        said = run("--no-index")
    assert "old/model: 3 messages, 3 vectors of 64 dimensions, no index, in use" in said
    assert not EmbeddingRequest.objects.exists()


def test_mastra_embed__all_takes_in_what_nobody_wanted() -> None:
    save(some_messages(make_thread("alice", "t"), 3))
    with FakeEmbedder():
        assert "3 messages never asked for" in run("--no-index")
        assert "never" not in run("--all", "--no-index")
    assert MessageEmbedding.objects.count() == 3


def test_mastra_embed__again_after_a_change_of_length_makes_recall_work() -> None:
    say(3)
    with FakeEmbedder(dimensions=384):
        run("--no-index")
    with FakeEmbedder(dimensions=256):
        run("--again", "--no-index")
        assert stats.list_dimensions() == {OLD: [256]}
        found = Memory(options={"semanticRecall": True}).search(
            "Message 1", resource_id="alice", search_type="semantic", limit=1
        )
    assert found.count == 1


def test_mastra_embed__report_does_nothing() -> None:
    say(2)
    with FakeEmbedder() as model:
        assert "old/model: 2 pending, 0 given up" in run("--report")
    assert model.texts == []


def test_mastra_embed__what_fails_is_reported_and_tried_again_when_told(
    memory_settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mastra_memory.embedding import embedder

    monkeypatch.setattr(embedder, "RETRY_DELAYS_SECONDS", ())
    memory_settings(EMBEDDER=OLD, EMBEDDER_ATTEMPTS=1)
    say(2)
    with FakeEmbedder(error=ProviderUnavailable("overloaded")):
        assert "old/model: 0 pending, 2 given up (overloaded)" in run("--no-index")
    with FakeEmbedder():
        run("--no-index")
        assert MessageEmbedding.objects.count() == 0
        run("--retry", "--no-index")
        assert MessageEmbedding.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_mastra_embed__changing_models_without_a_gap(memory_settings: Any) -> None:
    recalling = {"semanticRecall": True}

    def finds(words: str) -> bool:
        found = Memory(options=recalling).search(
            words, resource_id="alice", search_type="semantic", limit=1
        )
        return found.count == 1

    with FakeEmbedder():
        say(3)
        run("--no-index")
        memory_settings(EMBEDDER=OLD, EMBED_ALSO=[NEW])
        say(2, "u")
        run("--model", NEW, "--no-index")
        assert stats.list_dimensions() == {NEW: [64], OLD: [64]}
        assert finds("Message 1")
        memory_settings(EMBEDDER=NEW)
        assert finds("Message 1")
        run("--no-index")
        said = run("--drop", OLD)
    assert "5 vectors of old/model deleted" in said
    assert stats.list_dimensions() == {NEW: [64]}
    assert MessageEmbedding.objects.count() == 5


def test_mastra_embed__a_model_in_use_is_not_dropped(memory_settings: Any) -> None:
    memory_settings(EMBEDDER=NEW, EMBED_ALSO=[OLD])
    for model in (OLD, NEW):
        with pytest.raises(CommandError, match="in use"):
            run("--drop", model)


def test_mastra_embed__a_faulty_name_is_told(memory_settings: Any) -> None:
    memory_settings(EMBEDDER="local/nothing")
    with pytest.raises(CommandError, match="there is local/wordllama"):
        run()


@pytest.mark.django_db(transaction=True)
def test_mastra_embed__builds_the_index_where_it_pays(memory_settings: Any) -> None:
    memory_settings(EMBEDDER=OLD, EXACT_SEARCH_LIMIT=5)
    index = VectorIndex.for_model(OLD, 64)
    with FakeEmbedder():
        say(3)
        assert "no index" in run()
        say(4, "u")
        assert "Building the index of 7 vectors" in run()
    assert index.is_ready()
    index.drop()


@pytest.mark.django_db(transaction=True)
def test_mastra_embed__builds_the_index_when_told() -> None:
    with FakeEmbedder():
        say(1)
        assert "indexed" in run("--index")
    VectorIndex.for_model(OLD, 64).drop()


@pytest.mark.django_db(transaction=True)
def test_mastra_embed__an_index_that_grows_much_is_built_anew(memory_settings: Any) -> None:
    memory_settings(EMBEDDER=OLD, EXACT_SEARCH_LIMIT=5)
    index = VectorIndex.for_model(OLD, 64)
    was_ready = []

    class Watching(FakeEmbedder):
        def embed(self, texts: Sequence[str], *, query: bool, timeout: float) -> Embeddings:
            was_ready.append(index.is_ready())
            return super().embed(texts, query=query, timeout=timeout)

    with Watching():
        say(8)
        run()
        say(1, "few")
        assert "Building" not in run()
        say(20, "many")
        assert "Building the index of 29 vectors" in run()
        assert "Building the index of 29 vectors" in run("--again")
        say(20, "more")
        assert "Building" not in run("--no-index")
    assert was_ready == [False, True, False, False, True]
    assert index.is_ready()
    index.drop()
