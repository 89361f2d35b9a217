"""Resolve the options of observational memory to numbers."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mastra_memory.options import (
    ContinuationHints,
    Extractor,
    ObservationalMemoryOptions,
    ObservationHooks,
    RetrievalOptions,
    snake_keys,
)
from mastra_memory.options.observational import (
    ModelChoice,
    ModelTiers,
    ObservationOptions,
    ReflectionOptions,
)
from mastra_memory.options.observational_reader import resolve_block_after

MIN_ABSOLUTE_ACTIVATION = 1_000
"""From here `buffer_activation` is a number of tokens; below, it is a share."""
DEFAULT_ACTIVATION_RATIO = 0.7
_BUFFERING_SETTINGS = (
    "buffer_tokens",
    "retention_floor",
    "block_after",
    "reflection_buffer_at",
    "reflection_block_after",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSettings:
    """Settings of the calls to one model, the Observer or the Reflector."""

    model: ModelChoice = ""
    instruction: str = ""
    hints: ContinuationHints = field(default_factory=ContinuationHints)
    temperature: float = 0.0
    max_tokens: int | None = None
    """The maximum length of an answer. Mastra's default of 100,000 is more than many models accept,
    so the default is the maximum of the provider."""
    extractors: tuple[Extractor, ...] = ()

    def select_model(self, input_tokens: int) -> str:
        """Return the model for an input of this size; empty means the setting `MODEL`.

        Raises:
            InvalidInput: The input is larger than the last limit of the configured models.
        """
        if isinstance(self.model, ModelTiers):
            return self.model.select_model(input_tokens)
        return self.model


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationSettings:
    """Options with all numbers resolved, and with the overrides of one record applied."""

    scope: Literal["thread", "resource"] = "thread"
    asynchronous: bool = True
    """Whether observations and reflections are prepared in advance (buffered)."""
    message_tokens: int = 30_000
    """Unobserved tokens from which messages are observed; see `thresholds` for a shared budget."""
    buffer_tokens: int | None = 6_000
    retention_floor: int | None = 6_000
    """Tokens of messages that activation leaves in the context."""
    block_after: int | None = 36_000
    observation_tokens: int = 40_000
    """Tokens of the log from which it is reflected."""
    reflection_buffer_at: int | None = 20_000
    """Tokens of the log from which a reflection is prepared in advance."""
    reflection_block_after: int | None = 48_000
    share_token_budget: bool = False
    max_tokens_per_batch: int = 10_000
    previous_observer_tokens: int | Literal[False] = 2_000
    thread_title: bool = False
    observation: CallSettings = field(default_factory=lambda: CallSettings(temperature=0.3))
    reflection: CallSettings = field(default_factory=CallSettings)
    hooks: ObservationHooks = field(default_factory=ObservationHooks)
    retrieval: RetrievalOptions | None = None
    activate_after_idle: float | Literal["auto"] | None = None
    """Milliseconds; see `idle.get_idle_milliseconds`."""
    manage_working_memory: bool = False
    observe_attachments: tuple[str, ...] = ("image/*", "application/pdf")


def resolve_settings(
    options: ObservationalMemoryOptions, record_config: Mapping[str, Any] | None = None
) -> ObservationSettings:
    """Return the settings for a record.

    Args:
        options: The options of the agent.
        record_config: The `config` of the record. Its key `_overrides` can lower or raise the two
            thresholds.
    """
    observation, reflection = options.observation, options.reflection
    overrides = _read_overrides(record_config)
    buffer_tokens = resolve_buffer_tokens(observation)
    message_tokens = _override_message_tokens(observation, buffer_tokens, overrides)
    observation_tokens = (
        _read_threshold(overrides, "reflection", "observation_tokens")
        or reflection.observation_tokens
    )
    return ObservationSettings(
        scope=options.scope,
        asynchronous=options.asynchronous,
        message_tokens=message_tokens,
        observation_tokens=observation_tokens,
        **_resolve_buffering(options, message_tokens, observation_tokens),
        share_token_budget=options.share_token_budget,
        max_tokens_per_batch=observation.max_tokens_per_batch,
        previous_observer_tokens=observation.previous_observer_tokens,
        thread_title=observation.thread_title,
        observation=_resolve_call(observation, temperature=0.3),
        reflection=_resolve_call(reflection, temperature=0.0),
        hooks=options.hooks,
        retrieval=options.retrieval,
        activate_after_idle=options.activate_after_idle,
        manage_working_memory=observation.manage_working_memory,
        observe_attachments=observation.observe_attachments,
    )


def _resolve_buffering(
    options: ObservationalMemoryOptions, message_tokens: int, observation_tokens: int
) -> dict[str, Any]:
    """Return the numbers for buffering; all are None if it is off.

    Both `block_after` follow an override of their threshold, so that they never lie below it.
    """
    if not options.asynchronous:
        return dict.fromkeys(_BUFFERING_SETTINGS)
    observation, reflection = options.observation, options.reflection
    block_after = resolve_block_after(observation.block_after, message_tokens)
    reflection_block_after = resolve_block_after(reflection.block_after, observation_tokens)
    values = (
        resolve_buffer_tokens(observation),
        resolve_retention_floor(observation.buffer_activation, message_tokens),
        max(block_after, message_tokens),
        math.floor(observation_tokens * reflection.buffer_activation + 0.5),
        max(reflection_block_after, observation_tokens),
    )
    return dict(zip(_BUFFERING_SETTINGS, values, strict=True))


def resolve_buffer_tokens(observation: ObservationOptions) -> int | None:
    """Return `buffer_tokens` as a number of tokens, or None if buffering is off."""
    value = observation.buffer_tokens
    if value is False:
        return None
    return math.floor(observation.message_tokens * value + 0.5) if value < 1 else int(value)


def resolve_retention_floor(buffer_activation: float, threshold: int) -> int:
    """Return how many tokens of messages activation leaves in the context."""
    if buffer_activation >= MIN_ABSOLUTE_ACTIVATION:
        return int(buffer_activation)
    return round(threshold * (1 - buffer_activation))


def resolve_activation_ratio(buffer_activation: float | None, threshold: int) -> float:
    """Return the share of the threshold that activation removes."""
    if buffer_activation is None:
        return DEFAULT_ACTIVATION_RATIO
    if buffer_activation >= MIN_ABSOLUTE_ACTIVATION:
        return min(1.0, max(0.0, 1 - buffer_activation / threshold))
    return buffer_activation


def _read_overrides(record_config: Mapping[str, Any] | None) -> Mapping[str, Any]:
    overrides = snake_keys((record_config or {}).get("_overrides"))
    return overrides if isinstance(overrides, Mapping) else {}


def _read_threshold(overrides: Mapping[str, Any], part: str, name: str) -> int | None:
    """Return a positive whole number of the overrides, or None. Other values are ignored."""
    section = overrides.get(part)
    value = section.get(name) if isinstance(section, Mapping) else None
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    return None


def _override_message_tokens(
    observation: ObservationOptions, buffer_tokens: int | None, overrides: Mapping[str, Any]
) -> int:
    """Return the threshold. An override is ignored if buffering or activation would not fit."""
    override = _read_threshold(overrides, "observation", "message_tokens")
    activation = observation.buffer_activation
    floor = int(activation) if activation >= MIN_ABSOLUTE_ACTIVATION else 0
    if override is None or (buffer_tokens is not None and override <= max(buffer_tokens, floor)):
        return observation.message_tokens
    return override


def _resolve_call(
    options: ObservationOptions | ReflectionOptions, *, temperature: float
) -> CallSettings:
    model_settings = options.model_settings
    return CallSettings(
        model=options.model,
        instruction=options.instruction,
        hints=options.continuation_hints,
        temperature=model_settings.get("temperature", temperature),
        max_tokens=model_settings.get("max_output_tokens"),
        extractors=options.extract,
    )
