"""JSON schemas of values in requests that serializer fields do not describe.

The OpenAPI schema must exclude what the API refuses, because generated clients and fuzzers rely
on it. The schemas describe checks of `query_strings.py`, `mastra_memory.messages.validation` and
`mastra_memory.options`.
"""

from typing import Any

from mastra_memory.db.sql import MAX_PAGE

Schema = dict[str, Any]

SENT_AS_JSON = "x-sent-as-json"
"""Marks the schema of a query parameter whose value is JSON text; removed from the output."""

TEXT: Schema = {"type": "string"}
FILLED_TEXT: Schema = {"type": "string", "minLength": 1}
OBJECT: Schema = {"type": "object"}
FLAG: Schema = {"type": "boolean"}
NUMBER: Schema = {"type": "number"}
INSTANT: Schema = {"type": "string", "format": "date-time"}
YEAR_1, YEAR_9999 = -62135596800000, 253402300799999
INSTANT_OR_MILLISECONDS: Schema = {
    "oneOf": [INSTANT, {"type": "number", "minimum": YEAR_1, "maximum": YEAR_9999}]
}
SIZE: Schema = {"type": "integer", "minimum": 0, "maximum": MAX_PAGE}
POSITIVE_SIZE: Schema = {"type": "integer", "minimum": 1, "maximum": MAX_PAGE}


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


def or_null(schema: Schema) -> Schema:
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
                "metadata": or_null(OBJECT),
            },
            "parts",
        ),
    ]
}
_MESSAGE: Schema = {
    "id": TEXT,
    "role": ROLE,
    "content": CONTENT,
    "createdAt": INSTANT_OR_MILLISECONDS,
    "type": TEXT,
}
MESSAGE = object_of(
    _MESSAGE | {"threadId": FILLED_TEXT, "resourceId": FILLED_TEXT},
    "threadId",
    "resourceId",
    "role",
    "content",
)
NEW_MESSAGES = list_of({"oneOf": [TEXT, object_of(_MESSAGE, "role", "content")]})
MESSAGE_IDS: Schema = {
    "oneOf": [
        FILLED_TEXT,
        list_of(FILLED_TEXT),
        object_of({"id": FILLED_TEXT}, "id"),
        list_of(object_of({"id": FILLED_TEXT}, "id")) | {"minItems": 1},
    ]
}

MESSAGE_FILTER = object_of(
    {
        "dateRange": object_of(
            {
                "start": INSTANT_OR_MILLISECONDS,
                "end": INSTANT_OR_MILLISECONDS,
                "startExclusive": FLAG,
                "endExclusive": FLAG,
            }
        ),
        "metadata": OBJECT,
        "roles": list_of(TEXT),
    }
)
INCLUDE = list_of(
    object_of({"id": TEXT, "withPreviousMessages": SIZE, "withNextMessages": SIZE}, "id")
)


def _memory_config(working_memory_enabled: Schema) -> Schema:
    recall = object_of(
        {
            "topK": SIZE,
            "messageRange": {"oneOf": [SIZE, object_of({"before": SIZE, "after": SIZE})]},
            "scope": SCOPE,
            "threshold": NUMBER,
            "mode": one_of("vector", "hybrid"),
        }
    )
    working_memory = object_of(
        {
            "enabled": working_memory_enabled,
            "scope": SCOPE,
            "template": TEXT,
            "agentManaged": FLAG,
            "version": one_of("stable", "vnext"),
        }
    )
    return object_of(
        {
            "lastMessages": {"oneOf": [SIZE, {"type": "boolean", "enum": [False]}]},
            "readOnly": FLAG,
            "filterIncompleteToolCalls": FLAG,
            "semanticRecall": {"oneOf": [FLAG, recall]},
            "workingMemory": working_memory,
        }
    )


MEMORY_CONFIG = _memory_config(FLAG)
WRITING_CONFIG = _memory_config({"type": "boolean", "enum": [True]})
"""Options for routes that return an error if working memory is off."""
