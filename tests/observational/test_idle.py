"""Activation of chunks after idle time."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from mastra_memory.content import tokens
from mastra_memory.exceptions import InvalidInput
from mastra_memory.models import ObservationalRecord, ObservationEvent
from mastra_memory.observational import idle
from mastra_memory.observational.config import ObservationSettings
from mastra_memory.options.durations import parse_duration
from tests.observational.engine import words
from tests.support.factories import a_message, make_record, make_thread, moment, save

MINUTE, HOUR = 60_000, 3_600_000


@pytest.mark.parametrize(
    ("value", "milliseconds"),
    [
        (0, 0),
        (1_500, 1_500),
        ("250ms", 250),
        ("30s", 30_000),
        ("5m", 5 * MINUTE),
        ("1hr", HOUR),
        ("2 hours", 2 * HOUR),
        ("1.5 minutes", 90_000),
        ("1H", HOUR),
    ],
)
def test_parse_duration__numbers_and_units(value: Any, milliseconds: float) -> None:
    assert parse_duration(value) == milliseconds


@pytest.mark.parametrize(
    "value", [-1, "-5m", "5 weeks", "m", "", True, None, float("nan"), float("inf"), "5"]
)
def test_parse_duration__refuses_the_rest(value: Any) -> None:
    with pytest.raises(InvalidInput, match="duration must be a number"):
        parse_duration(value)


@pytest.mark.parametrize(
    ("model", "retention", "milliseconds"),
    [
        ("openai/o3", "", HOUR),
        ("openai/gpt-4o-mini", "", 5 * MINUTE),
        ("openai/gpt-5", "", 5 * MINUTE),
        ("openai/gpt-5-mini", "", 5 * MINUTE),
        ("openai/gpt-5.4-nano", "", 5 * MINUTE),
        ("openai/gpt-5.5", "", HOUR),
        ("openai.responses/gpt-5", "24h", HOUR),
        ("openai/o3", "in_memory", 5 * MINUTE),
        ("google/gemini-2.5-flash", "", 24 * HOUR),
        ("deepseek/chat", "", HOUR),
        ("groq/llama", "", 2 * HOUR),
        ("anthropic/claude", "", 5 * MINUTE),
        ("", "", 5 * MINUTE),
    ],
)
def test_get_idle_milliseconds__auto_follows_the_provider(
    model: str, retention: str, milliseconds: float
) -> None:
    settings = ObservationSettings(activate_after_idle="auto")
    assert idle.get_idle_milliseconds(settings, model, cache_retention=retention) == milliseconds


def test_get_idle_milliseconds__off_or_fixed() -> None:
    assert idle.get_idle_milliseconds(ObservationSettings()) is None
    assert idle.get_idle_milliseconds(ObservationSettings(activate_after_idle=5.0), "x/y") == 5.0


def test_is_idle__from_the_end_of_the_time() -> None:
    at = {"now": moment(10)}
    assert idle.is_idle(moment(5), 5_000, **at) and not idle.is_idle(moment(5), 5_001, **at)
    assert not idle.is_idle(None, 5_000, **at) and not idle.is_idle(moment(5), None, **at)


@pytest.mark.django_db
def test_get_last_activity__last_part_of_newest_answer() -> None:
    thread = make_thread()
    later = moment(60)
    parts = [
        {"type": "text", "text": "a", "createdAt": later.timestamp() * 1000},
        {"type": "data-om-status", "data": {}, "createdAt": 0},
    ]
    answer = {"format": 2, "parts": parts}
    stored = save(
        [
            a_message(thread, role="assistant", content=answer, at=1),
            a_message(thread, role="user", at=90),
        ]
    )
    assert idle.get_last_activity(stored) == later
    assert idle.get_last_activity(stored[1:]) is None
    no_time = save([a_message(thread, role="assistant", at=100)])
    assert idle.get_last_activity([*stored, *no_time]) == moment(0) + timedelta(seconds=100)


REFLECTED = {"observationTokens": 2_000, "bufferActivation": 0.5}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("tail", "is_early"), [(1_000, True), (10, False)], ids=["long tail", "short tail"]
)
def test_activate_idle__activates_a_reflection_if_that_is_worth_it(
    memory_settings: Callable[..., None], tail: int, is_early: bool
) -> None:
    options = {"activateAfterIdle": "5m", "reflection": REFLECTED}
    memory_settings(OPTIONS={"observationalMemory": options})
    thread = make_thread()
    save([a_message(thread, role="assistant", at=0)])
    log = "\n".join(["* old " + words(900), "* new " + words(tail)])
    reflection = "* short " + words(300)
    record = make_record(
        thread,
        active_observations=log,
        observation_token_count=tokens.get_token_counter().text(log),
        buffered_reflection=reflection,
        buffered_reflection_tokens=tokens.get_token_counter().text(reflection),
        reflected_observation_line_count=1,
    )
    assert idle.activate_idle() == is_early
    head = ObservationalRecord.objects.live().get()
    assert (head.pk != record.pk) == is_early
    if not is_early:
        assert head.active_observations == log and head.buffered_reflection == reflection
        return
    assert head.active_observations.startswith(reflection)
    assert head.active_observations.endswith(log.split("\n")[1])
    event = ObservationEvent.objects.get(operation="activation")
    assert (event.data["triggeredBy"], event.data["operationType"]) == ("ttl", "reflection")
    assert idle.activate_idle() == 0
