"""The words of the OpenAPI schema that several viewsets share."""

from collections.abc import Callable
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema

from mastra_memory.api import answers, json_schemas
from mastra_memory.api.openapi import ALLOW_EMPTY, json_parameter


def parameter(
    name: str, text: str, schema: Any = json_schemas.TEXT, *, required: bool = False
) -> OpenApiParameter:
    """Return a query parameter; an empty value is taken for none, or refused if it is required."""
    if required:
        return OpenApiParameter(
            name, json_schemas.FILLED_TEXT, description=text, required=True, allow_blank=False
        )
    return OpenApiParameter(name, schema, description=text, extensions={ALLOW_EMPTY: True})


def viewset(tag: str) -> Callable[[Any], Any]:
    """Put a viewset under a heading of the documentation page."""
    return extend_schema(tags=[tag])


def responses(success: Any, *failures: int) -> dict[int, Any]:
    """Return the answers of a route: 200, the refusals of every route, and some of its own."""
    return {200: success} | dict.fromkeys((400, 401, 403, *failures), answers.Error)


AGENT = parameter("agentId", "The agent whose memory is meant.", required=True)
READ_AGENT = parameter("agentId", "The agent; without one, the storage alone answers.")
RESOURCE = parameter("resourceId", "Refused with 403 unless it owns the thread.")
PAGE = parameter("page", "Counted from 0.", json_schemas.SIZE)
READ = [READ_AGENT, RESOURCE]
WRITE = [AGENT, RESOURCE]
MEMORY_CONFIG = json_parameter(
    "memoryConfig", "Options in place of the agent's own.", json_schemas.MEMORY_CONFIG
)
REVISIONS = [
    AGENT,
    RESOURCE,
    json_parameter(
        "memoryConfig", "Options in place of the agent's own.", json_schemas.WRITING_CONFIG
    ),
    PAGE,
    parameter("perPage", "Page size, 20 by default.", json_schemas.SIZE),
]
READ_MEMORY = [AGENT, RESOURCE, MEMORY_CONFIG]
MEMORY_MODE = OpenApiParameter(
    "mode", str, enum=["replace", "merge"], description="`merge`: as the agent's tool writes."
)
CONTEXT = [
    *READ_MEMORY,
    parameter("query", "What the user just said: the new message, and what is searched for."),
    json_parameter(
        "newMessages", "New messages, where there is more than a text.", json_schemas.NEW_MESSAGES
    ),
]
METADATA_MODE = OpenApiParameter(
    "metadataMode", str, enum=["replace", "merge"], description="What becomes of other keys."
)
_ORDER_TEXT = "Also as `orderBy[field]` and `orderBy[direction]`; text that is not JSON is ignored."
THREAD_ORDER = json_parameter("orderBy", _ORDER_TEXT, json_schemas.THREAD_ORDER)
MESSAGE_ORDER = json_parameter("orderBy", _ORDER_TEXT, json_schemas.MESSAGE_ORDER)
LIST_THREADS = [
    READ_AGENT,
    parameter("resourceId", "Whose threads; a scoped caller always gets its own."),
    json_parameter("metadata", "What the thread's metadata must contain.", json_schemas.OBJECT),
    PAGE,
    parameter("perPage", "Page size, 100 by default.", json_schemas.SIZE),
    THREAD_ORDER,
    parameter("createdAfter", "Created at or after.", json_schemas.INSTANT),
    parameter("createdBefore", "Created at or before.", json_schemas.INSTANT),
    parameter("updatedAfter", "Active at or after.", json_schemas.INSTANT),
    parameter("updatedBefore", "Active at or before.", json_schemas.INSTANT),
    parameter("title", "Part of the title."),
    parameter("text", "Words of a message."),
]
LIST_MESSAGES = [
    *READ,
    PAGE,
    parameter("perPage", "Page size, 40 by default.", json_schemas.SIZE),
    MESSAGE_ORDER,
    json_parameter(
        "filter", "Only messages of these times, roles and threads.", json_schemas.MESSAGE_FILTER
    ),
    json_parameter("include", "Messages to add, with their neighbours.", json_schemas.INCLUDE),
    parameter("includeSystemReminders", "Show system reminders too.", json_schemas.FLAG),
]
OBSERVATIONS = [
    AGENT,
    parameter("resourceId", "Whose; a scoped caller's own.", required=True),
    parameter("threadId", "The thread, where the agent observes threads."),
    parameter("from", "Generations created at or after.", json_schemas.INSTANT),
    parameter("to", "Generations created at or before.", json_schemas.INSTANT),
    parameter("offset", "Generations to leave out.", json_schemas.SIZE),
    parameter("limit", "Generations to show, 5 by default.", json_schemas.POSITIVE_SIZE),
]
SEARCH = [
    AGENT,
    parameter("searchQuery", 'Words; `"a phrase"` and `-without` work.', required=True),
    parameter("resourceId", "Whose messages; a scoped caller's own.", required=True),
    parameter("threadId", "Only this thread, where the agent's scope is the thread."),
    parameter("limit", "At most so many results, 20 by default.", json_schemas.SIZE),
    OpenApiParameter(
        "searchType",
        str,
        enum=["semantic", "text", "hybrid"],
        description="Best first, with scores; without it Mastra's answer, newest first.",
    ),
    MEMORY_CONFIG,
]
STATUS = [
    AGENT,
    parameter("resourceId", "Whose observations to tell about."),
    parameter("threadId", "Which thread's."),
]
