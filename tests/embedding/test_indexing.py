"""Embedding the messages in the queue."""

import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from mastra_memory import messages
from mastra_memory.db import leases, sql
from mastra_memory.embedding import embedder, indexing, queue
from mastra_memory.embedding.embedder import Embeddings
from mastra_memory.exceptions import ProviderRefused, ProviderUnavailable
from mastra_memory.models import EmbeddingRequest, MessageEmbedding, ModelUsage
from mastra_memory.testing import FakeEmbedder
from mastra_memory.types import StoredThread
from tests.support.concurrency import concurrently
from tests.support.factories import a_message, make_thread, some_messages
from tests.support.waiting import MAX_WAIT_SECONDS, wait_until

pytestmark = pytest.mark.django_db
MODEL = "test/model"


@pytest.fixture(autouse=True)
def no_retry_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry a failed call once, without a delay."""
    monkeypatch.setattr(embedder, "RETRY_DELAYS_SECONDS", (0.0,))


@pytest.fixture
def model(db: None) -> Iterator[FakeEmbedder]:
    """Replace every embedder by a fake."""
    with FakeEmbedder() as fake:
        yield fake


def save(batch: Sequence[Any], *models: str) -> None:
    """Store messages and put them into the queue."""
    drafts = messages.validate_messages(batch)
    messages.save_messages(drafts, embed_for=models or (MODEL,))


def embed() -> int:
    """Embed due messages, and return how many."""
    return indexing.embed_pending(seconds=60)[0]


def vectors() -> list[tuple[str, int]]:
    """Message and passage of every vector of the model."""
    found = MessageEmbedding.objects.filter(model=MODEL)
    return sorted(found.values_list("message_id", "passage"))


def make_due() -> None:
    """Make all requests due."""
    EmbeddingRequest.objects.update(due_at=timezone.now() - timedelta(seconds=1))


def test_embed_pending__every_text_is_embedded_once(model: FakeEmbedder) -> None:
    save(some_messages(make_thread("alice", "t"), 10))
    assert embed() == 10
    assert vectors() == [(f"m{n}", 0) for n in range(10)]
    assert sorted(model.texts) == [f"Message {n}" for n in range(10)]
    assert not EmbeddingRequest.objects.exists()
    stored = MessageEmbedding.objects.all()[0]
    assert (stored.thread_id, stored.resource_id, stored.dimensions) == ("t", "alice", 64)


def test_embed_pending__saving_unchanged_texts_again_costs_nothing(model: FakeEmbedder) -> None:
    batch = some_messages(make_thread("alice", "t"), 10)
    save(batch)
    embed()
    save(batch)
    assert not EmbeddingRequest.objects.exists()
    assert embed() == 0
    assert len(model.texts) == 10


def test_embed_pending__keeps_one_set_of_vectors_while_a_text_grows(model: FakeEmbedder) -> None:
    thread = make_thread("alice", "t")
    for said in ("Hel", "Hello", "Hello wor", "Hello world"):
        save([a_message(thread, "m", text=said)])
        embed()
    assert vectors() == [("m", 0)]
    assert model.texts[-1] == "Hello world"


def test_embed_pending__an_edit_replaces_the_vectors(model: FakeEmbedder) -> None:
    thread = make_thread("alice", "t")
    save([a_message(thread, "m", text="old " * 1_000)])
    embed()
    assert len(vectors()) > 1
    messages.update_messages([{"id": "m", "content": {"parts": [{"type": "text", "text": "new"}]}}])
    assert vectors() == []
    assert embed() == 1
    assert vectors() == [("m", 0)]


@pytest.mark.parametrize("text", ["", "   ", "\n"])
def test_embed_pending__blank_text_has_no_vector(model: FakeEmbedder, text: str) -> None:
    tool = {"state": "result", "toolCallId": "c", "toolName": "x", "args": {}, "result": "noise"}
    parts = [{"type": "text", "text": text}, {"type": "tool-invocation", "toolInvocation": tool}]
    file = {"type": "file", "data": "data:image/png;base64,AAAA", "mimeType": "image/png"}
    content = {"format": 2, "parts": [*parts, file]}
    save([a_message(make_thread("alice", "t"), "m", content=content)])
    assert not EmbeddingRequest.objects.exists()
    assert (embed(), model.texts) == (0, [])


def test_embed_pending__neither_base64_nor_tools_are_embedded(model: FakeEmbedder) -> None:
    tool = {"state": "result", "toolCallId": "c", "toolName": "x", "args": {}, "result": "noise"}
    parts = [
        {"type": "text", "text": "see data:image/png;base64," + "QUJD" * 10_000 + " here"},
        {"type": "tool-invocation", "toolInvocation": tool},
        {"type": "reasoning", "reasoning": "hm", "details": []},
    ]
    content = {"format": 2, "parts": parts}
    save([a_message(make_thread("alice", "t"), "m", content=content)])
    embed()
    assert model.texts == ["see   here"]


def test_embed_pending__reminders_are_not_embedded(model: FakeEmbedder) -> None:
    text = "<system-reminder>be kind</system-reminder>"
    save([a_message(make_thread("alice", "t"), "m", text=text)])
    assert (embed(), vectors()) == (0, [])


def test_embed_pending__a_text_of_every_script(model: FakeEmbedder) -> None:
    thread = make_thread("alice", "t")
    texts = ["今天天气很好。" * 500, "👩‍👩‍👧‍👦" * 500, "x" * 100_000, "مرحبا بالعالم " * 300]
    save([a_message(thread, f"m{n}", text=text) for n, text in enumerate(texts)])
    assert embed() == 4
    assert {key for key, _ in vectors()} == {"m0", "m1", "m2", "m3"}
    assert all(len(passage.encode()) <= model.passage_bytes for passage in model.texts)


def test_embed_pending__a_late_answer_for_an_old_text_changes_nothing() -> None:
    thread = make_thread("alice", "t")

    class Slow(FakeEmbedder):
        def embed(self, texts: Sequence[str], *, query: bool, timeout: float) -> Embeddings:
            if "old" in texts:
                save([a_message(thread, "m", text="new")])
            return super().embed(texts, query=query, timeout=timeout)

    save([a_message(thread, "m", text="old")])
    with Slow() as model:
        assert embed() == 0
        assert vectors() == []
        make_due()
        assert embed() == 1
        assert (model.texts, vectors()) == (["old", "new"], [("m", 0)])
    stored = MessageEmbedding.objects.get(message="m")
    assert [(bytes(stored.text_hash),)] == sql.fetch_all("SELECT sha256('new')")


def test_embed_pending__a_message_deleted_meanwhile_gets_no_vector() -> None:
    thread = make_thread("alice", "t")

    class Slow(FakeEmbedder):
        def embed(self, texts: Sequence[str], *, query: bool, timeout: float) -> Embeddings:
            messages.delete_messages(["m0"])
            return super().embed(texts, query=query, timeout=timeout)

    save(some_messages(thread, 2))
    with Slow():
        assert embed() == 1
    assert vectors() == [("m1", 0)]


def test_embed_pending__keeps_vectors_of_a_transferred_thread() -> None:
    thread = make_thread("alice", "t")

    class Slow(FakeEmbedder):
        def embed(self, texts: Sequence[str], *, query: bool, timeout: float) -> Embeddings:
            sql.execute("UPDATE mastra_memory_thread SET resource_id = 'bob' WHERE id = 't'")
            return super().embed(texts, query=query, timeout=timeout)

    save([a_message(thread, "m")])
    with Slow():
        assert embed() == 1
    assert MessageEmbedding.objects.get(message="m").resource_id == "bob"


def test_embed_pending__stores_the_reason_if_provider_is_down() -> None:
    save(some_messages(make_thread("alice", "t"), 3))
    with FakeEmbedder(error=ProviderUnavailable("overloaded")):
        assert embed() == 0
    waiting = EmbeddingRequest.objects.pending()
    assert {(r.attempts, r.error, r.claim) for r in waiting} == {(1, "overloaded", None)}
    assert all(r.due_at > timezone.now() for r in waiting)
    with FakeEmbedder():
        assert embed() == 0
        make_due()
        assert embed() == 3


def test_embed_pending__waits_after_the_last_attempt(memory_settings: Any) -> None:
    memory_settings(EMBEDDER_ATTEMPTS=3)
    save([a_message(make_thread("alice", "t"), "m")])
    with FakeEmbedder(error=ProviderUnavailable("overloaded")):
        for _ in range(5):
            make_due()
            embed()
    (given_up,) = EmbeddingRequest.objects.failed()
    assert (given_up.attempts, given_up.error) == (3, "overloaded")
    with FakeEmbedder():
        make_due()
        assert embed() == 0
        queue.retry_failed()
        assert embed() == 1


def test_embed_pending__pauses_grow() -> None:
    save([a_message(make_thread("alice", "t"), "m")])
    pauses = []
    with FakeEmbedder(error=ProviderUnavailable("overloaded")):
        for _ in range(3):
            make_due()
            embed()
            left = EmbeddingRequest.objects.get().due_at - timezone.now()
            pauses.append(round(left.total_seconds()))
    assert pauses == [10, 20, 40]


def test_embed_pending__embeds_the_rest_if_one_text_is_refused() -> None:
    class Picky(FakeEmbedder):
        def embed(self, texts: Sequence[str], *, query: bool, timeout: float) -> Embeddings:
            if "Message 5" in texts:
                raise ProviderRefused("not this one")
            return super().embed(texts, query=query, timeout=timeout)

    save(some_messages(make_thread("alice", "t"), 8))
    with Picky():
        assert embed() == 7
    assert [r.message_id for r in EmbeddingRequest.objects.all()] == ["m5"]
    assert EmbeddingRequest.objects.get().error == "not this one"


def test_embed_pending__embeds_the_rest_if_a_vector_is_nan() -> None:
    save(some_messages(make_thread("alice", "t"), 8))
    with FakeEmbedder(vectors={"Message 5": [float("nan")] * 64}):
        assert embed() == 7
    assert "numbers that are" in EmbeddingRequest.objects.get(message="m5").error


def test_embed_pending__stores_an_unexpected_error() -> None:
    save(some_messages(make_thread("alice", "t"), 3))
    with FakeEmbedder(error=KeyError("vectors")):
        assert embed() == 0
    assert {r.error for r in EmbeddingRequest.objects.pending()} == {
        "test/model: KeyError: 'vectors'"
    }


def test_embed_pending__does_not_split_the_batch_if_the_key_is_refused() -> None:
    calls = []

    class Locked(FakeEmbedder):
        def embed(self, texts: Sequence[str], *, query: bool, timeout: float) -> Embeddings:
            calls.append(len(texts))
            raise ProviderRefused("bad key")

    save(some_messages(make_thread("alice", "t"), 50))
    with Locked():
        assert embed() == 0
    assert calls == [50, 1]
    assert EmbeddingRequest.objects.filter(error="bad key").count() == 50


def test_embed_pending__embeds_the_rest_if_a_model_fails_to_load() -> None:
    thread = make_thread("alice", "t")
    save([a_message(thread, "lost")], "local/no-such-model")
    save([a_message(thread, "found", text="tea")], "local/wordllama")
    assert embed() == 1
    assert "local/wordllama" in EmbeddingRequest.objects.get(message="lost").error


def test_embed_pending__tokens_are_kept_thread_by_thread() -> None:
    save(some_messages(make_thread("alice", "t1"), 3))
    save(some_messages(make_thread("alice", "t2"), 1, prefix="x"))
    with FakeEmbedder(tokens_each=10):
        embed()
    for thread_id, tokens in (("t1", 30), ("t2", 10)):
        used = ModelUsage.objects.of_thread(thread_id).get()
        assert (used.purpose, used.model, used.input_tokens) == ("embedding", MODEL, tokens)


def test_embed_pending__an_embedder_that_costs_nothing_leaves_no_usage(
    model: FakeEmbedder,
) -> None:
    save(some_messages(make_thread("alice", "t"), 3))
    embed()
    assert not ModelUsage.objects.exists()


def test_embed_pending__stops_when_its_time_is_over(
    model: FakeEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "BATCH_SIZE", 2)
    save(some_messages(make_thread("alice", "t"), 5))
    assert indexing.embed_pending(seconds=-1) == (0, True)
    assert indexing.embed_pending(seconds=60) == (5, False)


def test_embed_batch__a_zero_vector_is_not_stored() -> None:
    save([a_message(make_thread("alice", "t"), "m", text="tea")])
    with FakeEmbedder(vectors={"tea": [0.0, 0.0]}):
        assert embed() == 1
    assert vectors() == []
    assert not EmbeddingRequest.objects.exists()


def test_embed_pending__embeds_messages_whose_claim_expired(model: FakeEmbedder) -> None:
    save([a_message(make_thread("alice", "t"), "m")])
    assert len(queue.claim_messages(MODEL, uuid.uuid4(), 10)) == 1
    assert embed() == 0
    make_due()
    assert embed() == 1


def test_fail_expired__fails_messages_whose_workers_were_killed(memory_settings: Any) -> None:
    memory_settings(EMBEDDER_ATTEMPTS=2)
    save([a_message(make_thread("alice", "t"), "m")])
    with FakeEmbedder():
        for _ in range(3):
            queue.claim_messages(MODEL, uuid.uuid4(), 10)
            make_due()
        assert queue.fail_expired() == 1
    assert EmbeddingRequest.objects.failed().get().error == queue.LOST_WORKER_ERROR


@pytest.mark.django_db(transaction=True)
def test_embed_pending__two_at_once_never_embed_the_same_message() -> None:
    thread: StoredThread = make_thread("alice", "t")
    save(some_messages(thread, 300))
    with FakeEmbedder() as model:
        done = concurrently(lambda _: embed(), [1, 2, 3])
    assert sum(done) == 300
    assert len(model.texts) == 300
    assert len(vectors()) == 300


@pytest.mark.django_db(transaction=True)
def test_embed_pending__renews_the_lease_of_slow_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lease_seconds = 4.0
    monkeypatch.setattr(queue, "LEASE_SECONDS", lease_seconds)
    monkeypatch.setattr(leases, "RENEWAL_SECONDS", 0.2)
    started, finished = threading.Event(), threading.Event()

    class Slow(FakeEmbedder):
        def embed(self, texts: Sequence[str], *, query: bool, timeout: float) -> Embeddings:
            started.set()
            finished.wait(MAX_WAIT_SECONDS)
            return super().embed(texts, query=query, timeout=timeout)

    def take_over() -> int:
        """Try to claim the messages until the first lease would have ended."""
        claimed = 0
        started.wait(MAX_WAIT_SECONDS)
        lease_end = time.monotonic() + lease_seconds + 1
        try:
            while time.monotonic() < lease_end:
                time.sleep(0.2)
                claimed += len(queue.claim_messages(MODEL, uuid.uuid4(), 10))
        finally:
            finished.set()
        return claimed

    save(some_messages(make_thread("alice", "t"), 4))
    with Slow() as model:
        done, taken_over = concurrently(lambda act: act(), [embed, take_over])
    assert (done, taken_over) == (4, 0)
    assert len(model.texts) == 4


@pytest.mark.django_db(transaction=True)
def test_embed_pending__skips_a_message_that_is_being_edited(
    model: FakeEmbedder,
) -> None:
    save(some_messages(make_thread("alice", "t"), 2))

    def act(what: str) -> int:
        if what == "embed":
            return embed()
        with transaction.atomic():
            sql.execute("UPDATE mastra_memory_message SET text = 'changed' WHERE id = 'm0'")
            wait_until(lambda: EmbeddingRequest.objects.count() != 2)
        return 0

    assert sum(concurrently(act, ["embed", "edit"])) in (1, 2)
    make_due()
    embed()
    assert vectors() == [("m0", 0), ("m1", 0)]
    assert model.texts[-1] == "changed"
