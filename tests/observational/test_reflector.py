"""Requests to the Reflector and how its answers are used."""

from collections.abc import Callable
from typing import Any

import pytest

from mastra_memory.exceptions import DegenerateOutput, ProviderRefused, ProviderUnavailable
from mastra_memory.observational import config, reflector
from mastra_memory.observational.config import ObservationSettings
from mastra_memory.observational.reflector import Reflection
from mastra_memory.options import Extractor, MemoryOptions, ObservationHooks
from mastra_memory.testing import FakeLLM

pytestmark = pytest.mark.django_db
ITEMS = [f"* 🔴 (10:{n:02}) observation number {n} about a thing" for n in range(60)]
LOG = "\n".join(["Date: Jan 1, 2025", *ITEMS])  # about 1,100 tokens
NOISE = "The same again and again. " * 200


@pytest.fixture(autouse=True)
def default_settings(memory_settings: Callable[..., None]) -> None:
    memory_settings()


def block(*lines: str) -> str:
    return "\n".join(["<observations>", *lines, "</observations>"])


def reflect(*answers: Any, log: str = LOG, target: int = 200, **more: Any) -> Any:
    """Return the reflection and the levels that were tried."""
    options = more.pop("options", {})
    parsed = MemoryOptions.parse({"observationalMemory": options}).observational_memory
    assert parsed is not None
    settings = more.pop("settings", None) or config.resolve_settings(parsed)
    with FakeLLM(*answers) as model:
        result = reflector.reflect_log(
            log, settings=settings, target_tokens=target, resource_id="ann", **more
        )
    return result, model.requests


def levels(requests: Any) -> list[int]:
    return [request.level for request in requests]


def test_reflect_log__request_and_answer() -> None:
    grouped = f'<observation-group id="x" range="a:b">\n{LOG}\n</observation-group>'
    result, [request] = reflect(
        block("* 🔴 short log") + "\n<current-task>Book</current-task>", log=grouped
    )
    assert (result.text, result.current_task, result.level) == ("* 🔴 short log", "Book", 1)
    assert result.tokens > 0 and result.usage.input_tokens == 100
    assert request.purpose == "reflection" and request.temperature == 0.0
    assert (request.level, request.target_tokens) == (1, 200)
    assert request.prompt.startswith("<observation-log>\nDate: Jan 1, 2025\n")
    assert "observation-group" not in request.prompt and "Condense gently" in request.prompt


@pytest.mark.parametrize(("start", "tried"), [(0, [0, 1, 2, 3]), (1, [1, 2, 3, 4]), (2, [2, 3, 4])])
def test_reflect_log__levels_rise_until_the_last(start: int, tried: list[int]) -> None:
    result, requests = reflect(block(*ITEMS[:50]), start_level=start)
    assert levels(requests) == tried and result.level in tried
    assert result.text == "\n".join(ITEMS[:50]), "at the last level any shorter text is accepted"


@pytest.mark.parametrize(
    ("model", "level"),
    [("", 1), ("acme/large", 1), ("google/gemini-2.5-flash", 2), ("google/gemini-2.5-pro", 1)],
)
def test_get_start_level__depends_on_the_model(model: str, level: int) -> None:
    assert reflector.get_start_level(model) == level
    _, [request] = reflect(block("* short"), options={"model": model})
    assert request.level == level


def test_reflect_log__stops_below_the_target() -> None:
    result, requests = reflect(block(*ITEMS[:40]), block(*ITEMS[:3]), block("* never asked"))
    assert levels(requests) == [1, 2] and result.level == 2


def test_reflect_log__smallest_valid_answer_wins() -> None:
    sizes = (40, 20, 30, 50)
    result, requests = reflect(*(block(*ITEMS[:size]) for size in sizes), start_level=1)
    assert len(requests) == 4 and result.text == "\n".join(ITEMS[:20]) and result.level == 2


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "<observations>\n\n</observations>",
        NOISE,
        "I'm sorry, but I cannot help with that.",
        block(*ITEMS, *ITEMS),
        "<current-task>\nonly a hint\n</current-task>",
    ],
)
def test_reflect_log__bad_answer_raises_the_level_and_never_wins(bad: str) -> None:
    result, requests = reflect(bad, block(*ITEMS[:5]))
    assert levels(requests) == [1, 2] and result.text == "\n".join(ITEMS[:5])
    with FakeLLM(bad) as model, pytest.raises(DegenerateOutput):
        reflector.reflect_log(LOG, settings=ObservationSettings(), target_tokens=200)
    assert levels(model.requests) == [1, 2, 3, 4]


def test_reflect_log__a_tiny_answer_does_not_replace_a_long_log() -> None:
    with pytest.raises(DegenerateOutput):
        reflect(block("Nothing to keep."), log="\n".join([LOG] * 4), target=4_000)


def test_reflect_log__long_prose_is_a_log() -> None:
    prose = " ".join(f"Thing {n} was observed at ten." for n in range(30))
    assert reflect(prose, target=500)[0].text == prose


def test_reflect_log__list_without_tags_is_a_log() -> None:
    assert reflect("Sure:\n" + "\n".join(ITEMS[:5]))[0].text == "\n".join(ITEMS[:5])


def test_reflect_log__an_error_after_a_usable_answer_keeps_it() -> None:
    result, requests = reflect(block(*ITEMS[:40]), ProviderUnavailable("late"))
    assert result.text == "\n".join(ITEMS[:40]) and len(requests) == 2


@pytest.mark.parametrize("error", [ProviderUnavailable("late"), ProviderRefused("no key")])
def test_reflect_log__raises_errors_of_the_provider(error: Exception) -> None:
    with pytest.raises(type(error)):
        reflect(error)


def test_reflect_log__without_hints_and_with_guidance() -> None:
    _, [request] = reflect(block("* a"), with_hints=False, prompt="Keep <guidance> dogs")
    assert "<current-task>" not in request.instructions
    assert "<guidance>\nKeep &lt;guidance> dogs\nCondense gently" in request.prompt


def test_reflect_log__at_level_0_there_is_no_guidance() -> None:
    _, [request] = reflect(block("* a"), start_level=0)
    assert "<guidance>" not in request.prompt and request.level == 0


def test_reflect_log__keeps_pinned_items() -> None:
    pinned = ["observation number 3 about a thing", "observation number 7 about a thing", "unknown"]
    result, [request] = reflect(block("Date: Jan 1, 2025", ITEMS[3], "* rest"), pinned=pinned)
    assert result.text.split("\n") == ["Date: Jan 1, 2025", ITEMS[3], "* rest", ITEMS[7]]
    assert (
        "<pinned-observations>\n* observation number 3 about a thing\n"
        "* observation number 7 about a thing\n</pinned-observations>" in request.prompt
    )
    assert "pinned" in request.instructions


@pytest.mark.parametrize(
    ("reflection", "expected"),
    [
        ("* rest", "Date: Jan 2, 2025\n* 🔴 (10:00) kept\n\n* rest"),
        (
            "Date: Jan 2, 2025\n* x\n  * -> y\n\nDate: Jan 3, 2025\n* z",
            "Date: Jan 2, 2025\n* x\n  * -> y\n* 🔴 (10:00) kept\n\nDate: Jan 3, 2025\n* z",
        ),
        ("* 🟡 kept", "* 🟡 kept"),
    ],
)
def test_keep_pinned__in_its_day(reflection: str, expected: str) -> None:
    log = "Date: Jan 2, 2025\n* 🔴 (10:00) kept\n* other"
    assert reflector.keep_pinned(reflection, log, ["kept"]) == expected


def test_keep_pinned__item_without_a_day() -> None:
    assert reflector.keep_pinned("* rest", "* kept", ["kept"]) == "* kept\n* rest"


def test_reflect_log__keeps_threads_of_a_resource() -> None:
    text = '<thread id="t1">\n* a\n</thread>'
    on_resource: dict[str, Any] = {"options": {"scope": "resource"}}
    result, [request] = reflect(block(text), **on_resource)
    assert result.text == text and "<thread id=" in request.instructions
    assert reflect(block(text))[0].text == "* a"


def test_reflect_log__hooks_may_redact() -> None:
    hooks = ObservationHooks(
        before_reflection=lambda text: text.replace("thing", "secret"),
        after_reflection=lambda text: text.replace("secret", "[hidden]"),
    )
    result, [request] = reflect(block("* a secret"), settings=ObservationSettings(hooks=hooks))
    assert result.text == "* a [hidden]" and "about a secret" in request.prompt


def test_reflect_log__runs_its_extractors() -> None:
    options = {"reflection": {"extract": [Extractor(name="mood", instructions="How?")]}}
    result, _ = reflect(block("* a") + "\n<mood>calm</mood>", options=options)
    assert isinstance(result, Reflection) and result.extracted == {"mood": "calm"}


def test_reflect_log__local_model_shortens_without_a_key() -> None:
    cities = "Rome Oslo Lima Kyiv Bern Riga Doha Cairo Quito Seoul Turin Porto Genoa Malmo".split()
    friends = "Anna Bela Carl Dora Emil Finn Gina Hugo Ines Jana Karl Lena Maja Nils".split()
    log = "\n".join(
        [
            "Date: Jan 1, 2025",
            *(
                f"* 🔴 (10:{n:02}) {friend} moves to {city} with {n + 2} boxes for {n * 37} EUR"
                for n, (friend, city) in enumerate(zip(friends, cities, strict=True))
            ),
        ]
    )
    parsed = MemoryOptions.parse({"observationalMemory": True}).observational_memory
    assert parsed is not None
    result = reflector.reflect_log(log, settings=config.resolve_settings(parsed), target_tokens=200)
    assert 0 < result.tokens < 200 and result.text.startswith("Date: Jan 1, 2025")
