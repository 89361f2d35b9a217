"""The queue of vectors to be made."""

import uuid
from threading import Event

import pytest
from django.db import transaction

from mastra_memory import messages, threads
from mastra_memory.embedding import indexing, queue
from mastra_memory.models import EmbeddingRequest, MessageEmbedding
from mastra_memory.testing import FakeEmbedder
from tests.support.concurrency import concurrently
from tests.support.factories import a_message, make_thread, save, some_messages
from tests.support.waiting import MAX_WAIT_SECONDS

pytestmark = pytest.mark.django_db
OLD, NEW = "old/model", "new/model"


@pytest.fixture(autouse=True)
def stored(db: None) -> None:
    """m0 and m1 with vectors of the old model, m2 that nobody wanted embedded, and an empty one."""
    thread = make_thread("alice", "t")
    drafts = messages.validate_messages(some_messages(thread, 2))
    messages.save_messages(drafts, embed_for=[OLD])
    with FakeEmbedder():
        indexing.embed_pending(seconds=60)
    save([a_message(thread, "m2", at=9), a_message(thread, "m3", text=" ", at=10)])


def asked() -> list[tuple[str, str]]:
    """Message and model of every request."""
    return sorted(EmbeddingRequest.objects.values_list("message_id", "model"))


def test_enqueue__for_what_has_vectors_of_another_model() -> None:
    assert queue.enqueue(NEW) == 2
    assert queue.enqueue(NEW) == 0
    assert asked() == [("m0", NEW), ("m1", NEW)]


def test_enqueue__everything_includes_messages_without_vectors() -> None:
    assert queue.enqueue(OLD, everything=True) == 1
    assert asked() == [("m2", OLD)]


def test_enqueue__again_also_where_vectors_are() -> None:
    assert queue.enqueue(OLD) == 0
    assert queue.enqueue(OLD, again=True) == 2
    with FakeEmbedder(dimensions=8):
        assert indexing.embed_pending(seconds=60) == (2, False)
    assert set(MessageEmbedding.objects.values_list("dimensions", flat=True)) == {8}


def test_requests__follow_their_message() -> None:
    queue.enqueue(NEW)
    threads.transfer_thread("t", "bob")
    assert set(EmbeddingRequest.objects.values_list("resource_id", flat=True)) == {"bob"}
    messages.delete_messages(["m0"])
    assert asked() == [("m1", NEW)]
    threads.delete_thread("t")
    assert asked() == []
    assert not MessageEmbedding.objects.exists()


def test_vectors__go_with_their_message_in_one_transaction() -> None:
    queue.enqueue(NEW)
    with pytest.raises(RuntimeError), transaction.atomic():
        messages.delete_messages(["m0"])
        assert set(MessageEmbedding.objects.values_list("message_id", flat=True)) == {"m1"}
        assert asked() == [("m1", NEW)]
        raise RuntimeError
    assert set(MessageEmbedding.objects.values_list("message_id", flat=True)) == {"m0", "m1"}
    assert asked() == [("m0", NEW), ("m1", NEW)]


def test_vectors__go_with_an_edit_in_one_transaction() -> None:
    with pytest.raises(RuntimeError), transaction.atomic():
        save([a_message(threads.get_thread("t"), "m0", text="other words")])
        assert set(MessageEmbedding.objects.values_list("message_id", flat=True)) == {"m1"}
        raise RuntimeError
    assert set(MessageEmbedding.objects.values_list("message_id", flat=True)) == {"m0", "m1"}


@pytest.mark.django_db(transaction=True)
def test_claim_messages__what_another_is_taking_is_passed_by_without_waiting() -> None:
    thread = make_thread("alice", "many")
    drafts = messages.validate_messages(some_messages(thread, 9, prefix="x"))
    messages.save_messages(drafts, embed_for=[NEW])
    first_took, second_took = Event(), Event()

    def first() -> list[str]:
        with transaction.atomic():
            taken = queue.claim_messages(NEW, uuid.uuid4(), 5)
            first_took.set()
            assert second_took.wait(timeout=MAX_WAIT_SECONDS)  # the first still holds its rows
        return [claimed.message_id for claimed in taken]

    def second() -> list[str]:
        assert first_took.wait(timeout=MAX_WAIT_SECONDS)
        taken = queue.claim_messages(NEW, uuid.uuid4(), 9)
        second_took.set()
        return [claimed.message_id for claimed in taken]

    with FakeEmbedder():
        one, two = concurrently(lambda act: act(), [first, second])
    assert (len(one), len(two)) == (5, 4)
    assert set(one) | set(two) == {f"x{n}" for n in range(9)}


def test_vectors__follow_a_message_that_moves_to_another_thread() -> None:
    other = make_thread("alice", "other")
    save([a_message(other, "m0", text="Message 0")])
    moved = MessageEmbedding.objects.get(message="m0")
    assert (moved.thread_id, moved.resource_id) == ("other", "alice")


def test_save_messages__asks_for_every_model_at_once() -> None:
    thread = make_thread("alice", "u")
    drafts = messages.validate_messages([a_message(thread, "x")])
    messages.save_messages(drafts, embed_for=[OLD, NEW])
    assert asked() == [("x", NEW), ("x", OLD)]
