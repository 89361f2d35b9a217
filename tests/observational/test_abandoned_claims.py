"""What a worker leaves behind when it is killed, and how the next one takes over."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from mastra_memory import llm, tasks
from mastra_memory.db import times
from mastra_memory.memory import Memory
from mastra_memory.models import ObservationalRecord, ObservationEvent
from mastra_memory.observational import claims, cycle, events, generations
from mastra_memory.observational.keys import RecordKey
from mastra_memory.types import StoredThread
from tests.observational.engine import SMALL, live, observer, say
from tests.support.factories import make_thread

pytestmark = pytest.mark.django_db


@pytest.fixture
def thread(memory_settings: Callable[..., None]) -> StoredThread:
    """Return a thread with a record and no messages."""
    at_once = {"messageTokens": 1_000, "bufferTokens": False}
    memory_settings(OPTIONS={"observationalMemory": SMALL | {"observation": at_once}})
    thread = make_thread("alice", "t")
    generations.get_or_create_live(RecordKey.about_thread("t", "alice"))
    return thread


def expire(thread: StoredThread) -> None:
    """Let all claims of a thread expire."""
    past = times.now() - timedelta(seconds=1)
    records = ObservationalRecord.objects.filter(thread_id=thread.id)
    records.exclude(lease_token=None).update(lease_expires_at=past)
    records.exclude(reflection_token=None).update(reflection_expires_at=past)


def write_notes(count: int) -> str:
    """Return the answer of a model with this many observations."""
    lines = "\n".join(f"* 🔴 (10:00) User mentioned number {n} of many" for n in range(count))
    return f"<observations>\n{lines}\n</observations>"


def test_reflection__stays_due_while_another_worker_has_the_claim(thread: StoredThread) -> None:
    memory = Memory()
    with observer(write_notes(200), write_notes(50)) as model:
        claims.claim_reflecting(live(thread), "reflecting")
        for _ in range(11):
            say(memory, thread)
        assert cycle.run_due_cycle(live(thread).pk) is None
        assert model.purposes == ["observation"]
        assert live(thread).due_at is not None, "that worker may be dead"
        expire(thread)
        assert claims.list_due_records() == [live(thread).pk]
        assert cycle.run_due_cycle(live(thread).pk) is None
    assert llm.Purpose.REFLECTION in model.purposes
    head = live(thread)
    assert head.generation_count == 1 and head.due_at is None and head.reflection_token is None


@pytest.mark.parametrize(
    ("operation", "claim"),
    [("observation", claims.claim_observing), ("reflection", claims.claim_reflecting)],
)
def test_event__of_a_killed_worker_ends_although_nothing_is_due(
    thread: StoredThread, operation: str, claim: Callable[..., claims.Claim | None]
) -> None:
    assert claim(live(thread), "buffering") is not None
    events.start(live(thread), operation, cycle_id="c")
    Memory().request_observation(thread_id=thread.id)
    cycle.run_due_cycle(live(thread).pk)
    assert ObservationEvent.objects.get().state == "running", "the worker may be alive"
    expire(thread)
    Memory().request_observation(thread_id=thread.id)
    cycle.run_due_cycle(live(thread).pk)
    event, record = ObservationEvent.objects.get(), live(thread)
    assert event.state == "failed" and event.finished_at is not None
    assert record.lease_token is None and record.reflection_token is None


@pytest.mark.parametrize(
    ("operation", "claim"),
    [("observation", claims.claim_observing), ("reflection", claims.claim_reflecting)],
)
def test_event__of_a_killed_request_is_found_without_work(
    thread: StoredThread, operation: str, claim: Callable[..., claims.Claim | None]
) -> None:
    # `Memory.observe` and `Memory.reflect` work without a request that would be found later.
    assert claim(live(thread), "buffering") is not None
    events.start(live(thread), operation)
    tasks.resume()
    assert ObservationEvent.objects.get().state == "running", "the caller may be alive"
    expire(thread)
    head = generations.open_generation(
        None, live(thread), "* Corrected", origin="edit", read_log="", user_name="ann"
    )
    assert claims.list_abandoned_records() == [head.pk]
    tasks.resume()
    event = ObservationEvent.objects.get(operation=operation)
    assert event.state == "failed" and event.finished_at is not None
    assert live(thread).lease_token is None and live(thread).reflection_token is None
    assert claims.list_abandoned_records() == []
