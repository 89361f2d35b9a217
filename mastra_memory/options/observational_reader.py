"""Read and validate the options of observational memory."""

import math
from collections.abc import Mapping
from typing import Any, Literal

from mastra_memory.exceptions import InvalidInput
from mastra_memory.options import observational
from mastra_memory.options.code_reader import CodeReader
from mastra_memory.options.durations import DURATION_ERROR, parse_duration
from mastra_memory.options.observational import (
    ContinuationHints,
    ModelChoice,
    ModelTiers,
    ObservationalMemoryOptions,
    ObservationOptions,
    ReflectionOptions,
    RetrievalOptions,
)
from mastra_memory.options.reader import OptionsReader

_OM = "observational_memory"
_PARTS = ("observation", "reflection")
_BUFFERING_OPTIONS = (
    "observation.buffer_tokens",
    "observation.buffer_activation",
    "reflection.buffer_activation",
)


def read_observational_options(reader: OptionsReader) -> ObservationalMemoryOptions | None:
    """Return the options of observational memory, or None if it is off.

    Errors are added to the reader.
    """
    if not reader.is_enabled(_OM):
        return None
    return _ObservationalReader(reader).read()


class _ObservationalReader:
    """Read the options of observational memory, and check the rules between them."""

    def __init__(self, reader: OptionsReader) -> None:
        self.reader = reader
        self.code = CodeReader(reader)  # hooks and extractors
        self.buffer_tokens = self.read_buffer_tokens()
        self.scope: Literal["thread", "resource"] = reader.read_choice(
            f"{_OM}.scope", ("thread", "resource")
        )

    def get(self, path: str, default: Any = None) -> Any:
        return self.reader.get(f"{_OM}.{path}", default)

    def add_error(self, path: str, reason: str) -> None:
        self.reader.add_error(f"{_OM}.{path}" if path else _OM, reason)

    def read_flag(self, path: str, default: bool = False) -> bool:
        value: bool = self.reader.read_choice(f"{_OM}.{path}", (default, not default))
        return value

    def read(self) -> ObservationalMemoryOptions:
        models = self.read_models()
        options = ObservationalMemoryOptions(
            scope=self.scope,
            observation=self.read_observation(models[0]),
            reflection=self.read_reflection(models[1]),
            asynchronous=self.is_asynchronous(),
            share_token_budget=self.read_flag("share_token_budget"),
            retrieval=self.read_retrieval(),
            activate_after_idle=self.read_idle_time(),
            activate_on_provider_change=self.read_flag("activate_on_provider_change"),
            temporal_markers=self.read_flag("temporal_markers"),
            hooks=self.code.read_hooks(),
        )
        self.check_buffering(options)
        return options

    # Models

    def read_models(self) -> tuple[ModelChoice, ModelChoice]:
        """Return the models of the Observer and of the Reflector."""
        common = self.read_model("model")
        observer, reflector = (self.read_model(f"{part}.model") for part in _PARTS)
        if common and (observer or reflector):
            self.add_error(
                "model", "cannot be used together with observation.model or reflection.model"
            )
        return (observer or common or reflector), (reflector or common or observer)

    def read_model(self, path: str) -> ModelChoice:
        value = self.get(path)
        if isinstance(value, Mapping):
            return self.read_tiers(path, value.get("up_to", value))
        model = self.reader.read_text(f"{_OM}.{path}") or ""
        return "" if model == "default" else model

    def read_tiers(self, path: str, tiers: Any) -> ModelChoice:
        limits: list[tuple[int, str]] = []
        for limit, model in tiers.items() if isinstance(tiers, Mapping) else ():
            number = str(limit)
            if not number.isdecimal() or int(number) < 1 or not isinstance(model, str):
                limits = []
                break
            limits.append((int(number), "" if model == "default" else model))
        if not limits:
            self.add_error(path, "must be a model, or an object like {upTo: {10000: model}}")
            return ""
        return ModelTiers(limits=tuple(sorted(limits)))

    # Observer and Reflector

    def read_observation(self, model: ModelChoice) -> ObservationOptions:
        path = f"{_OM}.observation"
        return ObservationOptions(
            model=model,
            message_tokens=self.reader.read_whole_number(
                f"{path}.message_tokens", observational.DEFAULT_MESSAGE_TOKENS, 1
            ),
            buffer_tokens=self.buffer_tokens,
            buffer_activation=self.read_positive(
                "observation.buffer_activation", observational.DEFAULT_BUFFER_ACTIVATION
            ),
            block_after=self.read_positive(
                "observation.block_after", observational.DEFAULT_BLOCK_AFTER
            ),
            buffer_on_idle=self.read_flag("observation.buffer_on_idle"),
            max_tokens_per_batch=self.reader.read_whole_number(
                f"{path}.max_tokens_per_batch", 10_000, 1
            ),
            previous_observer_tokens=self.read_previous_tokens(),
            observe_attachments=self.read_attachments(),
            thread_title=self.read_flag("observation.thread_title"),
            manage_working_memory=self.read_flag("observation.manage_working_memory"),
            **self.read_call_options("observation"),
        )

    def read_reflection(self, model: ModelChoice) -> ReflectionOptions:
        return ReflectionOptions(
            model=model,
            observation_tokens=self.reader.read_whole_number(
                f"{_OM}.reflection.observation_tokens", observational.DEFAULT_OBSERVATION_TOKENS, 1
            ),
            buffer_activation=self.read_positive(
                "reflection.buffer_activation", observational.DEFAULT_REFLECTION_ACTIVATION
            ),
            block_after=self.read_positive(
                "reflection.block_after", observational.DEFAULT_BLOCK_AFTER
            ),
            **self.read_call_options("reflection"),
        )

    def read_call_options(self, part: str) -> dict[str, Any]:
        return {
            "instruction": self.reader.read_text(f"{_OM}.{part}.instruction") or "",
            "continuation_hints": self.read_hints(f"{part}.continuation_hints"),
            "extract": self.code.read_extractors(f"{part}.extract"),
            "model_settings": self.read_model_settings(f"{part}.model_settings"),
            "provider_options": self.read_mapping(f"{part}.provider_options"),
        }

    def read_buffer_tokens(self) -> float | Literal[False]:
        value = self.get("observation.buffer_tokens")
        if value is False:
            return False
        return self.read_positive("observation.buffer_tokens", observational.DEFAULT_BUFFER_TOKENS)

    def read_positive(self, path: str, default: float) -> float:
        value = self.get(path)
        if value is None:
            return default
        if isinstance(value, int | float) and not isinstance(value, bool):
            if math.isfinite(value) and value > 0:
                return value
        self.add_error(path, "must be a number greater than 0")
        return default

    def read_previous_tokens(self) -> int | Literal[False]:
        value = self.get("observation.previous_observer_tokens")
        if value is False:
            return False
        if value is None:
            return 2_000
        if isinstance(value, int | float) and not isinstance(value, bool):
            if math.isfinite(value) and value >= 0:
                return int(value)
        self.add_error("observation.previous_observer_tokens", "must be false or at least 0")
        return 2_000

    def read_attachments(self) -> tuple[str, ...]:
        path = "observation.observe_attachments"
        match self.get(path):
            case None | "auto":
                return observational.DEFAULT_ATTACHMENTS
            case True:
                return ("*/*",)
            case False:
                return ()
            case list() | tuple() as patterns if all(isinstance(item, str) for item in patterns):
                return tuple(patterns)
        self.add_error(path, "must be true, false, `auto` or a list of MIME types")
        return observational.DEFAULT_ATTACHMENTS

    def read_hints(self, path: str) -> ContinuationHints:
        value = self.get(path)
        if isinstance(value, Mapping):
            return ContinuationHints(
                current_task=self.read_flag(f"{path}.current_task", True),
                suggested_response=self.read_flag(f"{path}.suggested_response", True),
            )
        enabled = True if value is None else self.read_flag(path, True)
        return ContinuationHints(current_task=enabled, suggested_response=enabled)

    def read_model_settings(self, path: str) -> Mapping[str, Any]:
        settings = self.read_mapping(path)
        self.reader.read_number(f"{_OM}.{path}.temperature")
        if settings.get("max_output_tokens") is not None:
            self.reader.read_whole_number(f"{_OM}.{path}.max_output_tokens", 1, 1)
        return settings

    def read_mapping(self, path: str) -> Mapping[str, Any]:
        value = self.get(path)
        if value is None or isinstance(value, Mapping):
            return value or {}
        self.add_error(path, "must be an object")
        return {}

    # Retrieval and idle time

    def read_retrieval(self) -> RetrievalOptions | None:
        value = self.get("retrieval", False)
        if not isinstance(value, Mapping):
            return RetrievalOptions() if self.read_flag("retrieval") else None
        return RetrievalOptions(
            scope=self.reader.read_choice(f"{_OM}.retrieval.scope", ("resource", "thread")),
            vector=self.read_flag("retrieval.vector"),
            instructions=self.reader.read_text(f"{_OM}.retrieval.instructions") or "",
        )

    def read_idle_time(self) -> float | Literal["auto"] | None:
        # Mastra accepts the option only at the top level, and ignores it without notice in
        # `observation` and `reflection`. Here it works in all three places.
        for path in ("activate_after_idle", *(f"{part}.activate_after_idle" for part in _PARTS)):
            value = self.get(path)
            if value == "auto":
                return "auto"
            if value is None or value is False:
                continue
            try:
                return parse_duration(value)
            except InvalidInput:
                self.add_error(path, f"{DURATION_ERROR}, `auto`, or false")
        return None

    # Rules between options

    def is_asynchronous(self) -> bool:
        """Return whether observations are buffered. They are not in resource scope."""
        return self.buffer_tokens is not False and self.scope == "thread"

    def check_buffering(self, options: ObservationalMemoryOptions) -> None:
        if self.is_asynchronous():
            self.check_asynchronous(options)
            return
        if self.buffer_tokens is not False:
            for path in _BUFFERING_OPTIONS:
                if self.get(path) is not None:
                    self.add_error(path, "needs the scope `thread`: buffering is not supported "
                                   "in resource scope")  # fmt: skip
                    return
        for path in ("observation.block_after", "reflection.block_after"):
            if self.get(path) is not None:
                self.add_error(path, "needs observation.buffer_tokens")

    def check_asynchronous(self, options: ObservationalMemoryOptions) -> None:
        observation, reflection = options.observation, options.reflection
        threshold = observation.message_tokens
        buffer_tokens = observation.buffer_tokens
        if buffer_tokens >= 1 and buffer_tokens >= threshold:
            self.add_error("observation.buffer_tokens", "must be less than message_tokens")
        activation = observation.buffer_activation
        if 1 < activation < 1_000:
            self.add_error(
                "observation.buffer_activation", "must be at most 1 (a share), or at least 1000"
            )
        elif activation >= 1_000 and activation >= threshold:
            self.add_error("observation.buffer_activation", "must be less than message_tokens")
        if resolve_block_after(observation.block_after, threshold) < threshold:
            self.add_error("observation.block_after", "must be at least message_tokens")
        if reflection.buffer_activation > 1:
            self.add_error("reflection.buffer_activation", "must be at most 1")
        maximum = reflection.observation_tokens
        if resolve_block_after(reflection.block_after, maximum) < maximum:
            self.add_error("reflection.block_after", "must be at least observation_tokens")
        if options.share_token_budget:
            self.add_error("share_token_budget", "needs observation.buffer_tokens to be false")


def resolve_block_after(value: float, threshold: int) -> int:
    """Return `block_after` in tokens; from 1 to below 100 it is a multiple of the threshold."""
    return math.floor(threshold * value + 0.5) if 1 <= value < 100 else int(value)
