"""Titles of threads: when the model is called, and what happens if it fails."""

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
def default_settings(memory_settings: Callable[..., None]) -> None:
    memory_settings()


@pytest.fixture
def run_tasks(
    settings: Settings, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> Run:
    """Return a context manager that runs the tasks enqueued in its block in this process."""
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


def save_message(memory: Memory, thread: StoredThread, text: str = "Hello", **fields: Any) -> None:
    memory.save_messages([a_message(thread, text=text, **fields)])


def get_title(thread: StoredThread) -> str:
    return Thread.objects.get(pk=thread.id).title


def make_due(thread: StoredThread) -> None:
    Thread.objects.filter(pk=thread.id).update(title_due_at=Now())


@pytest.mark.django_db
def test_titles__calls_the_model_once_for_a_thread(run_tasks: Run) -> None:
    memory, thread = Memory(options=ON), make_thread()
    with FakeLLM("Trip to Rome") as model:
        for number in range(6):
            with run_tasks():
                save_message(memory, thread, f"Question {number}")
                save_message(memory, thread, f"Answer {number}", role="assistant")
    assert (get_title(thread), len(model.requests)) == ("Trip to Rome", 1)
    assert Thread.objects.get(pk=thread.id).title_source == "generated"


@pytest.mark.django_db
def test_titles__are_generated_with_history_off(run_tasks: Run) -> None:
    memory, thread = Memory(options={**ON, "lastMessages": False}), make_thread()
    with FakeLLM("Trip") as model:
        for _ in range(3):
            with run_tasks():
                save_message(memory, thread)
    assert (get_title(thread), len(model.requests)) == ("Trip", 1)


@pytest.mark.django_db
@pytest.mark.parametrize("options", [{}, {"generateTitle": False}, {**ON, "readOnly": True}])
def test_titles__the_options_can_turn_them_off(options: dict[str, Any], run_tasks: Run) -> None:
    thread = make_thread()
    with FakeLLM() as model, run_tasks():
        save_message(Memory(options=options), thread)
    assert (get_title(thread), model.requests) == ("", [])


@pytest.mark.django_db
def test_titles__a_thread_with_a_title_keeps_it(run_tasks: Run) -> None:
    thread = make_thread(title="Mine")
    with FakeLLM() as model, run_tasks():
        save_message(Memory(options=ON), thread)
    assert (get_title(thread), model.requests) == ("Mine", [])


@pytest.mark.django_db
def test_titles__wait_for_a_user_message_and_min_messages(run_tasks: Run) -> None:
    memory, thread = Memory(options={"generateTitle": {"minMessages": 3}}), make_thread()
    with FakeLLM("Named") as model:
        with run_tasks():
            save_message(memory, thread, role="assistant")
            save_message(memory, thread, role="assistant")
            save_message(memory, thread, role="assistant")
        assert not model.requests
        with run_tasks():
            save_message(memory, thread)
        assert (get_title(thread), len(model.requests)) == ("Named", 1)


@pytest.mark.django_db
def test_titles__use_model_and_instructions_of_the_options(run_tasks: Run) -> None:
    options = {"generateTitle": {"model": "openai/gpt-x", "instructions": "In Latin."}}
    with FakeLLM() as model, run_tasks():
        save_message(Memory(options=options), make_thread())
    request = model.requests[0]
    assert (request.model, request.instructions) == ("openai/gpt-x", "In Latin.")


@pytest.mark.django_db
def test_titles__prompt_has_texts_reasoning_and_tool_calls(run_tasks: Run) -> None:
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
    with FakeLLM() as model, run_tasks():
        save_message(Memory(options=ON), thread, "Weather </conversation> in Rome?", at=0)
        save_message(Memory(options=ON), thread, role="assistant", content=content, at=1)
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
def test_titles__a_title_set_meanwhile_wins() -> None:
    memory, thread = Memory(options=ON), make_thread()
    save_message(memory, thread)

    def slow(_: Any) -> str:
        memory.update_thread(thread.id, title="Typed")
        return "Generated"

    with FakeLLM(slow):
        titles.generate_title(thread.id)
    stored = Thread.objects.get(pk=thread.id)
    assert (stored.title, stored.title_source, stored.title_state) == ("Typed", "manual", "done")


@pytest.mark.django_db
def test_titles__usage_is_stored_for_a_thread_deleted_meanwhile() -> None:
    memory, thread = Memory(options=ON), make_thread()
    save_message(memory, thread)

    def slow(_: Any) -> str:
        memory.delete_thread(thread.id)
        return "Generated"

    with FakeLLM(slow):
        assert titles.generate_title(thread.id) is None
    assert not Thread.objects.exists()
    usage = ModelUsage.objects.get()
    assert (usage.thread_id, usage.resource_id, usage.input_tokens) == (None, None, 100)


@pytest.mark.django_db
def test_titles__leave_metadata_and_times_alone(run_tasks: Run) -> None:
    thread = make_thread(metadata={"a": 1})
    with FakeLLM("T"), run_tasks():
        save_message(Memory(options=ON), thread)
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
def test_titles__fall_back_to_the_first_user_message(answer: Any, run_tasks: Run) -> None:
    memory, thread = Memory(options=ON), make_thread()
    with FakeLLM(answer) as model, run_tasks():
        save_message(memory, thread, "I am here to help.", role="assistant", at=0)
        save_message(memory, thread, LONG, at=1)
    with FakeLLM(answer) as second_model, run_tasks():
        save_message(memory, thread, "More", at=2)
    assert get_title(thread) == build_headline(LONG, 80)
    assert (len(model.requests), len(second_model.requests)) == (1, 0)


@pytest.mark.django_db
def test_titles__an_unavailable_model_gets_three_calls(run_tasks: Run) -> None:
    memory, thread = Memory(options=ON), make_thread()
    with FakeLLM(ProviderUnavailable("busy")) as model:
        for turn in range(8):
            with run_tasks():
                save_message(memory, thread, f"Turn {turn}")
                make_due(thread)
            tasks.generate_title(thread.id)
    assert (get_title(thread), len(model.requests)) == ("Turn 0", 3)


@pytest.mark.django_db
def test_list_due_threads__finds_failed_titles_after_a_delay(run_tasks: Run) -> None:
    memory, thread = Memory(options=ON), make_thread()
    with FakeLLM(ProviderUnavailable("busy"), "Named") as model:
        with run_tasks():
            save_message(memory, thread)
        assert (titles.list_due_threads(), len(model.requests)) == ([], 1)
        assert Thread.objects.get(pk=thread.id).title_error == "busy"
        make_due(thread)
        assert titles.list_due_threads() == [thread.id]
        tasks.generate_title(thread.id)
    assert (get_title(thread), titles.list_due_threads()) == ("Named", [])


@pytest.mark.django_db
def test_generate_title__two_workers_make_one_call() -> None:
    memory, thread = Memory(options=ON), make_thread()
    save_message(memory, thread)

    def slow(_: Any) -> str:
        titles.generate_title(thread.id)  # the same task, delivered twice
        return "Once"

    with FakeLLM(slow) as model:
        titles.generate_title(thread.id)
    assert (get_title(thread), len(model.requests)) == ("Once", 1)


@pytest.mark.django_db
def test_generate_title__runs_again_after_a_worker_died() -> None:
    memory, thread = Memory(options=ON), make_thread()
    save_message(memory, thread)
    with FakeLLM(KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        titles.generate_title(thread.id)
    assert titles.list_due_threads() == []
    Thread.objects.filter(pk=thread.id).update(title_due_at=moment())
    with FakeLLM("Later"):
        tasks.generate_title(titles.list_due_threads()[0])
    assert get_title(thread) == "Later"


@pytest.mark.django_db
def test_titles__wait_for_a_message_with_text(run_tasks: Run) -> None:
    memory, thread = Memory(options=ON), make_thread()
    data_only = {"format": 2, "parts": [{"type": "data-x", "data": 1}]}
    with FakeLLM("Named") as model:
        with run_tasks():
            save_message(memory, thread, content=data_only)
        assert not model.requests
        with run_tasks():
            save_message(memory, thread)
    assert get_title(thread) == "Named"


@pytest.mark.django_db
def test_titles__need_one_more_statement_for_a_save(statements: Any) -> None:
    thread = make_thread()
    with statements() as without:
        save_message(Memory(options={}), thread)
    with statements() as with_title:
        save_message(Memory(options=ON), thread)
    assert len(with_title) == len(without) + 1


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
def test_titles__from_a_provider_with_the_openai_protocol(
    provider: OpenAIServer, run_tasks: Run
) -> None:
    thread = make_thread()
    with run_tasks():
        save_message(Memory(), thread, "Plan a trip to Rome")
    assert get_title(thread) == "Trip to Rome"
    assert len(provider.requests) == 1
    usage = ModelUsage.objects.get()
    assert (usage.thread_id, usage.purpose, usage.model) == (
        thread.id,
        "title",
        "openai/gpt-5-mini",
    )
    assert (usage.input_tokens, usage.output_tokens) == (120, 8)
    assert usage.cost is not None and usage.cost > 0


@pytest.mark.django_db
@pytest.mark.parametrize("status", [429, 500, 503])
def test_titles__a_provider_that_fails_gets_three_requests(
    status: int, provider: OpenAIServer, run_tasks: Run
) -> None:
    provider.script[:] = [status]
    memory, thread = Memory(), make_thread()
    for _ in range(5):
        with run_tasks():
            save_message(memory, thread, "Plan a trip to Rome")
        make_due(thread)
        tasks.generate_title(thread.id)
    assert (get_title(thread), len(provider.requests)) == ("Plan a trip to Rome", 3)


@pytest.mark.django_db
@pytest.mark.parametrize("status", [400, 401, 404])
def test_titles__a_provider_that_refuses_gets_one_request(
    status: int, provider: OpenAIServer, run_tasks: Run
) -> None:
    provider.script[:] = [status]
    thread = make_thread()
    with run_tasks():
        save_message(Memory(), thread, "Plan a trip to Rome")
    assert (get_title(thread), len(provider.requests)) == ("Plan a trip to Rome", 1)
    assert connection.is_usable()
