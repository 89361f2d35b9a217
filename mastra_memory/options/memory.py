"""The options of an agent's memory: Mastra's options, merged, checked and typed."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from typing import Any, Literal

from mastra_memory.db import json_text
from mastra_memory.exceptions import InvalidInput, Issue
from mastra_memory.options.code_reader import refuse_code_in_request
from mastra_memory.options.names import merge_options, snake_keys
from mastra_memory.options.observational import ObservationalMemoryOptions
from mastra_memory.options.observational_reader import read_observational_options
from mastra_memory.options.reader import OptionsReader

logger = logging.getLogger(__name__)

DEFAULT_TEMPLATE = "\n# User Information\n" + "".join(
    f"- **{topic}**: \n"
    for topic in (
        "First Name",
        "Last Name",
        "Location",
        "Occupation",
        "Interests",
        "Goals",
        "Events",
        "Facts",
        "Projects",
    )
)

_REMOVED = {
    "working_memory.use": "was removed: working memory always uses a tool",
    "threads.generate_title": "was removed: use the top-level option generateTitle",
    "processors": "was removed: processors belong to the agent",
}


def parse_request_options(
    request_options: Mapping[str, Any] | None, agent_options: "MemoryOptions"
) -> dict[str, Any] | None:
    """Return the options of a request in snake_case.

    Args:
        request_options: The options from the request.
        agent_options: The options of the agent.

    Raises:
        InvalidInput: A schema of working memory differs from the agent's. Schemas come from the
            settings only, because validation against a malicious schema can take unlimited time.
            The same applies to hooks and extractors, which name code to import.
    """
    if request_options is None:
        return None
    options: dict[str, Any] = snake_keys(request_options)
    refuse_code_in_request(options)
    memory = options.get("working_memory")
    if isinstance(memory, dict) and "schema" in memory:
        options["working_memory"] = {k: v for k, v in memory.items() if k != "schema"}
        schema = memory["schema"]
        if (
            _parse_schema(schema) if isinstance(schema, str) else schema
        ) != agent_options.working_memory.schema:
            reason = "can only be set in the settings of the server, not in a request"
            raise InvalidInput(
                f"workingMemory.schema {reason}",
                [Issue("memoryConfig.workingMemory.schema", reason)],
            )
    return options


def _parse_schema(text: str) -> Any:
    try:
        return json_text.loads(text)
    except InvalidInput as error:
        logger.warning("A schema of a working memory is not JSON (%s)", type(error).__name__)
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageHistoryOptions:
    """A limit on the history in tokens."""

    max_tokens: int
    at_max_remove_tokens: int
    """How many tokens are removed when the limit is reached, so that prompts stay cacheable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeOptions:
    """How expressions of time in a query, such as `last week`, are interpreted."""

    now: datetime | None = None
    """The time that they are relative to; None for the current time. Without an offset it is in
    `zone`."""
    zone: tzinfo | None = None
    """The time zone in which days start; None for Django's current time zone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticRecallOptions:
    """Options of recall by meaning."""

    top_k: int = 4
    before: int = 1
    after: int = 1
    scope: Literal["thread", "resource"] = "resource"
    threshold: float | None = None
    filter: Mapping[str, Any] | None = None
    mode: Literal["vector", "hybrid"] = "vector"
    """`vector` compares embeddings, as Mastra does; `hybrid` also ranks by words."""
    time: TimeOptions | None = field(default_factory=TimeOptions)
    """None ignores expressions of time in the query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingMemoryOptions:
    """Options of working memory."""

    enabled: bool = False
    scope: Literal["thread", "resource"] = "resource"
    template: str = DEFAULT_TEMPLATE
    schema: Mapping[str, Any] | None = None
    agent_managed: bool = True
    version: Literal["stable", "vnext"] = "stable"
    """`vnext`: the agent changes single parts of the Markdown text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TitleOptions:
    """Options of generated titles."""

    model: str | None = None
    instructions: str | None = None
    min_messages: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryOptions:
    """All options of an agent. None means that a feature is off."""

    last_messages: int | Literal[False] = 10
    last_messages_is_set: bool = False
    message_history: MessageHistoryOptions | None = None
    read_only: bool = False
    filter_incomplete_tool_calls: bool = True
    """Leave tool calls without an outcome out of the context."""
    semantic_recall: SemanticRecallOptions | None = None
    working_memory: WorkingMemoryOptions = field(default_factory=WorkingMemoryOptions)
    observational_memory: ObservationalMemoryOptions | None = None
    generate_title: TitleOptions | None = None
    max_context_tokens: int | None = None
    """The largest number of tokens of a context, by estimate. Working memory and new messages are
    always included; what else the options select is reduced to fit. None for no limit."""
    raw: Mapping[str, Any] = field(default_factory=dict)
    """The merged options in snake_case, before they are checked."""

    @staticmethod
    def parse(*layers: Mapping[str, Any]) -> "MemoryOptions":
        """Merge the layers and check the result; later layers override earlier ones.

        Names may be in Mastra's camelCase or in snake_case.

        Raises:
            InvalidInput: An option is invalid. The error lists all errors.
        """
        raw: dict[str, Any] = {}
        for layer in layers:
            raw = merge_options(raw, snake_keys(layer))
        return _MemoryOptionsReader(raw).read()

    def merged(self, override: Mapping[str, Any] | None) -> "MemoryOptions":
        """Return these options with the options of a call merged into them."""
        return MemoryOptions.parse(self.raw, override) if override else self

    @property
    def is_history_disabled(self) -> bool:
        """Whether a recall without a page returns no history."""
        no_tokens = self.message_history is not None and self.message_history.max_tokens == 0
        return not self.last_messages or no_tokens


class _MemoryOptionsReader(OptionsReader):
    """Read merged options, and collect all errors to report them together."""

    def read(self) -> MemoryOptions:
        for path, reason in _REMOVED.items():
            if self.get(path, None) is not None:
                self.add_error(path, reason)
        options = MemoryOptions(
            last_messages=self.last_messages(),
            last_messages_is_set="last_messages" in self.raw,
            message_history=self.message_history(),
            read_only=self.read_choice("read_only", (False, True)),
            filter_incomplete_tool_calls=self.read_choice(
                "filter_incomplete_tool_calls", (True, False)
            ),
            semantic_recall=self.semantic_recall(),
            working_memory=self.working_memory(),
            observational_memory=read_observational_options(self),
            generate_title=self.generate_title(),
            max_context_tokens=self.max_context_tokens(),
            raw=self.raw,
        )
        self.raise_issues()
        observational = options.observational_memory
        if observational is not None and observational.observation.manage_working_memory:
            # The Observer keeps the working memory, so the agent gets no tool to change it.
            working_memory = replace(options.working_memory, agent_managed=False)
            return replace(options, working_memory=working_memory)
        return options

    def last_messages(self) -> int | Literal[False]:
        if self.raw.get("last_messages") is False:
            return False
        return self.read_whole_number("last_messages", 10)

    def message_history(self) -> MessageHistoryOptions | None:
        if self.raw.get("message_history") is None:
            return None
        limit = self.read_whole_number("message_history.max_tokens", 0)
        removed = self.read_whole_number("message_history.at_max_remove_tokens", limit // 4)
        if removed > limit:
            self.add_error("message_history.at_max_remove_tokens", "must not exceed max_tokens")
        return MessageHistoryOptions(max_tokens=limit, at_max_remove_tokens=removed)

    def max_context_tokens(self) -> int | None:
        if self.raw.get("max_context_tokens") is None:
            return None
        return self.read_whole_number("max_context_tokens", 0)

    def semantic_recall(self) -> SemanticRecallOptions | None:
        if not self.is_enabled("semantic_recall"):
            return None
        span = self.get("semantic_recall.message_range", 1)
        if isinstance(span, Mapping):
            before = self.read_whole_number("semantic_recall.message_range.before", 1)
            after = self.read_whole_number("semantic_recall.message_range.after", 1)
        else:
            before = after = self.read_whole_number("semantic_recall.message_range", 1)
        thread_scope = self.get("semantic_recall.scope", None) == "thread"
        return SemanticRecallOptions(
            top_k=self.read_whole_number("semantic_recall.top_k", 4),
            before=before,
            after=after,
            scope="thread" if thread_scope else "resource",
            threshold=self.read_number("semantic_recall.threshold"),
            filter=self.get("semantic_recall.filter", None),
            mode=self.read_choice("semantic_recall.mode", ("vector", "hybrid")),
            time=self.time(),
        )

    def time(self) -> TimeOptions | None:
        path = "semantic_recall.time"
        if not isinstance(self.get(path, True), Mapping):
            return TimeOptions() if self.read_choice(path, (True, False)) else None
        if not self.read_choice(f"{path}.enabled", (True, False)):
            return None
        now = self.read_time(f"{path}.now")
        if now is not None and not 1900 <= now.year < 2200:
            self.add_error(f"{path}.now", "must be a time between 1900 and 2199")
        return TimeOptions(now=now, zone=self.read_time_zone(f"{path}.time_zone"))

    def working_memory(self) -> WorkingMemoryOptions:
        if self.get("working_memory.version", None) == "vnext":
            if self.get("working_memory.use_state_signals", False):
                self.add_error(
                    "working_memory.use_state_signals", "cannot be used with version vnext"
                )
        return WorkingMemoryOptions(
            enabled=self.get("working_memory.enabled", False) is True,
            scope=self.read_choice("working_memory.scope", ("resource", "thread")),
            template=self.read_text("working_memory.template") or DEFAULT_TEMPLATE,
            schema=self.read_schema("working_memory.schema"),
            agent_managed=self.read_choice("working_memory.agent_managed", (True, False)),
            version=self.read_choice("working_memory.version", ("stable", "vnext")),
        )

    def read_schema(self, path: str) -> Mapping[str, Any] | None:
        """Return a JSON schema from an object, its text, or a pydantic model.

        A text that is not JSON counts as an empty schema, as in Mastra.
        """
        value = self.get(path, None)
        if hasattr(value, "model_json_schema"):
            schema: Mapping[str, Any] = value.model_json_schema()
            return schema
        if isinstance(value, str):
            value = _parse_schema(value)
        if value is None or isinstance(value, Mapping):
            return value
        self.add_error(path, "must be a JSON schema object")
        return None

    def generate_title(self) -> TitleOptions | None:
        if not self.is_enabled("generate_title"):
            return None
        return TitleOptions(
            model=self.read_text("generate_title.model"),
            instructions=self.read_text("generate_title.instructions"),
            min_messages=self.read_whole_number("generate_title.min_messages", 1, 1),
        )
