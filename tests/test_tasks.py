"""Enqueuing: after commit, once for many, and with a broker that is down."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from celery import Celery
from django.db import transaction
from django.db.models.functions import Now
from kombu import pools

from mastra_memory import tasks
from mastra_memory.memory import Memory
from mastra_memory.models import EmbeddingRequest, MessageEmbedding, Thread
from mastra_memory.testing import FakeEmbedder
from tests.support.factories import a_message, make_thread, some_messages

REFUSING = "amqp://127.0.0.1:1//"


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was sent before, and the broker is not known to be down."""
    monkeypatch.setattr(tasks, "_broker_retry_at", 0.0)
    monkeypatch.setattr(tasks, "_scheduled_until", {})


class Sender:
    """A task that notes when it is sent."""

    def __init__(self, broker: str = "memory://") -> None:
        self.app = Celery("test", broker=broker, set_as_current=False)
        self.app.conf.update(broker_connection_timeout=0.05, broker_transport_options={})
        self.task = self.app.task(name="test.work", shared=False)(self.work)
        self.ran: list[Any] = []

    def work(self, *args: Any) -> None:
        self.ran.append(args)

    def sent(self) -> list[tuple[Any, ...]]:
        """The arguments of everything in the queue."""
        with self.app.connection_for_read() as connection:
            queue = connection.SimpleQueue("celery")
            found = []
            while queue.qsize():
                found.append(tuple(queue.get_nowait().payload[0]))
            return found


@pytest.mark.django_db(transaction=True)
def test_enqueue__after_commit_and_not_after_a_rollback() -> None:
    sender = Sender()
    with transaction.atomic():
        tasks.enqueue(sender.task, "kept")
        assert sender.sent() == []
    assert sender.sent() == [("kept",)]
    with pytest.raises(ValueError), transaction.atomic():
        tasks.enqueue(sender.task, "lost")
        raise ValueError
    assert sender.sent() == []


@pytest.mark.django_db(transaction=True)
def test_enqueue__sends_equal_tasks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sender = Sender()
    monkeypatch.setattr(tasks, "COALESCE_SECONDS", 3600.0)
    for number in (1, 2, 1, 1, 2):
        tasks.enqueue(sender.task, number)
    assert sender.sent() == [(1,), (2,)]
    monkeypatch.setattr(tasks, "_scheduled_until", {})  # as after `COALESCE_SECONDS`
    tasks.enqueue(sender.task, 1)
    assert sender.sent() == [(1,)]


@pytest.mark.django_db(transaction=True)
def test_enqueue__runs_at_once_where_celery_is_eager() -> None:
    sender = Sender()
    sender.app.conf.task_always_eager = True
    tasks.enqueue(sender.task, 1)
    tasks.enqueue(sender.task, 1)
    assert sender.ran == [(1,), (1,)]


@contextmanager
def silent_broker() -> Iterator[str]:
    """A port that accepts connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(16)
        yield f"amqp://127.0.0.1:{listener.getsockname()[1]}//"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["refusing", "silent"])
def test_enqueue__broker_down_is_logged_and_retried_later(
    kind: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = 0

    def count(app: Celery) -> pools.ProducerPool:
        nonlocal attempts
        attempts += 1
        return get_producers(app)

    get_producers = tasks._get_producers
    monkeypatch.setattr(tasks, "_get_producers", count)
    with silent_broker() as silent:
        sender = Sender(REFUSING if kind == "refusing" else silent)
        for number in range(100):
            tasks.enqueue(sender.task, number)
        assert attempts == 1
        assert [r.levelname for r in caplog.records if r.name == tasks.__name__] == ["WARNING"]
        monkeypatch.setattr(tasks, "_broker_retry_at", 0.0)
        tasks.enqueue(sender.task, 200)
        assert attempts == 2
        assert len([r for r in caplog.records if r.name == tasks.__name__]) == 2


@pytest.mark.django_db(transaction=True)
def test_embed_pending__embeds_what_a_save_asked_for() -> None:
    memory = Memory(options={"semanticRecall": True})
    memory.save_messages([a_message(make_thread("alice", "t"), "m", text="tea")])
    with FakeEmbedder() as model:
        assert tasks.embed_pending() == 1
    assert model.texts == ["tea"]
    assert MessageEmbedding.objects.get().message_id == "m"


@pytest.mark.django_db(transaction=True)
def test_embed_pending__running_twice_changes_nothing() -> None:
    memory = Memory(options={"semanticRecall": True})
    memory.save_messages([a_message(make_thread("alice", "t"), "m")])
    with FakeEmbedder():
        assert [tasks.embed_pending(), tasks.embed_pending()] == [1, 0]
    assert not EmbeddingRequest.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_embed_pending__what_is_left_is_enqueued_again(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Memory(options={"semanticRecall": True})
    memory.save_messages([a_message(make_thread("alice", "t"), "m")])
    sent: list[Any] = []
    monkeypatch.setattr(tasks, "enqueue", lambda task, *args: sent.append(task))
    monkeypatch.setattr(tasks, "EMBED_TASK_SECONDS", -1)
    with FakeEmbedder():
        assert tasks.embed_pending() == 0
    assert sent == [tasks.embed_pending]


@pytest.mark.django_db(transaction=True)
def test_catch_up__asks_for_all_that_rows_say_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    monkeypatch.setattr(tasks, "enqueue", lambda task, *args: sent.append(task.name))
    tasks.catch_up()
    assert {"mastra_memory.tasks.embed_pending", "mastra_memory.tasks.write_words"} <= set(sent)


@pytest.mark.django_db(transaction=True)
def test_catch_up__finds_copies_without_vector_or_request(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Memory(options={"semanticRecall": True})
    memory.save_messages(some_messages(make_thread("alice", "t"), 3))
    monkeypatch.setattr(tasks, "enqueue", lambda task, *args: None)
    with FakeEmbedder():
        tasks.embed_pending()
        recent, old = (memory.clone_thread("t", clone_id=name) for name in ("recent", "old"))
        lost = [clone.messages[1].id for clone in (recent, old)]
        MessageEmbedding.objects.filter(message_id__in=lost).delete()
        age = tasks.CLONE_MAX_AGE + timedelta(minutes=1)
        Thread.objects.filter(pk="old").update(created_at=Now() - age)
        tasks.catch_up()
        assert list(EmbeddingRequest.objects.values_list("message_id", flat=True)) == lost[:1]
        assert tasks.embed_pending() == 1
        tasks.catch_up()
    assert not EmbeddingRequest.objects.exists()
