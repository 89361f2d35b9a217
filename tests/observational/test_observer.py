"""Requests to the Observer and how its answers are used."""

from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from mastra_memory import signals
from mastra_memory.content import message_text
from mastra_memory.db import json_text
from mastra_memory.exceptions import DegenerateOutput, ProviderRefused, ProviderUnavailable
from mastra_memory.models import ModelUsage
from mastra_memory.observational import observer
from mastra_memory.observational.config import ObservationSettings
from mastra_memory.observational.observer import Observation
from mastra_memory.options import ObservationHooks
from mastra_memory.testing import FakeLLM
from mastra_memory.types import StoredMessage
from tests.observational.observing import make_settings, observe, save_messages
from tests.support.factories import make_thread

pytestmark = pytest.mark.django_db
NOISE = "The same again and again. " * 200


@pytest.fixture(autouse=True)
def default_settings(memory_settings: Callable[..., None]) -> None:
    memory_settings()


def test_observe_messages__request_and_answer() -> None:
    result, [request] = observe(
        "<observations>\nDate: Jan 1, 2024\n* 🔴 (00:00) User has a dog\n</observations>\n"
        "<current-task>\nTalk about dogs\n</current-task>"
    )
    assert result.text == "Date: Jan 1, 2024\n* 🔴 (00:00) User has a dog"
    assert (result.current_task, result.suggested_response) == ("Talk about dogs", None)
    assert (result.usage.input_tokens, result.usage.output_tokens) == (100, 10)
    assert request.prompt == (
        "Write the observations about the new messages.\n\n<new-messages>\nJan 1 2024:\n"
        "User (12:00 AM): I have a dog\nAssistant: Nice\n</new-messages>"
    )
    assert (request.purpose, request.model, request.temperature) == ("observation", "", 0.3)
    assert "<suggested-response>" in request.instructions
    assert "<thread-title>" not in request.instructions
    assert ModelUsage.objects.get().thread_id == "t"


def test_observe_messages__prompt_has_what_is_known_in_order() -> None:
    _, [request] = observe(
        "* a",
        log="Date: Jan 1, 2024\n* 🔴 (00:00) old",
        buffered=["* one", " ", "* two"],
        hints={"currentTask": "Book <new-messages>", "suggestedResponse": "Ask"},
        title="Dogs",
        extracted={"mood": "happy"},
        options={"observation": {"threadTitle": True, "instruction": "Be brief."}},
    )
    before, _, rest = request.prompt.partition("Write the observations")
    assert before.strip().splitlines() == [
        "These observations exist already. Do not repeat them:",
        "",
        "<previous-observations>",
        "Date: Jan 1, 2024",
        "* 🔴 (00:00) old",
        "",
        "--- BUFFERED (pending activation) ---",
        "",
        "* one",
        "",
        "* two",
        "</previous-observations>",
        "",
        "<prior-metadata>",
        "<current-task>",
        "Book &lt;new-messages>",
        "</current-task>",
        "<suggested-response>",
        "Ask",
        "</suggested-response>",
        "<thread-title>",
        "Dogs",
        "</thread-title>",
        "<extracted-values>",
        '{"mood":"happy"}',
        "</extracted-values>",
        "</prior-metadata>",
    ]
    assert rest.strip().endswith("</new-messages>")
    assert request.instructions.endswith("Be brief.")


def test_observe_messages__buffering_shows_no_hints() -> None:
    _, [request] = observe("* a", hints={"currentTask": "Book"}, is_buffering=True)
    assert "Book" not in request.prompt and "always write observations" in request.prompt


@pytest.mark.parametrize(("budget", "lines"), [(0, 0), (False, 21), (2_000, 21), (60, 8)])
def test_select_previous__budget(budget: Any, lines: int) -> None:
    text = "\n".join(["Date: Jan 1, 2024", *(f"* 🔴 (10:{n:02}) number {n}" for n in range(20))])
    grouped = f'<observation-group id="x" range="a:b">\n{text}\n</observation-group>'
    settings = make_settings(observation={"previousObserverTokens": budget})
    selected = observer.select_previous(grouped, [], settings).strip()
    assert len(selected.splitlines()) == lines and "observation-group" not in selected


def test_observe_messages__uses_one_time_zone() -> None:
    _, [request] = observe("* a", timezone=ZoneInfo("Asia/Tokyo"))
    assert "User (9:00 AM): I have a dog" in request.prompt


def test_observe_messages__without_readable_messages_makes_no_call() -> None:
    result, requests = observe("* a", texts=(" ",))
    assert result == Observation() and requests == []


@pytest.mark.parametrize("answer", ["", "I have nothing to say.", "<observations></observations>"])
def test_observe_messages__empty_answer_is_empty(answer: str) -> None:
    result, requests = observe(answer)
    assert result.text == "" and len(requests) == 1


def test_observe_messages__degenerate_answer_is_asked_for_again() -> None:
    result, requests = observe(NOISE, "* a")
    assert result.text == "* a" and len(requests) == 2
    assert result.usage.input_tokens == 200
    make_thread("ann", "other")
    with FakeLLM(NOISE) as model, pytest.raises(DegenerateOutput):
        observer.observe_messages(
            save_messages("Hello", thread_id="u"), settings=make_settings(), thread_id="u"
        )
    assert len(model.requests) == 2


@pytest.mark.parametrize("error", [ProviderUnavailable("late"), ProviderRefused("no key")])
def test_observe_messages__raises_errors_of_the_provider(error: Exception) -> None:
    with pytest.raises(type(error)):
        observe(error)


def test_observe_messages__title_only_if_wanted_and_long_enough() -> None:
    answer = "* a\n<thread-title>\n{}\n</thread-title>"
    on = {"observation": {"threadTitle": True}}
    assert observe(answer.format("About dogs"), options=on)[0].thread_title == "About dogs"
    assert observe(answer.format("Hm"), options=on)[0].thread_title is None
    assert observe(answer.format("About dogs"))[0].thread_title is None


def test_observe_messages__model_by_input_tokens() -> None:
    tiers = {"upTo": {"2000": "acme/small", 10_000: "acme/large"}}
    assert observe("* a", options={"model": tiers})[1][0].model == "acme/small"
    assert observe("* a", texts=("word " * 3_000,), options={"model": tiers})[1][0].model == (
        "acme/large"
    )
    with pytest.raises(ProviderRefused, match="largest limit in `upTo` is 10000"):
        observe("* a", texts=("word " * 20_000,), options={"model": tiers})


def test_observe_messages__model_settings() -> None:
    options = {
        "model": "default",
        "observation": {"modelSettings": {"temperature": 0.7, "maxOutputTokens": 900}},
    }
    [request] = observe("* a", options=options)[1]
    assert (request.model, request.temperature, request.max_tokens) == ("", 0.7, 900)


def redact(messages: list[StoredMessage]) -> list[StoredMessage]:
    changed = []
    for message in messages:
        content = message_text.replace_text(message.content, "Something about an animal")
        changed.append(message._replace(content_json=json_text.dumps(content)))
    return changed


def test_hooks__may_redact_messages_and_observations() -> None:
    hooks = ObservationHooks(
        before_observation=redact, after_observation=lambda text: text.replace("Rex", "[name]")
    )
    result, [request] = observe("* Rex", settings=ObservationSettings(hooks=hooks))
    assert result.text == "* [name]"
    assert "dog" not in request.prompt and "an animal" in request.prompt


def test_hooks__none_keeps_text_and_empty_list_observes_nothing() -> None:
    nothing = ObservationHooks(before_observation=lambda _: None, after_observation=lambda _: None)
    assert observe("* a", settings=ObservationSettings(hooks=nothing))[0].text == "* a"
    hidden = ObservationHooks(before_observation=lambda _: [])
    assert observe("* a", settings=ObservationSettings(hooks=hidden)) == (Observation(), [])


def test_hooks__an_exception_stops_the_observation() -> None:
    def fail(_: Any) -> None:
        raise LookupError("no rules")

    hooks = ObservationHooks(before_observation=fail)
    with pytest.raises(LookupError):
        observe("* a", settings=ObservationSettings(hooks=hooks))


def test_signals__before_and_after_the_call(django_capture_on_commit_callbacks: Any) -> None:
    received: list[tuple[str, Any]] = []

    def start(**facts: Any) -> None:
        received.append(("start", facts["message_ids"]))

    def finish(**facts: Any) -> None:
        received.append((facts["thread_ids"][0], facts["error"]))

    signals.observation_started.connect(start)
    signals.observation_finished.connect(finish)
    error = ProviderUnavailable("late")
    try:
        with django_capture_on_commit_callbacks(execute=True), pytest.raises(ProviderUnavailable):
            observe(error)
    finally:
        signals.observation_started.disconnect(start)
        signals.observation_finished.disconnect(finish)
    assert received == [("start", ["t0", "t1"]), ("t", error)]
