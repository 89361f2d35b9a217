"""The cycle of an agent that observes resources, and work on one resource at the same time."""

from collections.abc import Callable
from typing import Any

import pytest

from mastra_memory import llm
from mastra_memory.exceptions import (
    AccessDenied,
    ClaimLost,
    FeatureDisabled,
    InvalidInput,
    ThreadNotFound,
)
from mastra_memory.memory import Memory
from mastra_memory.models import Message, MessageObservation, ObservationalRecord, ObservationChunk
from mastra_memory.observational import claims, cycle
from tests.observational.engine import check_invariants, do_due_work, observer, say, states
from tests.support.concurrency import concurrently
from tests.support.factories import make_thread

RESOURCE = {
    "scope": "resource",
    "observation": {"messageTokens": 1_000, "maxTokensPerBatch": 2_000},
    "reflection": {"observationTokens": 50_000},
}


@pytest.fixture
def memory(memory_settings: Callable[..., None]) -> Memory:
    memory_settings(OPTIONS={"observationalMemory": RESOURCE})
    return Memory()


@pytest.mark.django_db
def test_two_threads__are_observed_and_labelled(memory: Memory) -> None:
    first, second = make_thread(), make_thread()
    with observer() as model:
        say(memory, first, 600)
        do_due_work()
        assert not model.requests
        say(memory, second, 600)
        do_due_work()
    assert len(model.requests) == 1
    record = ObservationalRecord.objects.get()
    assert (record.thread_id, record.resource_id) == (None, "alice")
    for thread in (first, second):
        assert f'<thread id="{thread.id}">' in record.active_observations
        assert set(states(thread, "resource").values()) == {"observed"}
        metadata = memory.get_thread(thread.id).metadata
        assert metadata is not None and metadata["mastra"]["om"]["lastObservedAt"]
    chunks = ObservationChunk.objects.all()
    assert {chunk.thread_id for chunk in chunks} == {first.id, second.id}
    check_invariants()


@pytest.mark.django_db
def test_largest_threads__come_first_and_the_rest_later(memory: Memory) -> None:
    small, large = make_thread(), make_thread()
    with observer():
        say(memory, small, 100)
        say(memory, large, 2_000)
        do_due_work()
        assert set(states(large, "resource").values()) == {"observed"}
        assert set(states(small, "resource").values()) == {"pending"}
        memory.observe(resource_id="alice")
    assert set(states(small, "resource").values()) == {"observed"}
    check_invariants()


@pytest.mark.django_db
def test_ids__missing_ones_are_clear_errors(
    memory: Memory, memory_settings: Callable[..., None]
) -> None:
    thread = make_thread()
    with pytest.raises(InvalidInput, match="resourceId or threadId is required"):
        memory.get_observational_status()
    assert memory.get_observational_status(thread_id=thread.id).record is None
    memory_settings(OPTIONS={"observationalMemory": True})
    with pytest.raises(InvalidInput, match="threadId is required"):
        Memory().observe(resource_id="alice")
    with pytest.raises(ThreadNotFound):
        Memory().observe(thread_id="unknown")
    with pytest.raises(AccessDenied):
        Memory().reflect(thread_id=thread.id, resource_id="bob")
    memory_settings(OPTIONS={"observationalMemory": True, "readOnly": True})
    for call in (Memory().observe, Memory().clear_observations, Memory().request_observation):
        with pytest.raises(FeatureDisabled, match="read-only"):
            call(thread_id=thread.id)
    memory_settings(OPTIONS={})
    with pytest.raises(FeatureDisabled, match="not enabled"):
        Memory().observe(thread_id=thread.id)


@pytest.mark.django_db(transaction=True)
def test_eight_turns_at_once__lose_nothing_and_make_one_record(memory: Memory) -> None:
    threads = [make_thread() for _ in range(8)]

    def turn(thread: Any) -> None:
        for _ in range(3):
            memory.save_turn(thread.id, "A question " * 100, answer=lambda context: "An answer")

    concurrently(turn, threads)
    assert ObservationalRecord.objects.count() == 1
    assert Message.objects.count() == MessageObservation.objects.count() == 48
    with observer() as model:

        def work(_: int) -> None:
            for record_id in claims.list_due_records():
                cycle.run_due_cycle(record_id)

        concurrently(work, range(4))
        do_due_work()
        memory.observe(resource_id="alice")
    for thread in threads:
        assert set(states(thread, "resource").values()) == {"observed"}
    ids = [key for chunk in ObservationChunk.objects.all() for key in chunk.message_ids]
    assert len(ids) == len(set(ids)) == 48
    assert model.requests
    check_invariants()


@pytest.mark.django_db(transaction=True)
def test_two_workers__only_one_calls_the_model(memory: Memory) -> None:
    thread = make_thread()
    say(memory, thread, 2_000)
    due = claims.list_due_records()
    with observer() as model:
        concurrently(lambda _: cycle.run_due_cycle(due[0]), range(4))
    assert len(model.requests) == 1
    assert set(states(thread, "resource").values()) == {"observed"}


@pytest.mark.django_db
def test_threads_that_are_left__are_observed_without_another_save(memory: Memory) -> None:
    with observer():
        for thread in (make_thread(), make_thread(), make_thread()):
            say(memory, thread, 1_500)
        do_due_work()
    status = memory.get_observational_status(resource_id="alice")
    assert status.pending_messages == 0 and not status.should_observe
    assert ObservationalRecord.objects.live().get().due_at is None
    check_invariants()


@pytest.mark.django_db
def test_transfer__while_the_model_is_asked_leaves_the_messages_to_the_new_owner(
    memory: Memory,
) -> None:
    thread = make_thread()
    say(memory, thread, 1_500)

    def transfer(request: llm.TextRequest) -> llm.TextReply:
        memory.transfer_thread(thread.id, "bob")
        return llm.TextReply(text="<observations>\n* 🔴 (10:00) Noted\n</observations>")

    with llm.override_model(transfer), pytest.raises(ClaimLost):
        memory.observe(resource_id="alice")
    assert set(states(thread, "resource").values()) == {"pending"}
    assert memory.get_observations(resource_id="alice") == ""
    with observer():
        assert memory.observe(resource_id="bob").observed
    assert set(states(thread, "resource").values()) == {"observed"}
