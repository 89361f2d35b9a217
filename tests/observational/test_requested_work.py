"""What people ask a worker for is stored on the record until it is done."""

from collections.abc import Callable

import pytest

from mastra_memory import tasks
from mastra_memory.exceptions import ProviderRefused
from mastra_memory.memory import Memory, maintenance
from mastra_memory.models import ObservationEvent
from mastra_memory.observational import claims, cycle, generations, requested_work
from mastra_memory.observational.keys import RecordKey
from mastra_memory.types import StoredThread
from tests.observational.engine import count_states, live, observer, say
from tests.support.factories import make_thread

pytestmark = pytest.mark.django_db


@pytest.fixture
def thread(memory_settings: Callable[..., None]) -> StoredThread:
    """Return a thread with one message, which is far below the threshold."""
    memory_settings(OPTIONS={"observationalMemory": True})
    thread = make_thread("alice", "t")
    say(Memory(), thread, 10)
    return thread


def test_request__is_found_again_without_the_broker(thread: StoredThread) -> None:
    # The task is not sent: nothing commits in this test.
    Memory().start_observing(thread_id=thread.id, user_name="ann")
    assert live(thread).requests == {"observe": "ann"}
    with observer():
        maintenance.run_due_observations()
    assert count_states(thread) == {"observed": 1}
    event = ObservationEvent.objects.get()
    assert (event.operation, event.user_name) == ("observation", "ann")
    assert live(thread).requests == {} and live(thread).due_at is None
    Memory().start_reflecting(thread_id=thread.id, user_name="bob")
    with observer():
        tasks.observe(live(thread).pk)
    assert live(thread).generation_count == 1 and live(thread).requests == {}
    assert ObservationEvent.objects.get(operation="reflection").user_name == "bob"


def test_request__moves_to_the_next_generation(thread: StoredThread) -> None:
    Memory().start_observing(thread_id=thread.id, user_name="ann")
    old = live(thread)
    head = generations.open_generation(None, old, "* Corrected", origin="edit", read_log="")
    old.refresh_from_db()
    assert (old.requests, head.requests) == ({}, {"observe": "ann"})
    with observer():
        requested_work.do_requests(old.pk)
    assert count_states(thread) == {"observed": 1}


def test_request__stays_while_another_worker_is_at_work(thread: StoredThread) -> None:
    Memory().start_observing(thread_id=thread.id)
    claim = claims.claim_observing(live(thread), "buffering")
    assert claim is not None
    with observer() as model:
        tasks.observe(live(thread).pk)
        assert not model.requests and live(thread).requests == {"observe": ""}
        claims.release(claim)
        assert claims.list_due_records() == [live(thread).pk]
        tasks.observe(live(thread).pk)
    assert count_states(thread) == {"observed": 1} and live(thread).due_at is None


@pytest.mark.parametrize("error", [ProviderRefused("no"), RuntimeError("unexpected")])
def test_request__that_fails_is_not_repeated(thread: StoredThread, error: Exception) -> None:
    Memory().start_observing(thread_id=thread.id)
    with observer(error, error) as model:
        try:
            tasks.observe(live(thread).pk)
        except RuntimeError:
            cycle.run_due_cycle(live(thread).pk)
    assert live(thread).requests == {} and live(thread).due_at is None
    assert len(model.requests) == 1
    assert ObservationEvent.objects.get().state == "failed"


def test_request__during_a_cycle_keeps_the_record_due(thread: StoredThread) -> None:
    Memory().request_observation(thread_id=thread.id)
    due_at = live(thread).due_at
    Memory().start_observing(thread_id=thread.id)
    key = RecordKey.of_record(live(thread))
    assert not claims.finish_work(key, live(thread).due_at) and due_at is not None
    claims.fail_work(key, "refused", retry_after=None)
    assert claims.list_due_records() == [live(thread).pk]


def test_request__of_an_agent_that_does_not_observe_is_dropped(
    thread: StoredThread, memory_settings: Callable[..., None]
) -> None:
    Memory().start_observing(thread_id=thread.id)
    memory_settings(OPTIONS={})
    tasks.observe(live(thread).pk)
    assert live(thread).requests == {} and live(thread).due_at is None
