"""JSON schemas of request values that serializer fields do not describe.

Generated clients and fuzzers rely on the OpenAPI schema, so it must not allow values that the API
rejects. The values are checked in `query_strings.py`, `mastra_memory.messages.validation` and
`mastra_memory.options.memory`; keep the schemas in line with these modules.
"""

from typing import Any

from mastra_memory.db.sql import MAX_PAGE

Schema = dict[str, Any]

SENT_AS_JSON = "x-sent-as-json"
"""Marks the schema of a query parameter whose value is JSON text; removed from the output."""

TEXT: Schema = {"type": "string"}
NON_EMPTY_TEXT: Schema = {"type": "string", "minLength": 1}
OBJECT: Schema = {"type": "object"}
BOOLEAN: Schema = {"type": "boolean"}
NUMBER: Schema = {"type": "number"}
DATE_TIME: Schema = {"type": "string", "format": "date-time"}
MIN_MILLISECONDS, MAX_MILLISECONDS = -62135596800000, 253402300799999
DATE_TIME_OR_MILLISECONDS: Schema = {
    "oneOf": [
        DATE_TIME,
        {"type": "number", "minimum": MIN_MILLISECONDS, "maximum": MAX_MILLISECONDS},
    ]
}
NON_NEGATIVE_INTEGER: Schema = {"type": "integer", "minimum": 0, "maximum": MAX_PAGE}
POSITIVE_INTEGER: Schema = {"type": "integer", "minimum": 1, "maximum": MAX_PAGE}
OPTION_NUMBER: Schema = {"type": "integer", "minimum": 0, "maximum": 2**64 - 1}
"""A number among an agent's options. Larger ones are parsed as fractions, which are refused."""


def list_of(items: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": items}


def object_of(properties: Schema, *required: str) -> Schema:
    """Return the schema of an object; other properties are ignored."""
    schema: Schema = {"type": "object", "properties": properties}
    return schema | ({"required": list(required)} if required else {})


def one_of(*values: Any) -> Schema:
    """Return the schema of a choice between texts."""
    return {"type": "string", "enum": list(values)}


def nullable(schema: Schema) -> Schema:
    """Return the schema with null allowed as well."""
    return schema | {"nullable": True}


SCOPE = one_of("thread", "resource")
ROLE = one_of("user", "assistant", "tool", "system", "signal")
PART = object_of({"type": TEXT}, "type")
CONTENT: Schema = {
    "oneOf": [
        TEXT,
        list_of(PART),
        object_of(
            {
                "format": {"type": "integer", "enum": [2]},
                "parts": list_of(PART),
                "metadata": nullable(OBJECT),
            },
            "parts",
        ),
    ]
}
_MESSAGE: Schema = {
    "id": nullable(TEXT),
    "role": ROLE,
    "content": CONTENT,
    "createdAt": DATE_TIME_OR_MILLISECONDS,
    "type": nullable(TEXT),
}
MESSAGE = object_of(
    _MESSAGE | {"threadId": NON_EMPTY_TEXT, "resourceId": NON_EMPTY_TEXT},
    "threadId",
    "resourceId",
    "role",
    "content",
)
NEW_MESSAGES = list_of({"oneOf": [TEXT, object_of(_MESSAGE, "role", "content")]})
MESSAGE_IDS: Schema = {
    "oneOf": [
        NON_EMPTY_TEXT,
        list_of(NON_EMPTY_TEXT),
        object_of({"id": NON_EMPTY_TEXT}, "id"),
        list_of(object_of({"id": NON_EMPTY_TEXT}, "id")) | {"minItems": 1},
    ]
}

MESSAGE_FILTER = object_of(
    {
        "dateRange": object_of(
            {
                "start": DATE_TIME_OR_MILLISECONDS,
                "end": DATE_TIME_OR_MILLISECONDS,
                "startExclusive": BOOLEAN,
                "endExclusive": BOOLEAN,
            }
        ),
        "metadata": OBJECT,
        "roles": list_of(TEXT),
    }
)
INCLUDE = list_of(
    object_of(
        {
            "id": TEXT,
            "withPreviousMessages": NON_NEGATIVE_INTEGER,
            "withNextMessages": NON_NEGATIVE_INTEGER,
        },
        "id",
    )
)


RECALL_TIME: Schema = {
    "type": "object",
    "description": (
        "`enabled` (boolean), `now` (an ISO 8601 time in the years 1900 to 2199) and `timeZone` (a"
        " name such as `Europe/Paris`): how times in the query are understood."
    ),
}
"""Described in words, because a schema cannot list the names of time zones."""


def _memory_config(working_memory_enabled: Schema) -> Schema:
    recall = object_of(
        {
            "topK": OPTION_NUMBER,
            "messageRange": {
                "oneOf": [
                    OPTION_NUMBER,
                    object_of({"before": OPTION_NUMBER, "after": OPTION_NUMBER}),
                ]
            },
            "scope": SCOPE,
            "threshold": NUMBER,
            "mode": one_of("vector", "hybrid"),
            "time": {"oneOf": [BOOLEAN, RECALL_TIME]},
        }
    )
    working_memory = object_of(
        {
            "enabled": working_memory_enabled,
            "scope": SCOPE,
            "template": TEXT,
            "agentManaged": BOOLEAN,
            "version": one_of("stable", "vnext"),
        }
    )
    return object_of(
        {
            "lastMessages": {"oneOf": [OPTION_NUMBER, {"type": "boolean", "enum": [False]}]},
            "readOnly": BOOLEAN,
            "filterIncompleteToolCalls": BOOLEAN,
            "semanticRecall": nullable({"oneOf": [BOOLEAN, recall]}),
            "workingMemory": working_memory,
        }
    )


MEMORY_CONFIG = _memory_config(BOOLEAN)
WORKING_MEMORY_CONFIG = _memory_config({"type": "boolean", "enum": [True]})
"""Options for routes that return an error if working memory is disabled."""
