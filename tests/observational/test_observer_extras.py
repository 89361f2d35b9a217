"""Extractors, attachments, and several threads in one request to the Observer."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel

from mastra_memory.exceptions import ProviderRefused, ProviderUnavailable
from mastra_memory.models import ModelUsage
from mastra_memory.observational import log, observer
from mastra_memory.observational.observer import Observation, ThreadMessages
from mastra_memory.options import Extractor
from mastra_memory.testing import FakeLLM
from mastra_memory.types import StoredMessage
from tests.observational.observing import make_settings, observe, save_messages
from tests.support.factories import a_message, make_thread, save

pytestmark = pytest.mark.django_db
NOISE = "The same again and again. " * 200


@pytest.fixture(autouse=True)
def default_settings(memory_settings: Callable[..., None]) -> None:
    memory_settings()


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
