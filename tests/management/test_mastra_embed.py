"""Tests of the command that creates vectors."""

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
    """Run the command and return its output."""
    out = io.StringIO()
    call_command("mastra_embed", *words, stdout=out, **options)
    return out.getvalue()


@pytest.fixture(autouse=True)
def embedder(memory_settings: Any) -> None:
    """Make the old model the one in use."""
    memory_settings(EMBEDDER=OLD)


def save_pending_messages(count: int, thread_id: str = "t") -> None:
    """Save messages that are queued for embedding."""
    batch = some_messages(make_thread("alice", thread_id), count, prefix=f"{thread_id}-")
    Memory(options={"semanticRecall": True}).save_messages(batch)


def test_mastra_embed__embeds_pending_messages() -> None:
    save_pending_messages(3)
    with FakeEmbedder():
        output = run("--no-index")
    assert "old/model: 3 messages, 3 vectors of 64 dimensions, no index, in use" in output
    assert not EmbeddingRequest.objects.exists()


def test_mastra_embed__all_embeds_messages_saved_without_recall() -> None:
    save(some_messages(make_thread("alice", "t"), 3))
    with FakeEmbedder():
        assert "3 messages were saved without semantic recall" in run("--no-index")
        assert "semantic recall" not in run("--all", "--no-index")
    assert MessageEmbedding.objects.count() == 3


def test_mastra_embed__again_replaces_vectors_of_another_length() -> None:
    save_pending_messages(3)
    with FakeEmbedder(dimensions=384):
        run("--no-index")
    with FakeEmbedder(dimensions=256):
        run("--again", "--no-index")
        assert stats.list_dimensions() == {OLD: [256]}
        found = Memory(options={"semanticRecall": True}).search(
            "Message 1", resource_id="alice", search_type="semantic", limit=1
        )
    assert found.count == 1


def test_mastra_embed__report_changes_nothing() -> None:
    save_pending_messages(2)
    with FakeEmbedder() as model:
        assert "old/model: 2 pending, 0 failed" in run("--report")
    assert model.texts == []


def test_mastra_embed__retry_embeds_messages_that_failed(
    memory_settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mastra_memory.embedding import embedder

    monkeypatch.setattr(embedder, "RETRY_DELAYS_SECONDS", ())
    memory_settings(EMBEDDER=OLD, EMBEDDER_ATTEMPTS=1)
    save_pending_messages(2)
    with FakeEmbedder(error=ProviderUnavailable("overloaded")):
        assert "old/model: 0 pending, 2 failed (overloaded)" in run("--no-index")
    with FakeEmbedder():
        run("--no-index")
        assert MessageEmbedding.objects.count() == 0
        run("--retry", "--no-index")
        assert MessageEmbedding.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_mastra_embed__model_can_be_changed_without_interruption(memory_settings: Any) -> None:
    recalling = {"semanticRecall": True}

    def finds(words: str) -> bool:
        found = Memory(options=recalling).search(
            words, resource_id="alice", search_type="semantic", limit=1
        )
        return found.count == 1

    with FakeEmbedder():
        save_pending_messages(3)
        run("--no-index")
        memory_settings(EMBEDDER=OLD, EMBED_ALSO=[NEW])
        save_pending_messages(2, "u")
        run("--model", NEW, "--no-index")
        assert stats.list_dimensions() == {NEW: [64], OLD: [64]}
        assert finds("Message 1")
        memory_settings(EMBEDDER=NEW)
        assert finds("Message 1")
        run("--no-index")
        output = run("--drop", OLD)
    assert "Deleted 5 vectors of old/model" in output
    assert stats.list_dimensions() == {NEW: [64]}
    assert MessageEmbedding.objects.count() == 5


def test_mastra_embed__does_not_drop_a_model_in_use(memory_settings: Any) -> None:
    memory_settings(EMBEDDER=NEW, EMBED_ALSO=[OLD])
    for model in (OLD, NEW):
        with pytest.raises(CommandError, match="in use"):
            run("--drop", model)


def test_mastra_embed__unknown_model_is_an_error(memory_settings: Any) -> None:
    memory_settings(EMBEDDER="local/nothing")
    with pytest.raises(CommandError, match="did you mean local/wordllama"):
        run()


@pytest.mark.django_db(transaction=True)
def test_mastra_embed__builds_the_index_for_many_vectors(memory_settings: Any) -> None:
    memory_settings(EMBEDDER=OLD, EXACT_SEARCH_LIMIT=5)
    index = VectorIndex.for_model(OLD, 64)
    with FakeEmbedder():
        save_pending_messages(3)
        assert "no index" in run()
        save_pending_messages(4, "u")
        assert "Building the index of 7 vectors" in run()
    assert index.is_ready()
    index.drop()


@pytest.mark.django_db(transaction=True)
def test_mastra_embed__index_option_builds_the_index() -> None:
    with FakeEmbedder():
        save_pending_messages(1)
        assert "indexed" in run("--index")
    VectorIndex.for_model(OLD, 64).drop()


@pytest.mark.django_db(transaction=True)
def test_mastra_embed__rebuilds_an_index_that_grows_much(memory_settings: Any) -> None:
    memory_settings(EMBEDDER=OLD, EXACT_SEARCH_LIMIT=5)
    index = VectorIndex.for_model(OLD, 64)
    index_states = []

    class RecordingEmbedder(FakeEmbedder):
        def embed(self, texts: Sequence[str], *, query: bool, timeout: float) -> Embeddings:
            index_states.append(index.is_ready())
            return super().embed(texts, query=query, timeout=timeout)

    with RecordingEmbedder():
        save_pending_messages(8)
        run()
        save_pending_messages(1, "few")
        assert "Building" not in run()
        save_pending_messages(20, "many")
        assert "Building the index of 29 vectors" in run()
        assert "Building the index of 29 vectors" in run("--again")
        save_pending_messages(20, "more")
        assert "Building" not in run("--no-index")
    assert index_states == [False, True, False, False, True]
    assert index.is_ready()
    index.drop()
