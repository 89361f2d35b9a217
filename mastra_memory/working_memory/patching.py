"""Markdown changed piece by piece, for agents whose working memory has the version `vnext`."""

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
            "description": "The exact text that it takes the place of.",
        },
        "updateReason": {"type": "string", "enum": [APPEND, CLARIFY, REPLACE]},
    },
    "required": ["newMemory"],
    "additionalProperties": False,
}


def apply_patch(current: str, template: str, arguments: Mapping[str, Any]) -> str:
    """The text with the new piece in it. Raises `InvalidInput` for what must not happen.

    A piece that is to be replaced and is not there is added on a line of its own. The template is
    no part of the result.
    """
    piece, reason = arguments.get("newMemory"), arguments.get("updateReason") or APPEND
    searched = arguments.get("searchString") if reason != APPEND else None
    if not isinstance(piece, str) or not piece.strip():
        raise InvalidInput("newMemory must be text")
    if reason != APPEND and not searched:
        raise InvalidInput(f"updateReason {reason} needs a searchString")
    if piece.strip() == template or piece in current:
        raise InvalidInput("this is in the memory already")
    if searched and searched in current:
        result = current.replace(searched, piece, 1)
    else:
        result = f"{current}\n{piece}" if current else piece
    return result.replace(template, "").strip() if template else result
