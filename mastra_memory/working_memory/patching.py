"""Edit parts of a Markdown text, for working memory of the version `vnext`."""

from collections.abc import Mapping
from typing import Any

from mastra_memory.exceptions import InvalidInput

APPEND, CLARIFY, REPLACE = (
    "append-new-memory",
    "clarify-existing-memory",
    "replace-irrelevant-memory",
)
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "newMemory": {"type": "string", "description": "The new text, in Markdown."},
        "searchString": {
            "type": "string",
            "description": "The exact text to replace.",
        },
        "updateReason": {"type": "string", "enum": [APPEND, CLARIFY, REPLACE]},
    },
    "required": ["newMemory"],
    "additionalProperties": False,
}


def apply_patch(current: str, template: str, arguments: Mapping[str, Any]) -> str:
    """Return `current` with the new text inserted.

    If the text to replace does not occur in `current`, the new text is appended on a new line. The
    empty template is removed from the result.

    Args:
        current: The Markdown that is stored.
        template: The agent's empty template.
        arguments: The arguments of the tool call, as described by `PARAMETERS`.

    Raises:
        InvalidInput: The arguments are invalid, or the new text is stored already.
    """
    new_text, reason = arguments.get("newMemory"), arguments.get("updateReason") or APPEND
    searched = arguments.get("searchString") if reason != APPEND else None
    if not isinstance(new_text, str) or not new_text.strip():
        raise InvalidInput("newMemory must be a non-empty string")
    if reason != APPEND and not searched:
        raise InvalidInput(f"searchString is required with the updateReason {reason}")
    if new_text.strip() == template or new_text in current:
        raise InvalidInput("newMemory is already part of the working memory")
    if searched and searched in current:
        result = current.replace(searched, new_text, 1)
    else:
        result = f"{current}\n{new_text}" if current else new_text
    return result.replace(template, "").strip() if template else result
