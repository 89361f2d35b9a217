"""The options of an agent's memory: Mastra's options, merged, checked and typed."""

from mastra_memory.options.memory import (
    DEFAULT_TEMPLATE,
    MemoryOptions,
    MessageHistoryOptions,
    SemanticRecallOptions,
    TimeOptions,
    TitleOptions,
    WorkingMemoryOptions,
    parse_request_options,
)
from mastra_memory.options.names import camel_keys, merge_options, snake_keys
from mastra_memory.options.observational import (
    ContinuationHints,
    Extractor,
    ModelTiers,
    ObservationalMemoryOptions,
    ObservationHooks,
    ObservationOptions,
    ReflectionOptions,
    RetrievalOptions,
)
from mastra_memory.options.reader import MAX_SAFE_INTEGER

__all__ = [
    "DEFAULT_TEMPLATE",
    "MAX_SAFE_INTEGER",
    "ContinuationHints",
    "Extractor",
    "MemoryOptions",
    "MessageHistoryOptions",
    "ModelTiers",
    "ObservationHooks",
    "ObservationOptions",
    "ObservationalMemoryOptions",
    "ReflectionOptions",
    "RetrievalOptions",
    "SemanticRecallOptions",
    "TimeOptions",
    "TitleOptions",
    "WorkingMemoryOptions",
    "camel_keys",
    "merge_options",
    "parse_request_options",
    "snake_keys",
]
