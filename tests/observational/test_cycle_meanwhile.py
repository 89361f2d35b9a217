"""What happens while the Observer writes: saves, edits, deletions, and other workers."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from mastra_memory.memory import Memory
from mastra_memory.models import ObservationalRecord, ObservationChunk, ObservationEvent
from mastra_memory.observational import claims, cycle
from tests.observational.engine import (
    SYNC,
    FakeObserver,
    check_invariants,
    count_states,
    do_due_work,
    live,
    observer,
    say,
    states,
    words,
)
from tests.support.factories import a_message, make_thread, save, text_content

pytestmark = pytest.mark.django_db


class SavingObserver(FakeObserver):
    """Save messages while the model is at work."""

    def __init__(self, act: Callable[[], object]) -> None:
        super().__init__()
        self.act = act

    def __call__(self, request: Any) -> Any:
        if not self.requests:
            self.act()
        return super().__call__(request)


def run_while_observing(act: Callable[[], object]) -> FakeObserver:
    from mastra_memory import llm

    model = SavingObserver(act)
    with llm.override_model(model):
        do_due_work()
    return model


def test_messages_saved_meanwhile__are_observed_once(configure: Callable[..., Memory]) -> None:
    memory, thread = configure(), make_thread()
    for _ in range(3):
        say(memory, thread)
    new: list[str] = []
    run_while_observing(lambda: new.append(say(memory, thread)))
    found = states(thread)
    assert found.pop(new[0]) == "pending" and set(found.values()) == {"buffered"}
    with observer():
        for _ in range(12):
            say(memory, thread)
            do_due_work()
        memory.observe(thread_id=thread.id)
    assert count_states(thread) == {"observed": 16}
    ids = [key for chunk in ObservationChunk.objects.all() for key in chunk.message_ids]
    assert sorted(ids) == sorted(states(thread)) and len(ids) == len(set(ids))
    check_invariants()


def test_edited_meanwhile__stays_pending(configure: Callable[..., Memory]) -> None:
    memory, thread = configure(**SYNC), make_thread()
    first, second = say(memory, thread, 600), say(memory, thread, 600)
    changes = [{"id": first, "content": text_content("entirely different")}]
    run_while_observing(lambda: memory.update_messages(changes))
    assert states(thread) == {first: "pending", second: "observed"}


def test_deleted_meanwhile__is_not_an_error(configure: Callable[..., Memory]) -> None:
    memory, thread = configure(**SYNC), make_thread()
    first, second = say(memory, thread, 600), say(memory, thread, 600)
    run_while_observing(lambda: memory.delete_messages([first]))
    assert states(thread) == {second: "observed"}
    assert ObservationChunk.objects.get().message_ids == [second]


def test_cleared_meanwhile__the_result_is_discarded(configure: Callable[..., Memory]) -> None:
    memory, thread = configure(**SYNC), make_thread()
    say(memory, thread, 2_000)
    run_while_observing(lambda: memory.clear_observations(thread_id=thread.id))
    assert not ObservationalRecord.objects.exists()


def test_thread_deleted_meanwhile__nothing_is_left(configure: Callable[..., Memory]) -> None:
    memory, thread = configure(**SYNC), make_thread()
    say(memory, thread, 2_000)
    run_while_observing(lambda: memory.delete_thread(thread.id))
    assert not ObservationalRecord.objects.exists() and not ObservationEvent.objects.exists()


def test_claim_taken_over__the_late_result_is_discarded(configure: Callable[..., Memory]) -> None:
    memory, thread = configure(**SYNC), make_thread()
    say(memory, thread, 2_000)

    def take_over() -> None:
        ObservationalRecord.objects.update(lease_expires_at=timezone.now())
        assert claims.claim_observing(live(thread), "observing")

    run_due = [record_id for record_id in claims.list_due_records()]
    from mastra_memory import llm

    with llm.override_model(SavingObserver(take_over)):
        assert cycle.run_due_cycle(run_due[0]) is None
    assert live(thread).active_observations == "" and live(thread).due_at is not None
    assert ObservationEvent.objects.get(operation="observation").state == "discarded"
    ObservationalRecord.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    with observer():
        do_due_work()
    assert count_states(thread) == {"observed": 1}


def test_busy__another_worker_does_nothing(configure: Callable[..., Memory]) -> None:
    memory, thread = configure(**SYNC), make_thread()
    say(memory, thread, 2_000)
    claim = claims.claim_observing(live(thread), "observing")
    assert claim is not None
    with observer() as model:
        assert cycle.run_due_cycle(live(thread).pk) is None
        assert not model.requests and live(thread).due_at is not None
        claims.release(claim)
        do_due_work()
    assert count_states(thread) == {"observed": 1}


def test_saves_by_others__wait_for_nothing(configure: Callable[..., Memory]) -> None:
    """A message that is stored without observation is found by the next cycle."""
    memory, thread = configure(**SYNC), make_thread()
    with observer():
        say(memory, thread, 2_000, at=1)
        do_due_work()
        save([a_message(thread, text=words(2_000), at=2)])
        memory.request_observation(thread_id=thread.id)
        do_due_work()
    assert count_states(thread) == {"observed": 2}
