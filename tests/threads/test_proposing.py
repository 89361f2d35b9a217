"""When a thread gets a title, from whom, and what happens when nobody answers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from pytest_django import DjangoCaptureOnCommitCallbacks, Settings

from mastra_memory import tasks
from mastra_memory.exceptions import ProviderRefused, ProviderUnavailable
from mastra_memory.llm.extractive import build_headline
from mastra_memory.memory import Memory
from mastra_memory.models import ModelUsage, Thread
from mastra_memory.testing import FakeLLM
from mastra_memory.threads import titles
from mastra_memory.types import StoredThread
from tests.support.factories import a_message, make_thread, moment
from tests.support.openai_server import OpenAIServer, openai_server

Run = Callable[[], Any]
ON: dict[str, Any] = {"generateTitle": True}
LONG = "Could you help me to plan a journey through the Balkans that takes three weeks, please? "


@pytest.fixture(autouse=True)
def nothing_set(memory_settings: Callable[..., None]) -> None:
    memory_settings()


@pytest.fixture
def working(
    settings: Settings, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> Run:
    """A block after which the tasks it enqueued have run, in this process."""
    from project.celery import app

    @contextmanager
    def block() -> Iterator[None]:
        app.conf.task_always_eager = True
        try:
            with django_capture_on_commit_callbacks(execute=True):
                yield
        finally:
            app.conf.task_always_eager = False

    return block


def say(memory: Memory, thread: StoredThread, text: str = "Hello", **fields: Any) -> None:
    memory.save_messages([a_message(thread, text=text, **fields)])


def title_of(thread: StoredThread) -> str:
    return Thread.objects.get(pk=thread.id).title


def make_due(thread: StoredThread) -> None:
    Thread.objects.filter(pk=thread.id).update(title_due_at=Now())


@pytest.mark.django_db
def test_titles__one_call_a_thread_not_one_a_turn(working: Run) -> None:
    memory, thread = Memory(options=ON), make_thread()
    with FakeLLM("Trip to Rome") as model:
        for number in range(6):
            with working():
                say(memory, thread, f"Question {number}")
                say(memory, thread, f"Answer {number}", role="assistant")
    assert (title_of(thread), len(model.requests)) == ("Trip to Rome", 1)
    assert Thread.objects.get(pk=thread.id).title_source == "generated"


@pytest.mark.django_db
def test_titles__also_with_history_off(working: Run) -> None:
    memory, thread = Memory(options={**ON, "lastMessages": False}), make_thread()
    with FakeLLM("Trip") as model:
        for _ in range(3):
            with working():
                say(memory, thread)
    assert (title_of(thread), len(model.requests)) == ("Trip", 1)


@pytest.mark.django_db
@pytest.mark.parametrize("options", [{}, {"generateTitle": False}, {**ON, "readOnly": True}])
def test_titles__nobody_is_asked_where_the_options_say_no(
    options: dict[str, Any], working: Run
) -> None:
    thread = make_thread()
    with FakeLLM() as model, working():
        say(Memory(options=options), thread)
    assert (title_of(thread), model.requests) == ("", [])


@pytest.mark.django_db
def test_titles__a_thread_with_a_title_keeps_it(working: Run) -> None:
    thread = make_thread(title="Mine")
    with FakeLLM() as model, working():
        say(Memory(options=ON), thread)
    assert (title_of(thread), model.requests) == ("Mine", [])


@pytest.mark.django_db
def test_titles__wait_for_a_users_message_and_for_enough_of_them(working: Run) -> None:
    memory, thread = Memory(options={"generateTitle": {"minMessages": 3}}), make_thread()
    with FakeLLM("Named") as model:
        with working():
            say(memory, thread, role="assistant")
            say(memory, thread, role="assistant")
            say(memory, thread, role="assistant")
        assert not model.requests
        with working():
            say(memory, thread)
        assert (title_of(thread), len(model.requests)) == ("Named", 1)


@pytest.mark.django_db
def test_titles__model_and_instructions_are_those_of_the_options(working: Run) -> None:
    own = {"generateTitle": {"model": "openai/gpt-x", "instructions": "In Latin."}}
    with FakeLLM() as model, working():
        say(Memory(options=own), make_thread())
    asked = model.requests[0]
    assert (asked.model, asked.instructions) == ("openai/gpt-x", "In Latin.")


@pytest.mark.django_db
def test_titles__the_model_reads_what_was_said_and_done(working: Run) -> None:
    thread = make_thread()
    call = {"state": "result", "toolCallId": "c", "toolName": "weather", "args": {"city": "Rome"}}
    content = {
        "format": 2,
        "parts": [
            {"type": "reasoning", "reasoning": "look it up"},
            {"type": "tool-invocation", "toolInvocation": {**call, "result": "x" * 500}},
            {"type": "text", "text": "It is warm."},
        ],
    }
    with FakeLLM() as model, working():
        say(Memory(options=ON), thread, "Weather </conversation> in Rome?", at=0)
        say(Memory(options=ON), thread, role="assistant", content=content, at=1)
    assert model.requests[0].prompt.splitlines() == [
        "<conversation>",
        "User: Weather &lt;/conversation> in Rome?",
        "Reasoning: look it up",
        'Tool Call weather: {"city":"Rome"}',
        "Tool Result weather: " + "x" * 200,
        "Assistant: It is warm.",
        "</conversation>",
    ]


@pytest.mark.django_db
def test_titles__one_that_a_person_types_meanwhile_wins() -> None:
    memory, thread = Memory(options=ON), make_thread()
    say(memory, thread)

    def slow(_: Any) -> str:
        memory.update_thread(thread.id, title="Typed")
        return "Generated"

    with FakeLLM(slow):
        titles.generate_title(thread.id)
    stored = Thread.objects.get(pk=thread.id)
    assert (stored.title, stored.title_source, stored.title_state) == ("Typed", "manual", "done")


@pytest.mark.django_db
def test_titles__a_thread_deleted_meanwhile_stays_deleted_and_the_money_is_counted() -> None:
    memory, thread = Memory(options=ON), make_thread()
    say(memory, thread)

    def slow(_: Any) -> str:
        memory.delete_thread(thread.id)
        return "Generated"

    with FakeLLM(slow):
        assert titles.generate_title(thread.id) is None
    assert not Thread.objects.exists()
    used = ModelUsage.objects.get()
    assert (used.thread_id, used.resource_id, used.input_tokens) == (None, None, 100)


@pytest.mark.django_db
def test_titles__metadata_and_dates_stay(working: Run) -> None:
    thread = make_thread(metadata={"a": 1})
    with FakeLLM("T"), working():
        say(Memory(options=ON), thread)
        before = Thread.objects.get(pk=thread.id)
    after = Thread.objects.get(pk=thread.id)
    assert after.title == "T"
    assert (after.metadata, after.created_at) == ({"a": 1}, before.created_at)
    assert after.updated_at == before.updated_at


@pytest.mark.django_db
@pytest.mark.parametrize(
    "answer",
    [
        "",
        "  ",
        "<think>hm</think>",
        ProviderRefused("no key"),
        RuntimeError("boom"),
        '""',
        "<think>endless",
    ],
)
def test_titles__without_an_answer_the_first_user_message_is_the_title(
    answer: Any, working: Run
) -> None:
    memory, thread = Memory(options=ON), make_thread()
    with FakeLLM(answer) as model, working():
        say(memory, thread, "I am here to help.", role="assistant", at=0)
        say(memory, thread, LONG, at=1)
    with FakeLLM(answer) as again, working():
        say(memory, thread, "More", at=2)
    assert title_of(thread) == build_headline(LONG, 80)
    assert (len(model.requests), len(again.requests)) == (1, 0)


@pytest.mark.django_db
def test_titles__an_unavailable_model_is_asked_three_times_in_all(working: Run) -> None:
    memory, thread = Memory(options=ON), make_thread()
    with FakeLLM(ProviderUnavailable("busy")) as model:
        for turn in range(8):
            with working():
                say(memory, thread, f"Turn {turn}")
                make_due(thread)
            tasks.generate_title(thread.id)
    assert (title_of(thread), len(model.requests)) == ("Turn 0", 3)


@pytest.mark.django_db
def test_titles__after_a_failure_the_work_waits_and_is_found_from_the_rows(working: Run) -> None:
    memory, thread = Memory(options=ON), make_thread()
    with FakeLLM(ProviderUnavailable("busy"), "Named") as model:
        with working():
            say(memory, thread)
        assert (titles.list_due_threads(), len(model.requests)) == ([], 1)
        assert Thread.objects.get(pk=thread.id).title_error == "busy"
        make_due(thread)
        assert titles.list_due_threads() == [thread.id]
        tasks.generate_title(thread.id)
    assert (title_of(thread), titles.list_due_threads()) == ("Named", [])


@pytest.mark.django_db
def test_propose_title__two_workers_make_one_call() -> None:
    memory, thread = Memory(options=ON), make_thread()
    say(memory, thread)

    def slow(_: Any) -> str:
        titles.generate_title(thread.id)  # the same task, delivered twice
        return "Once"

    with FakeLLM(slow) as model:
        titles.generate_title(thread.id)
    assert (title_of(thread), len(model.requests)) == ("Once", 1)


@pytest.mark.django_db
def test_propose_title__a_worker_that_died_is_not_waited_for_for_ever() -> None:
    memory, thread = Memory(options=ON), make_thread()
    say(memory, thread)
    with FakeLLM(KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        titles.generate_title(thread.id)
    assert titles.list_due_threads() == []
    Thread.objects.filter(pk=thread.id).update(title_due_at=moment())
    with FakeLLM("Later"):
        tasks.generate_title(titles.list_due_threads()[0])
    assert title_of(thread) == "Later"


@pytest.mark.django_db
def test_titles__a_message_without_words_waits_for_one_with_words(working: Run) -> None:
    memory, thread = Memory(options=ON), make_thread()
    nothing = {"format": 2, "parts": [{"type": "data-x", "data": 1}]}
    with FakeLLM("Named") as model:
        with working():
            say(memory, thread, content=nothing)
        assert not model.requests
        with working():
            say(memory, thread)
    assert title_of(thread) == "Named"


@pytest.mark.django_db
def test_ask_for_titles__is_one_statement_on_top_of_a_save(statements: Any) -> None:
    thread = make_thread()
    with statements() as without:
        say(Memory(options={}), thread)
    with statements() as wanted:
        say(Memory(options=ON), thread)
    assert len(wanted) == len(without) + 1


@pytest.fixture
def provider(settings: Settings) -> Iterator[OpenAIServer]:
    with openai_server("Trip to Rome") as server:
        settings.MASTRA_MEMORY = {
            "MODEL": "openai/gpt-5-mini",
            "OPTIONS": ON,
            "PROVIDERS": {"openai": {"base_url": server.base_url, "api_key": "secret"}},
            "MODEL_TIMEOUT": 5.0,
        }
        yield server


@pytest.mark.django_db
def test_titles__from_a_model_that_speaks_the_openai_protocol(
    provider: OpenAIServer, working: Run
) -> None:
    thread = make_thread()
    with working():
        say(Memory(), thread, "Plan a trip to Rome")
    assert title_of(thread) == "Trip to Rome"
    assert len(provider.requests) == 1
    used = ModelUsage.objects.get()
    assert (used.thread_id, used.purpose, used.model) == (thread.id, "title", "openai/gpt-5-mini")
    assert (used.input_tokens, used.output_tokens) == (120, 8)
    assert used.cost is not None and used.cost > 0


@pytest.mark.django_db
@pytest.mark.parametrize("status", [429, 500, 503])
def test_titles__a_provider_that_fails_gets_three_requests(
    status: int, provider: OpenAIServer, working: Run
) -> None:
    provider.script[:] = [status]
    memory, thread = Memory(), make_thread()
    for _ in range(5):
        with working():
            say(memory, thread, "Plan a trip to Rome")
        make_due(thread)
        tasks.generate_title(thread.id)
    assert (title_of(thread), len(provider.requests)) == ("Plan a trip to Rome", 3)


@pytest.mark.django_db
@pytest.mark.parametrize("status", [400, 401, 404])
def test_titles__a_provider_that_refuses_gets_one(
    status: int, provider: OpenAIServer, working: Run
) -> None:
    provider.script[:] = [status]
    thread = make_thread()
    with working():
        say(Memory(), thread, "Plan a trip to Rome")
    assert (title_of(thread), len(provider.requests)) == ("Plan a trip to Rome", 1)
    assert connection.is_usable()
