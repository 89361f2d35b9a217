"""Options of observational memory, with Mastra's names in snake_case and Mastra's defaults."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mastra_memory.exceptions import InvalidInput

ExtractorMode = Literal["inline", "structured", "hook"]
Callback = Callable[..., Any]

DEFAULT_MESSAGE_TOKENS, DEFAULT_OBSERVATION_TOKENS = 30_000, 40_000
DEFAULT_BUFFER_TOKENS, DEFAULT_BUFFER_ACTIVATION, DEFAULT_BLOCK_AFTER = 0.2, 0.8, 1.2
DEFAULT_REFLECTION_ACTIVATION = 0.5
DEFAULT_ATTACHMENTS = ("image/*", "application/pdf")

RESERVED_SLUGS = frozenset(
    """observations observation extracted-values thread message messages conversation history
    system user assistant tool current-task suggested-response thread-title""".split()
)
"""Names that an extractor cannot have, because they are tags of prompts and answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTiers:
    """Models by the size of the input."""

    limits: tuple[tuple[int, str], ...]
    """Pairs of a number of input tokens and the model for inputs up to it, smallest first."""

    def select_model(self, input_tokens: int) -> str:
        """Return the model of the smallest limit that the input does not exceed.

        Raises:
            InvalidInput: The input is larger than the last limit.
        """
        for limit, model in self.limits:
            if input_tokens <= limit:
                return model
        raise InvalidInput(
            f"No model is configured for {input_tokens} input tokens. The largest limit in "
            f"`upTo` is {self.limits[-1][0]}."
        )


ModelChoice = str | ModelTiers
"""`provider/model`, or models by input tokens. An empty text means the setting `MODEL`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinuationHints:
    """The hints for the next answer that a model is asked for."""

    current_task: bool = True
    suggested_response: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalOptions:
    """Options for finding the messages behind an observation."""

    scope: Literal["thread", "resource"] = "resource"
    vector: bool = False
    """Whether observations are searched by meaning."""
    instructions: str = ""
    """Text to add to the rules of the recall tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extractor:
    """A value that is extracted from the conversation together with its observations.

    Args:
        name: The name, such as `Customer mood`. The tag and key `slug` is derived from it.
        instructions: What to extract, for the model.
        schema: A pydantic model or a JSON schema of the value. None means text.
        mode: `inline` reads the value from the Observer's answer, `structured` makes a second
            call with the schema, `hook` makes no call and only calls `on_extracted`.
        include_previous_extraction: Show the last value to the Observer and to the agent.
        metadata_key_path: Dotted path of the value in the thread's Observer metadata. By default
            `extracted.<slug>`.
        on_extracted: Called as `on_extracted(value, thread_id=…, resource_id=…)`. In the mode
            `hook` the value is the text of the observations. A value that it returns replaces the
            extracted one; None keeps it.
    """

    name: str
    instructions: str = ""
    schema: Any = None
    mode: ExtractorMode = "inline"
    include_previous_extraction: bool = True
    metadata_key_path: str = ""
    on_extracted: Callback | None = None

    @property
    def slug(self) -> str:
        """The name as a tag: lower-case letters and digits, separated by hyphens."""
        return make_slug(self.name)

    @property
    def key_path(self) -> tuple[str, ...]:
        """The keys of the value in the thread's Observer metadata."""
        return tuple((self.metadata_key_path or f"extracted.{self.slug}").split("."))


def make_slug(name: str) -> str:
    """Return the name of an extractor as a tag. Quotes are dropped."""
    return re.sub(r"[^a-z0-9]+", "-", re.sub("['\"’‘“”`]", "", name.lower())).strip("-")


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationHooks:
    """Functions that may change or redact what a model reads and what it wrote.

    A function that returns None leaves its input unchanged. An exception stops the operation, so
    that nothing is sent or stored unredacted.
    """

    before_observation: Callback | None = None
    """Takes the list of messages and returns the messages that the Observer reads."""
    after_observation: Callback | None = None
    """Takes the text of new observations and returns the text to store."""
    before_reflection: Callback | None = None
    """Takes the log and returns the log that the Reflector reads."""
    after_reflection: Callback | None = None
    """Takes the text of a reflection and returns the text to store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationOptions:
    """Options of the Observer, as configured. `observational.config` turns shares into tokens."""

    model: ModelChoice = ""
    message_tokens: int = DEFAULT_MESSAGE_TOKENS
    buffer_tokens: float | Literal[False] = DEFAULT_BUFFER_TOKENS
    """A number of tokens, or below 1 a share of `message_tokens`; False turns buffering off."""
    buffer_activation: float = DEFAULT_BUFFER_ACTIVATION
    """The share of the threshold that activation removes, or from 1000 the tokens to keep."""
    block_after: float = DEFAULT_BLOCK_AFTER
    """From this size on, activation may remove more than `buffer_activation` says.

    A multiple of `message_tokens`, or from 100 a number of tokens.
    """
    buffer_on_idle: bool = False
    max_tokens_per_batch: int = 10_000
    previous_observer_tokens: int | Literal[False] = 2_000
    """How much of the log the Observer reads; False means all of it."""
    observe_attachments: tuple[str, ...] = DEFAULT_ATTACHMENTS
    """Patterns of MIME types of the files that are sent to the Observer."""
    thread_title: bool = False
    instruction: str = ""
    continuation_hints: ContinuationHints = field(default_factory=ContinuationHints)
    extract: tuple[Extractor, ...] = ()
    manage_working_memory: bool = False
    model_settings: Mapping[str, Any] = field(default_factory=dict)
    provider_options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectionOptions:
    """Options of the Reflector, as they are configured."""

    model: ModelChoice = ""
    observation_tokens: int = DEFAULT_OBSERVATION_TOKENS
    buffer_activation: float = DEFAULT_REFLECTION_ACTIVATION
    """The share of `observation_tokens` from which a reflection is prepared in advance."""
    block_after: float = DEFAULT_BLOCK_AFTER
    """From this size on, the log is reflected even if no reflection has been prepared.

    A multiple of `observation_tokens`, or from 100 a number of tokens.
    """
    instruction: str = ""
    continuation_hints: ContinuationHints = field(default_factory=ContinuationHints)
    extract: tuple[Extractor, ...] = ()
    model_settings: Mapping[str, Any] = field(default_factory=dict)
    provider_options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationalMemoryOptions:
    """Options of observational memory."""

    scope: Literal["thread", "resource"] = "thread"
    observation: ObservationOptions = field(default_factory=ObservationOptions)
    reflection: ReflectionOptions = field(default_factory=ReflectionOptions)
    asynchronous: bool = True
    """Whether observations and reflections are prepared in advance (buffered)."""
    share_token_budget: bool = False
    retrieval: RetrievalOptions | None = None
    activate_after_idle: float | Literal["auto"] | None = None
    """Milliseconds without activity after which chunks are activated, or None."""
    activate_on_provider_change: bool = False
    temporal_markers: bool = False
    hooks: ObservationHooks = field(default_factory=ObservationHooks)

    @property
    def ignored(self) -> list[str]:
        """The options of Mastra that are set and have no effect, by their names there."""
        ignored = {
            "activateOnProviderChange": self.activate_on_provider_change,
            "temporalMarkers": self.temporal_markers,
            "observation.bufferOnIdle": self.observation.buffer_on_idle,
            "observation.providerOptions": self.observation.provider_options,
            "reflection.providerOptions": self.reflection.provider_options,
        }
        return [name for name, value in ignored.items() if value]
