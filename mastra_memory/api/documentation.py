"""The words of the OpenAPI schema that several viewsets share."""

from collections.abc import Callable
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema

from mastra_memory.api import answers


def parameter(name: str, text: str, kind: Any = str, *, required: bool = False) -> OpenApiParameter:
    """A query parameter."""
    return OpenApiParameter(name, kind, description=text, required=required)


def viewset(tag: str) -> Callable[[Any], Any]:
    """Put a viewset under a heading of the documentation page."""
    return extend_schema(tags=[tag])


def responses(success: Any, *failures: int) -> dict[int, Any]:
    """The answers of a route: 200, the refusals every route knows, and some of its own."""
    return {200: success} | dict.fromkeys((400, 401, 403, *failures), answers.Error)


AGENT = parameter("agentId", "The agent whose memory is meant.", required=True)
READ_AGENT = parameter("agentId", "The agent; without one, the storage alone answers.")
RESOURCE = parameter("resourceId", "Refused with 403 unless it owns the thread.")
PAGE = parameter("page", "Counted from 0.", int)
READ = [READ_AGENT, RESOURCE]
WRITE = [AGENT, RESOURCE]
MEMORY_CONFIG = parameter("memoryConfig", "JSON object of options over the agent's own.")
READ_MEMORY = [AGENT, RESOURCE, MEMORY_CONFIG]
MEMORY_MODE = OpenApiParameter(
    "mode", str, enum=["replace", "merge"], description="`merge`: as the agent's tool writes."
)
CONTEXT = [
    *READ_MEMORY,
    parameter("query", "What the user just said: the new message, and what is searched for."),
    parameter("newMessages", "JSON list of new messages, where there is more than a text."),
]
METADATA_MODE = OpenApiParameter(
    "metadataMode", str, enum=["replace", "merge"], description="What becomes of other keys."
)
ORDER = parameter(
    "orderBy", 'JSON `{"field", "direction"}`, or `orderBy[field]` and `orderBy[direction]`.'
)
LIST_THREADS = [
    READ_AGENT,
    parameter("resourceId", "Whose threads; a scoped caller always gets its own."),
    parameter("metadata", "JSON object that the thread's metadata must contain."),
    PAGE,
    parameter("perPage", "Page size, 100 by default.", int),
    ORDER,
    parameter("createdAfter", "Created at or after.", OpenApiTypes.DATETIME),
    parameter("createdBefore", "Created at or before.", OpenApiTypes.DATETIME),
    parameter("updatedAfter", "Active at or after.", OpenApiTypes.DATETIME),
    parameter("updatedBefore", "Active at or before.", OpenApiTypes.DATETIME),
    parameter("title", "Part of the title."),
    parameter("text", "Words of a message."),
]
LIST_MESSAGES = [
    *READ,
    PAGE,
    parameter("perPage", "Page size, 40 by default.", int),
    ORDER,
    parameter(
        "filter",
        'JSON: `{"dateRange": {"start", "end", "startExclusive", "endExclusive"}, '
        '"metadata": {…}, "roles": […]}`.',
    ),
    parameter(
        "include", 'JSON list of `{"id", "withPreviousMessages", "withNextMessages"}` to add.'
    ),
    parameter("includeSystemReminders", "Show system reminders too.", bool),
]
OBSERVATIONS = [
    AGENT,
    parameter("resourceId", "Whose; a scoped caller's own.", required=True),
    parameter("threadId", "The thread, where the agent observes threads."),
    parameter("from", "Generations created at or after.", OpenApiTypes.DATETIME),
    parameter("to", "Generations created at or before.", OpenApiTypes.DATETIME),
    parameter("offset", "Generations to leave out.", int),
    parameter("limit", "Generations to show, 5 by default.", int),
]
SEARCH = [
    AGENT,
    parameter("searchQuery", 'Words; `"a phrase"` and `-without` work.', required=True),
    parameter("resourceId", "Whose messages; a scoped caller's own.", required=True),
    parameter("threadId", "Only this thread, where the agent's scope is the thread."),
    parameter("limit", "At most so many results, 20 by default.", int),
    OpenApiParameter(
        "searchType",
        str,
        enum=["semantic", "text", "hybrid"],
        description="Best first, with scores; without it Mastra's answer, newest first.",
    ),
    parameter("memoryConfig", "JSON object of options over the agent's own."),
]
STATUS = [
    AGENT,
    parameter("resourceId", "Whose observations to tell about."),
    parameter("threadId", "Which thread's."),
]
