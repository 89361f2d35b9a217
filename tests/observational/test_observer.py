"""Requests to the Observer and how its answers are used."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from pydantic import BaseModel

from mastra_memory import signals
from mastra_memory.content import message_text
from mastra_memory.db import json_text
from mastra_memory.exceptions import DegenerateOutput, ProviderRefused, ProviderUnavailable
from mastra_memory.models import ModelUsage
from mastra_memory.observational import config, log, observer
from mastra_memory.observational.config import ObservationSettings
from mastra_memory.observational.observer import Observation, ThreadMessages
from mastra_memory.options import Extractor, MemoryOptions, ObservationHooks
from mastra_memory.testing import FakeLLM
from mastra_memory.types import StoredMessage
from tests.support.factories import a_message, make_thread, save

pytestmark = pytest.mark.django_db
NOISE = "The same again and again. " * 200


@pytest.fixture(autouse=True)
def default_settings(memory_settings: Callable[..., None]) -> None:
    memory_settings()


def make_settings(**options: Any) -> ObservationSettings:
    parsed = MemoryOptions.parse({"observationalMemory": options}).observational_memory
    assert parsed is not None
    return config.resolve_settings(parsed)


def save_messages(*texts: str, thread_id: str = "t") -> list[StoredMessage]:
    thread = make_thread("ann", thread_id)
    return save(
        [
            a_message(thread, f"{thread_id}{n}", text=text, at=n, role=("user", "assistant")[n % 2])
            for n, text in enumerate(texts)
        ]
    )


def observe(*answers: Any, texts: tuple[str, ...] = ("I have a dog", "Nice"), **more: Any) -> Any:
    """Return the observation and the requests of the model."""
    options = more.pop("options", {})
    arguments: dict[str, Any] = {"thread_id": "t", "resource_id": "ann"} | more
    settings = arguments.pop("settings", None) or make_settings(**options)
    with FakeLLM(*answers) as model:
        result = observer.observe_messages(save_messages(*texts), settings=settings, **arguments)
    return result, model.requests


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


class Mood(BaseModel):
    """How the user feels."""

    mood: str
    score: int = 0


def test_extractors__inline_values_are_part_of_the_answer() -> None:
    extractor = Extractor(name="User's Mood!", instructions="How does the user feel?")
    options = {"observation": {"extract": [extractor]}}
    result, [request] = observe("* a\n<users-mood>\ncalm\n</users-mood>", options=options)
    assert result.extracted == {"users-mood": "calm"} and result.text == "* a"
    assert "<users-mood>\nHow does the user feel?\n</users-mood>" in request.instructions


@pytest.mark.parametrize("schema", [Mood, Mood.model_json_schema()])
def test_extractors__structured_values_take_a_second_call(schema: Any) -> None:
    extractor = Extractor(name="mood", schema=schema, mode="structured")
    value = Mood(mood="calm") if schema is Mood else {"mood": "calm", "score": 0}
    result, requests = observe("* a", value, options={"observation": {"extract": [extractor]}})
    assert result.extracted == {"mood": {"mood": "calm", "score": 0}}
    assert requests[1].output is schema and requests[1].purpose == "extraction"
    assert result.usage.input_tokens == 200


def test_extractors__structured_call_is_repeated_with_the_schema_in_the_prompt() -> None:
    extractor = Extractor(name="mood", schema=Mood, mode="structured")
    options = {"observation": {"extract": [extractor]}}
    answers = ("* a", ProviderRefused("no tools"), '```json\n{"mood": "calm"}\n```')
    result, requests = observe(*answers, options=options)
    assert result.extracted == {"mood": {"mood": "calm", "score": 0}}
    assert requests[2].output is None and '"title":"Mood"' in requests[2].instructions


@pytest.mark.parametrize(
    "answers",
    [
        (ProviderRefused("no tools"), "not JSON"),
        (ProviderRefused("no tools"), '{"mood": 5}'),
        (ProviderUnavailable("late"),),
    ],
)
def test_extractors__failure_is_recorded_and_observations_stay(answers: tuple[Any, ...]) -> None:
    extractor = Extractor(name="mood", schema=Mood, mode="structured")
    result, _ = observe("* a", *answers, options={"observation": {"extract": [extractor]}})
    assert result.text == "* a" and result.extracted == {}
    assert [failure["slug"] for failure in result.extraction_failures] == ["mood"]


def test_extractors__functions_may_replace_values() -> None:
    seen: list[Any] = []

    def note(value: Any, **about: Any) -> Any:
        seen.append((value, about))
        return None

    def fail(value: Any, **about: Any) -> Any:
        raise LookupError("no")

    extract = [
        Extractor(name="mood", on_extracted=lambda value, **_: value.upper()),
        Extractor(name="lines", mode="hook", on_extracted=lambda text, **_: text.count("*")),
        Extractor(name="quiet", mode="hook", on_extracted=note),
        Extractor(name="bad", mode="hook", on_extracted=fail),
        Extractor(name="odd", mode="hook", on_extracted=lambda *_, **__: object()),
    ]
    result, [_] = observe("* a\n<mood>calm</mood>", options={"observation": {"extract": extract}})
    assert result.extracted == {"mood": "CALM", "lines": 1}
    assert seen == [("* a", {"thread_id": "t", "resource_id": "ann"})]
    assert [failure["slug"] for failure in result.extraction_failures] == ["bad", "odd"]


def file_message(**part: Any) -> StoredMessage:
    thread = make_thread()
    content = {"format": 2, "parts": [{"type": "text", "text": "See"}, part]}
    [message] = save([a_message(thread, content=content, at=0)])
    return message


PNG = {"type": "file", "data": "data:image/png;base64,iVBORw0KGgo=", "mimeType": "image/png"}


@pytest.mark.parametrize(
    ("part", "patterns", "expected"),
    [
        (PNG, None, [("image/png", "")]),
        (PNG, ["application/*"], []),
        (PNG, False, []),
        (PNG, True, [("image/png", "")]),
        ({"type": "image", "image": "https://x.test/a"}, None, [("image/*", "https://x.test/a")]),
        ({"type": "image", "image": "http://127.0.0.1/a"}, None, []),
        ({"type": "file", "data": "aGk=", "mimeType": "text/plain"}, None, []),
    ],
)
def test_attachments__of_the_configured_types(
    part: dict[str, Any], patterns: Any, expected: list[tuple[str, str]]
) -> None:
    observation = {} if patterns is None else {"observeAttachments": patterns}
    with FakeLLM("* a") as model:
        observer.observe_messages(
            [file_message(**part)], settings=make_settings(observation=observation)
        )
    files = model.requests[0].attachments
    assert [(file.mime_type, file.url) for file in files] == expected
    assert "#1: " in model.requests[0].prompt


def test_attachments__a_model_that_refuses_them_is_called_without() -> None:
    with FakeLLM(ProviderRefused("no images"), "* a") as model:
        result = observer.observe_messages([file_message(**PNG)], settings=make_settings())
    assert result.text == "* a" and [len(r.attachments) for r in model.requests] == [1, 0]


def observe_two(*answers: Any, **options: Any) -> tuple[dict[str, Observation], Any]:
    threads = [
        ThreadMessages(thread_id=thread_id, messages=save_messages(text, thread_id=thread_id))
        for thread_id, text in (("t1", "I like </thread> tea"), ("t2", "I live in Rome"))
    ]
    settings = make_settings(scope="resource", **options)
    with FakeLLM(*answers) as model:
        found = observer.observe_threads(threads, settings=settings, resource_id="ann")
    return found, model.requests


def test_observe_threads__one_call_for_a_batch() -> None:
    found, [request] = observe_two(
        '<observations>\n<thread id="t1">\n* tea\n<current-task>Brew</current-task>\n</thread>\n'
        '<thread id="t2">\n* Rome\n</thread>\n<thread id="t3">\n* other\n</thread>\n</observations>'
    )
    assert {key: item.text for key, item in found.items()} == {"t1": "* tea", "t2": "* Rome"}
    assert (found["t1"].current_task, found["t2"].current_task) == ("Brew", None)
    assert [item.usage.input_tokens for item in found.values()] == [100, 0]
    assert request.prompt.endswith(
        '<new-messages>\n<thread id="t1">\nJan 1 2024:\nUser (12:00 AM): I like &lt;/thread> tea\n'
        '</thread>\n<thread id="t2">\nJan 1 2024:\nUser (12:00 AM): I live in Rome\n</thread>\n'
        "</new-messages>"
    )
    assert ModelUsage.objects.get().resource_id == "ann"


@pytest.mark.parametrize("answer", ["", "* without tags", '<thread id="t9">* x</thread>'])
def test_observe_threads__missing_threads_are_empty(answer: str) -> None:
    found, _ = observe_two(answer)
    assert [item.text for item in found.values()] == ["", ""]


def test_observe_threads__structured_extractors_need_single_calls() -> None:
    extract = [Extractor(name="mood", schema=Mood, mode="structured")]
    found, requests = observe_two(
        "* tea", Mood(mood="a"), "* Rome", Mood(mood="b"), observation={"extract": extract}
    )
    assert [item.text for item in found.values()] == ["* tea", "* Rome"] and len(requests) == 4
    assert found["t2"].extracted == {"mood": {"mood": "b", "score": 0}}


def test_wrap_in_thread__is_what_a_resource_log_stores() -> None:
    section = log.wrap_in_thread("t1", "Date: Jan 1, 2025\n* 🔴 (10:00) …")
    assert section == '<thread id="t1">\nDate: Jan 1, 2025\n* 🔴 (10:00) …\n</thread>'
    appended = log.append_observations(section, section, datetime(2025, 1, 4, tzinfo=UTC))
    assert appended.count("<thread ") == 2, "a section is never merged into an older one"
