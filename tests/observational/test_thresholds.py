"""When to buffer, activate, observe and reflect."""

from typing import Any

import pytest

from mastra_memory.observational import config, thresholds
from mastra_memory.observational.config import ObservationSettings
from mastra_memory.options import MemoryOptions, ObservationOptions


def make_settings(**options: Any) -> ObservationSettings:
    """Return the settings for these options of observational memory."""
    parsed = MemoryOptions.parse({"observationalMemory": options}).observational_memory
    assert parsed is not None
    return config.resolve_settings(parsed)


@pytest.mark.parametrize(
    ("value", "tokens"), [(0.2, 6_000), (5_000, 5_000), (0.33333, 10_000), (False, None)]
)
def test_resolve_buffer_tokens__share_or_number(value: Any, tokens: int | None) -> None:
    assert config.resolve_buffer_tokens(ObservationOptions(buffer_tokens=value)) == tokens


@pytest.mark.parametrize(("value", "floor"), [(0.8, 6_000), (1, 0), (4_000, 4_000), (0.5, 15_000)])
def test_resolve_retention_floor__share_or_number(value: float, floor: int) -> None:
    assert config.resolve_retention_floor(value, 30_000) == floor


@pytest.mark.parametrize(
    ("value", "ratio"), [(4_000, 0.8667), (0.8, 0.8), (1, 1), (50_000, 0), (None, 0.7)]
)
def test_resolve_activation_ratio__share_or_number(value: float | None, ratio: float) -> None:
    assert round(config.resolve_activation_ratio(value, 30_000), 4) == ratio


@pytest.mark.parametrize(("value", "tokens"), [(1.2, 36_000), (45_000, 45_000), (1, 30_000)])
def test_resolve_settings__observation_block_after(value: float, tokens: int) -> None:
    assert make_settings(observation={"blockAfter": value}).block_after == tokens


@pytest.mark.parametrize(("value", "tokens"), [(1.2, 48_000), (50_000, 50_000)])
def test_resolve_settings__reflection_block_after(value: float, tokens: int) -> None:
    assert make_settings(reflection={"blockAfter": value}).reflection_block_after == tokens


@pytest.mark.parametrize(
    "options", [{"observation": {"bufferTokens": False}}, {"scope": "resource"}]
)
def test_resolve_settings__without_buffering_nothing_about_it_is_set(
    options: dict[str, Any],
) -> None:
    settings = make_settings(**options)
    assert not settings.asynchronous
    assert settings.buffer_tokens is settings.retention_floor is settings.block_after is None
    assert settings.reflection_buffer_at is settings.reflection_block_after is None


@pytest.mark.parametrize(
    ("overrides", "thresholds_"),
    [
        ({}, (30_000, 40_000)),
        ({"observation": {"messageTokens": 10_000}}, (10_000, 40_000)),
        ({"observation": {"message_tokens": 10_000}}, (10_000, 40_000)),
        ({"reflection": {"observationTokens": 9_000}}, (30_000, 9_000)),
        ({"observation": {"messageTokens": 6_000}}, (30_000, 40_000)),  # as small as a chunk
        ({"observation": {"messageTokens": -5}, "reflection": "x"}, (30_000, 40_000)),
        ({"observation": {"messageTokens": "many"}}, (30_000, 40_000)),
    ],
)
def test_resolve_settings__overrides_of_record(
    overrides: dict[str, Any], thresholds_: tuple[int, int]
) -> None:
    options = MemoryOptions.parse({"observationalMemory": True}).observational_memory
    assert options is not None
    settings = config.resolve_settings(options, {"_overrides": overrides})
    assert (settings.message_tokens, settings.observation_tokens) == thresholds_
    assert settings.block_after == round(thresholds_[0] * 1.2)


def test_resolve_settings__override_within_absolute_activation_is_ignored() -> None:
    options = MemoryOptions.parse(
        {"observationalMemory": {"observation": {"bufferActivation": 8_000}}}
    ).observational_memory
    assert options is not None
    overrides = {"_overrides": {"observation": {"messageTokens": 8_000}}}
    assert config.resolve_settings(options, overrides).message_tokens == 30_000


@pytest.mark.parametrize("value", [None, {}, {"_overrides": None}, {"_overrides": [1]}])
def test_resolve_settings__config_without_overrides(value: Any) -> None:
    options = MemoryOptions.parse({"observationalMemory": True}).observational_memory
    assert options is not None
    assert config.resolve_settings(options, value) == make_settings()


@pytest.mark.parametrize(
    ("log_tokens", "threshold", "reflection"),
    [(0, 70_000, 1_000), (10_000, 60_000, 10_000), (45_000, 30_000, 40_000)],
)
def test_observation_threshold__shared_budget(
    log_tokens: int, threshold: int, reflection: int
) -> None:
    settings = make_settings(shareTokenBudget=True, observation={"bufferTokens": False})
    assert thresholds.observation_threshold(settings, log_tokens) == threshold
    assert thresholds.reflection_threshold(settings, log_tokens) == reflection


def test_observation_threshold__own_budget() -> None:
    settings = make_settings()
    assert thresholds.observation_threshold(settings, 10_000) == 30_000
    assert thresholds.reflection_threshold(settings, 10_000) == 40_000


@pytest.mark.parametrize(
    ("position", "pending", "expected"),
    [
        (0, 5_999, False),
        (0, 6_000, True),
        (6_100, 11_900, False),
        # Mastra buffers here, because 12,000 is a multiple of 6,000. We wait for a whole chunk.
        (6_100, 12_000, False),
        (6_100, 12_100, True),
        (21_000, 23_400, False),  # Near the threshold, chunks of 3,000 are enough.
        (21_000, 24_000, True),
        (21_000, 30_000, False),  # From the threshold on, messages are observed.
    ],
)
def test_should_buffer__when_a_chunk_is_full(position: int, pending: int, expected: bool) -> None:
    settings = make_settings()
    unbuffered = pending - position
    assert (
        thresholds.should_buffer(pending=pending, unbuffered=unbuffered, settings=settings)
        is expected
    )


def test_should_buffer__never_without_buffering() -> None:
    settings = make_settings(observation={"bufferTokens": False})
    assert not thresholds.should_buffer(pending=20_000, unbuffered=20_000, settings=settings)


@pytest.mark.parametrize(
    ("chunks", "activation", "threshold", "pending", "count", "activated"),
    [
        ([6_000] * 4, 0.8, 30_000, 31_000, 4, 24_000),
        ([6_000] * 5, 0.8, 30_000, 30_000, 4, 24_000),
        ([10_000] * 3, 0.8, 30_000, 31_000, 3, 30_000),
        ([10_000, 10_000, 12_000], 0.8, 30_000, 32_500, 2, 20_000),
        ([20_000], 0.8, 30_000, 31_000, 1, 20_000),
        ([29_000, 1_500], 0.8, 30_000, 30_600, 1, 29_000),
        ([8_000] * 4, 0.5, 30_000, 34_000, 3, 24_000),
        ([6_000] * 4, 4_000, 30_000, 30_000, 4, 24_000),
        ([5_000] * 3, 1, 20_000, 21_000, 3, 15_000),
        ([251, 252, 251], 0.8, 1_000, 754, 2, 503),
        ([251, 252, 251], 0.8, 1_000, 0, 2, 503),  # Without a count, the chunks' sum is used.
        ([], 0.8, 30_000, 31_000, 0, 0),
        ([40_000], 0.8, 30_000, 40_000, 1, 40_000),  # Something is always activated.
    ],
)
def test_choose_chunks__leaves_about_the_floor(
    chunks: list[int],
    activation: float,
    threshold: int,
    pending: int,
    count: int,
    activated: int,
) -> None:
    settings = make_settings(
        observation={"messageTokens": threshold, "bufferActivation": activation}
    )
    assert thresholds.choose_chunks(chunks, pending=pending, settings=settings) == count
    assert sum(chunks[:count]) == activated


def test_choose_chunks__from_block_after_a_large_overshoot_is_accepted() -> None:
    # The floor is 25,000, the target 35,000, and two chunks overshoot it by 24,000.
    options = {"observation": {"messageTokens": 30_000, "bufferActivation": 25_000}}
    chunks = [30_000, 29_000]
    settings = make_settings(**options)
    assert thresholds.choose_chunks(chunks, pending=60_000, settings=settings) == 2
    options["observation"]["blockAfter"] = 70_000
    assert thresholds.choose_chunks(chunks, pending=60_000, settings=make_settings(**options)) == 1


def decide(tokens: int, **state: Any) -> str:
    options = state.pop("options", {})
    facts: dict[str, Any] = {
        "has_buffered": False,
        "in_progress": False,
        "unproductive_tokens": None,
    }
    return thresholds.decide_reflection(
        tokens=tokens, settings=make_settings(**options), **facts | state
    )


@pytest.mark.parametrize(
    ("tokens", "state", "decision"),
    [
        (19_999, {}, "none"),
        (20_000, {}, "buffer"),
        (20_000, {"has_buffered": True}, "none"),
        (20_000, {"in_progress": True}, "none"),
        (40_000, {"has_buffered": True}, "activate"),
        (40_000, {}, "buffer"),
        (40_000, {"in_progress": True}, "none"),
        (47_999, {}, "buffer"),
        (48_000, {}, "reflect"),
        (48_000, {"has_buffered": True}, "activate"),
        (48_000, {"unproductive_tokens": 48_000}, "none"),
        (48_001, {"unproductive_tokens": 48_000}, "reflect"),
        (40_000, {"unproductive_tokens": 40_000}, "none"),
    ],
)
def test_decide_reflection__with_buffering(
    tokens: int, state: dict[str, Any], decision: str
) -> None:
    assert decide(tokens, **state) == decision


@pytest.mark.parametrize(
    ("tokens", "state", "decision"),
    [
        (39_999, {}, "none"),
        (40_000, {}, "reflect"),
        (40_000, {"in_progress": True}, "none"),
        (40_000, {"unproductive_tokens": 40_000}, "none"),
    ],
)
def test_decide_reflection__without_buffering(
    tokens: int, state: dict[str, Any], decision: str
) -> None:
    off = {"observation": {"bufferTokens": False}}
    assert decide(tokens, options=off, **state) == decision


@pytest.mark.parametrize(
    ("tokens", "lines", "plan"),
    [
        (24_000, 300, (250, 20_000, 15_000)),
        (10_000, 50, (50, 10_000, 7_500)),
        (0, 3, (3, 0, 0)),
        (0, 0, (0, 0, 0)),
    ],
)
def test_plan_buffered_reflection__takes_the_oldest_lines(
    tokens: int, lines: int, plan: tuple[int, int, int]
) -> None:
    settings = make_settings()
    assert (
        thresholds.plan_buffered_reflection(tokens=tokens, lines=lines, settings=settings) == plan
    )


@pytest.mark.parametrize(
    ("tail", "reflection", "new_log", "expected"),
    [(9_000, 6_000, 15_000, True), (9_000, 6_000, 14_999, False), (5_999, 6_000, 20_000, False)],
)
def test_may_activate_reflection_early__only_if_something_is_gained(
    tail: int, reflection: int, new_log: int, expected: bool
) -> None:
    assert (
        thresholds.may_activate_reflection_early(
            tail_tokens=tail,
            reflection_tokens=reflection,
            new_log_tokens=new_log,
            settings=make_settings(),
        )
        is expected
    )
