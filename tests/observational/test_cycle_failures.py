"""A cycle whose model fails or answers nonsense."""

from collections.abc import Callable

import pytest
from django.utils import timezone

from mastra_memory.exceptions import ProviderRefused, ProviderUnavailable
from mastra_memory.memory import Memory
from mastra_memory.models import ObservationEvent
from mastra_memory.observational import claims, cycle
from tests.observational.engine import (
    SYNC,
    check_invariants,
    count_states,
    do_due_work,
    live,
    make_due,
    observer,
    say,
)
from tests.support.factories import make_thread

pytestmark = pytest.mark.django_db


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
