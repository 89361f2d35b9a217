"""The whole cycle: saves request work, and workers observe, buffer, activate and reflect."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from mastra_memory.memory import Memory
from mastra_memory.models import ObservationalRecord, ObservationChunk, ObservationEvent, Thread
from mastra_memory.observational import cycle, generations, idle
from mastra_memory.observational.keys import RecordKey
from tests.conftest import Statements
from tests.observational.engine import (
    SMALL,
    SYNC,
    check_invariants,
    count_states,
    do_due_work,
    live,
    observer,
    say,
    states,
    words,
)
from tests.support.factories import a_message, make_thread, moment

pytestmark = pytest.mark.django_db


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


def test_idle__chunks_are_activated(configure: Callable[..., Memory]) -> None:
    memory, thread = configure(activateAfterIdle="5m"), make_thread()
    with observer():
        for _ in range(3):
            say(memory, thread, role="assistant")
            do_due_work()
    assert count_states(thread) == {"buffered": 3}
    assert idle.activate_idle() == 0
    from mastra_memory.models import Message

    Message.objects.update(created_at=timezone.now() - timedelta(minutes=6))
    assert idle.activate_idle() == 1
    assert count_states(thread) == {"observed": 3}
    assert ObservationEvent.objects.get(operation="activation").data["triggeredBy"] == "ttl"


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


def test_cycle__without_work_reads_no_log(
    configure: Callable[..., Memory], statements: Statements
) -> None:
    memory, thread = configure(), make_thread()
    with observer():
        say(memory, thread, 10)
        memory.request_observation(thread_id=thread.id)
        with statements() as sent:
            assert cycle.run_due_cycle(live(thread).pk) is None
    logs = [statement for statement in sent if '"active_observations"' in statement]
    assert len(logs) == 1, "only the test itself reads it"
