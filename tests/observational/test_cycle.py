"""The whole cycle: saves request work, and workers observe, buffer, activate and reflect."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from mastra_memory.exceptions import ProviderRefused, ProviderUnavailable
from mastra_memory.memory import Memory
from mastra_memory.models import ObservationalRecord, ObservationChunk, ObservationEvent, Thread
from mastra_memory.observational import claims, cycle, generations, idle_activation
from mastra_memory.observational.keys import RecordKey
from tests.observational.engine import (
    SMALL,
    FakeObserver,
    check_invariants,
    do_due_work,
    live,
    observer,
    say,
    states,
    words,
)
from tests.support.factories import a_message, make_thread, moment, save, text_content

pytestmark = pytest.mark.django_db


@pytest.fixture
def configure(memory_settings: Callable[..., None]) -> Callable[..., Memory]:
    """Set the options of observational memory, and return a memory that has them."""

    def build(**options: Any) -> Memory:
        memory_settings(OPTIONS={"observationalMemory": SMALL | options})
        return Memory()

    return build


SYNC = {"observation": {"messageTokens": 1_000, "bufferTokens": False}}


def test_sync__messages_are_observed_at_the_threshold(configure: Callable[..., Memory]) -> None:
    memory, thread = configure(**SYNC), make_thread()
    with observer() as model:
        for _ in range(8):
            say(memory, thread)
            do_due_work()
        assert not model.requests and set(states(thread).values()) == {"pending"}
        for _ in range(4):
            say(memory, thread)
            do_due_work()
    assert model.purposes == ["observation"]
    found = list(states(thread).values())
    assert found.count("observed") >= 9 and found.count("pending") == 12 - found.count("observed")
    assert "Observation 1" in live(thread).active_observations
    check_invariants()


def test_buffering__a_chunk_is_prepared_and_activated(configure: Callable[..., Memory]) -> None:
    memory, thread = configure(), make_thread()
    with observer() as model:
        for _ in range(4):
            say(memory, thread)
            do_due_work()
        assert model.purposes == ["observation"]
        assert live(thread).active_observations == ""
        assert set(states(thread).values()) == {"buffered", "pending"}
        for _ in range(12):
            say(memory, thread)
            do_due_work()
    assert "Observation 1" in live(thread).active_observations
    assert "observed" in states(thread).values()
    check_invariants()


def count_states(thread: Any) -> dict[str, int]:
    found = list(states(thread).values())
    return {name: found.count(name) for name in sorted(set(found))}


def make_due(thread: Any) -> None:
    """Let the time of the next attempt pass."""
    ObservationalRecord.objects.live().filter(thread_id=thread.id).update(due_at=timezone.now())


def test_activation__a_fresh_tail_that_is_too_big_is_observed(
    configure: Callable[..., Memory],
) -> None:
    memory, thread = configure(), make_thread()
    with observer() as model:
        for _ in range(4):
            say(memory, thread)
            do_due_work()
        assert count_states(thread) == {"buffered": 3, "pending": 1}
        say(memory, thread, 3_000)
        do_due_work()
    assert count_states(thread) == {"observed": 5}
    assert model.purposes == ["observation", "observation"]
    log = live(thread).active_observations
    assert log.index("Observation 1") < log.index("Observation 2")
    check_invariants()


def test_large_message__is_observed_and_counts_fully(configure: Callable[..., Memory]) -> None:
    memory, thread = configure(), make_thread()
    with observer():
        say(memory, thread, 5_000)
        assert memory.get_observational_status(thread_id=thread.id).pending_tokens >= 5_000
        do_due_work()
    status = memory.get_observational_status(thread_id=thread.id)
    assert count_states(thread) == {"observed": 1} and status.pending_tokens == 0
    assert live(thread).pending_message_tokens == 0


def test_large_tool_result__counts_fully_but_the_observer_gets_it_cut(
    configure: Callable[..., Memory],
) -> None:
    memory, thread = configure(), make_thread()
    call = {"toolCallId": "c", "toolName": "read", "args": {}, "state": "result"}
    part = {"type": "tool-invocation", "toolInvocation": call | {"result": words(150_000)}}
    content = {"format": 2, "parts": [part]}
    with observer() as model:
        memory.save_messages([a_message(thread, role="assistant", content=content)])
        status = memory.get_observational_status(thread_id=thread.id)
        assert status.pending_tokens >= 150_000
        do_due_work()
    assert count_states(thread) == {"observed": 1}
    assert len(model.requests[0].prompt) < 60_000


def test_pending__is_counted_again_after_an_activation(configure: Callable[..., Memory]) -> None:
    memory, thread = configure(), make_thread()
    with observer():
        for _ in range(12):
            say(memory, thread)
            do_due_work()
        memory.request_observation(thread_id=thread.id)
        do_due_work()
    record = live(thread)
    status = memory.get_observational_status(thread_id=thread.id)
    assert count_states(thread)["observed"] > 0
    assert status.pending_tokens == record.pending_message_tokens < 1_000


@pytest.mark.parametrize("error", [ProviderUnavailable("away"), ProviderRefused("bad key")])
def test_failing_observer__saves_and_reads_go_on_and_attempts_are_limited(
    configure: Callable[..., Memory], error: Exception
) -> None:
    memory, thread = configure(), make_thread()
    with observer(*[error] * 3) as model:
        say(memory, thread, 2_000)
        for attempt in (1, 2, 3):
            make_due(thread)
            do_due_work()
            record = live(thread)
            assert (record.attempts, record.error) == (attempt, str(error))
            assert record.due_at > timezone.now() and record.active_observations == ""
            say(memory, thread, 10)
            assert len(memory.list_messages(thread.id).messages) == attempt + 1
            assert not claims.list_due_records()
        assert len(model.requests) == 3
        make_due(thread)
        do_due_work()
    record = live(thread)
    assert (record.attempts, record.error, record.due_at) == (0, "", None)
    assert count_states(thread) == {"observed": 4}
    failed = ObservationEvent.objects.filter(state="failed", error=str(error))
    assert failed.count() == 3
    check_invariants()


def test_refused_requests__wait_for_new_messages_after_some_attempts(
    configure: Callable[..., Memory],
) -> None:
    memory, thread = configure(), make_thread()
    with observer(*[ProviderRefused("bad key")] * 6) as model:
        say(memory, thread, 2_000)
        for _ in range(cycle.MAX_ATTEMPTS):
            make_due(thread)
            do_due_work()
        assert live(thread).due_at is None
        say(memory, thread, 10)
        do_due_work()
        assert len(model.requests) == cycle.MAX_ATTEMPTS + 1


@pytest.mark.parametrize(
    "answers",
    [
        ["abc " * 600] * 2,
        ["\x00" * 3_000] * 2,
        ["abc " * 600, "<observations>\n* 🔴 fine\n</observations>"],
        [""],
        ["Sorry, I cannot do that."],
        ["<observations>\n</observations>"],
    ],
)
def test_nonsense__never_changes_what_is_remembered(
    configure: Callable[..., Memory], answers: list[str]
) -> None:
    memory, thread = configure(**SYNC), make_thread()
    with observer("<observations>\n* 🔴 first\n</observations>", *answers):
        say(memory, thread, 2_000)
        do_due_work()
        say(memory, thread, 2_000)
        do_due_work()
    log = live(thread).active_observations
    assert log.startswith("* 🔴 first")
    if "fine" in "".join(answers):
        assert log.endswith("* 🔴 fine")
    else:
        assert log == "* 🔴 first"
    check_invariants()


@pytest.mark.parametrize("answer", ["abc " * 600, "", "No.", "<observations>\n</observations>"])
def test_nonsense__of_the_reflector_keeps_the_log(
    configure: Callable[..., Memory], answer: str
) -> None:
    memory, thread = configure(**SYNC, reflection={"observationTokens": 500}), make_thread()
    text = " ".join(f"w{number}" for number in range(600))
    note = f"<observations>\nDate: Jan 1, 2024\n* 🔴 {text}\n</observations>"
    with observer(note, *[answer] * 4) as model:
        say(memory, thread, 2_000)
        do_due_work()
        record = live(thread)
        assert record.generation_count == 0 and record.active_observations in note
        assert record.unproductive_reflection_tokens == record.observation_token_count
        calls = len(model.requests)
        memory.request_observation(thread_id=thread.id)
        do_due_work()
        assert len(model.requests) == calls
    assert ObservationEvent.objects.filter(operation="reflection", state="failed").count() == 1


def test_reflection__is_prepared_then_activated_and_keeps_chunks(
    configure: Callable[..., Memory],
) -> None:
    memory = configure(reflection={"observationTokens": 400})
    thread = make_thread()
    with observer(observation_tokens=60) as model:
        for _ in range(60):
            say(memory, thread)
            do_due_work()
            check_invariants()
            if ObservationalRecord.objects.filter(generation_count=2).exists():
                break
    record = live(thread)
    assert record.generation_count == 2 and record.origin_type == "reflection"
    assert record.active_observations.startswith("Date: Jan 1, 2024\n* 🔴 Reflection")
    assert record.observation_token_count < 400
    assert "reflection" in model.purposes
    counted = set(states(thread).values())
    assert "observed" in counted
    operations = set(ObservationEvent.objects.values_list("operation", flat=True))
    assert {"buffering", "activation", "reflection_buffering"} <= operations


def test_late_messages__are_observed_although_they_are_before_the_cursor(
    configure: Callable[..., Memory],
) -> None:
    memory, thread = configure(**SYNC), make_thread()
    with observer():
        say(memory, thread, 2_000, at=1_000)
        do_due_work()
        assert live(thread).last_observed_at == moment(1_000)
        late = say(memory, thread, 2_000, at=500)
        assert states(thread)[late] == "pending"
        do_due_work()
    assert count_states(thread) == {"observed": 2}
    assert live(thread).last_observed_at == moment(1_000)


def test_turning_it_on__observes_what_was_said_before(
    configure: Callable[..., Memory], memory_settings: Callable[..., None]
) -> None:
    thread = make_thread()
    memory_settings(OPTIONS={})
    for _ in range(5):
        say(Memory(), thread, 500)
    memory = configure(**SYNC)
    with observer() as model:
        say(memory, thread, 10)
        do_due_work()
    assert count_states(thread) == {"observed": 6} and len(model.requests) == 1


def test_backlog__is_observed_in_batches(configure: Callable[..., Memory]) -> None:
    options = {"messageTokens": 1_000, "bufferTokens": False, "maxTokensPerBatch": 2_000}
    memory, thread = configure(observation=options), make_thread()
    batch = [a_message(thread, text=words(500), at=n) for n in range(20)]
    with observer() as model:
        memory.save_messages(batch)
        do_due_work()
    assert count_states(thread) == {"observed": 20}
    assert len(model.requests) == 5
    chunks = ObservationChunk.objects.order_by("position")
    assert [name for chunk in chunks for name in chunk.message_ids] == [m["id"] for m in batch]


def test_pending_tool_call__waits_for_its_outcome(configure: Callable[..., Memory]) -> None:
    memory, thread = configure(**SYNC), make_thread()
    call = {"toolCallId": "c", "toolName": "read", "args": {"path": "x"}, "state": "call"}
    content = {"format": 2, "parts": [{"type": "tool-invocation", "toolInvocation": call}]}
    with observer() as model:
        say(memory, thread, 2_000, at=1)
        asked = a_message(thread, at=2, role="assistant", content=content)
        memory.save_messages([asked])
        do_due_work()
        assert states(thread)[asked["id"]] == "pending"
        result = {**call, "state": "result", "result": words(2_000)}
        done = {"format": 2, "parts": [{"type": "tool-invocation", "toolInvocation": result}]}
        memory.save_messages([asked | {"content": done}])
        do_due_work()
    assert count_states(thread) == {"observed": 2}
    assert "Tool Result read" in model.requests[-1].prompt


def test_title_and_values__of_a_buffered_observation_are_stored(
    configure: Callable[..., Memory],
) -> None:
    extract = [{"name": "Mood", "instructions": "the mood"}]
    observation = SMALL["observation"] | {"threadTitle": True, "extract": extract}
    memory, thread = configure(observation=observation), make_thread()
    title = "<thread-title>A trip to Rome</thread-title>"
    answer = f"<observations>\n* 🔴 a trip\n</observations>\n{title}\n<mood>cheerful</mood>"
    with observer(answer):
        for _ in range(4):
            say(memory, thread)
            do_due_work()
    stored = Thread.objects.get(pk=thread.id)
    assert (stored.title, stored.title_source) == ("A trip to Rome", "observed")
    assert stored.metadata is not None
    assert stored.metadata["mastra"]["om"]["extracted"] == {"mood": "cheerful"}
    assert live(thread).active_observations == ""
    event = ObservationEvent.objects.get(operation="title")
    assert (event.data["oldTitle"], event.data["newTitle"]) == ("", "A trip to Rome")


def test_title__of_a_person_is_kept(configure: Callable[..., Memory]) -> None:
    observation = SMALL["observation"] | {"threadTitle": True}
    memory, thread = configure(observation=observation), make_thread(title="Mine")
    answer = "<observations>\n* 🔴 x\n</observations>\n<thread-title>Another one</thread-title>"
    with observer(answer):
        say(memory, thread, 2_000)
        do_due_work()
    assert Thread.objects.get(pk=thread.id).title == "Mine"


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


def test_idle__chunks_are_activated(configure: Callable[..., Memory]) -> None:
    memory, thread = configure(activateAfterIdle="5m"), make_thread()
    with observer():
        for _ in range(3):
            say(memory, thread, role="assistant")
            do_due_work()
    assert count_states(thread) == {"buffered": 3}
    assert idle_activation.activate_idle() == 0
    from mastra_memory.models import Message

    Message.objects.update(created_at=timezone.now() - timedelta(minutes=6))
    assert idle_activation.activate_idle() == 1
    assert count_states(thread) == {"observed": 3}
    assert ObservationEvent.objects.get(operation="activation").data["triggeredBy"] == "ttl"


def test_unexpected_error__is_raised_but_not_repeated_at_once(
    configure: Callable[..., Memory],
) -> None:
    memory, thread = configure(**SYNC), make_thread()
    say(memory, thread, 2_000)
    with observer(RuntimeError("secret words")), pytest.raises(RuntimeError):
        cycle.run_due_cycle(claims.list_due_records()[0])
    record = live(thread)
    assert (record.attempts, record.error) == (1, "RuntimeError")
    assert record.due_at > timezone.now() and not claims.list_due_records()


def test_agent_without_it__drops_the_request(
    configure: Callable[..., Memory], memory_settings: Callable[..., None]
) -> None:
    memory, thread = configure(**SYNC), make_thread()
    say(memory, thread, 2_000)
    memory_settings(OPTIONS={})
    with observer() as model:
        do_due_work()
    assert not model.requests and live(thread).due_at is None


def test_finalize__activates_everything_and_observes_if_needed(
    configure: Callable[..., Memory],
) -> None:
    memory, thread = configure(), make_thread()
    with observer() as model:
        for _ in range(7):
            say(memory, thread)
            do_due_work()
        outcome = memory.finalize_observations(thread_id=thread.id)
    assert (outcome.activated, outcome.observed, outcome.reflected) == (True, False, False)
    assert outcome.record == live(thread) and "Observation 2" in live(thread).active_observations
    assert count_states(thread).get("buffered", 0) == 0 and len(model.requests) == 2


def test_observe__takes_everything_at_once(configure: Callable[..., Memory]) -> None:
    memory, thread = configure(), make_thread()
    with observer() as model:
        say(memory, thread, 20)
        outcome = memory.observe(thread_id=thread.id, user_name="ann")
        assert outcome.observed and count_states(thread) == {"observed": 1}
        again = memory.observe(thread_id=thread.id)
        assert not again.observed and len(model.requests) == 1
    assert ObservationEvent.objects.get(operation="observation").user_name == "ann"


def test_reflect__condenses_at_once_and_empty_logs_stay(configure: Callable[..., Memory]) -> None:
    memory, thread = configure(), make_thread()
    with observer() as model:
        assert not memory.reflect(thread_id=thread.id).reflected
        say(memory, thread, 20)
        memory.observe(thread_id=thread.id)
        outcome = memory.reflect(thread_id=thread.id, prompt="Keep names", user_name="ann")
    assert outcome.reflected and live(thread).generation_count == 1
    assert "Keep names" in model.requests[-1].prompt
    key = RecordKey.about_thread(thread.id, thread.resource_id)
    assert generations.find_live(key) == live(thread)


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
