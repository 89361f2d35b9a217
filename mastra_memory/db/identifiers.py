"""Check ids, and keys in metadata filters."""

import re
from collections.abc import Mapping
from typing import Any

from mastra_memory.db import json_text
from mastra_memory.exceptions import InvalidInput, Issue

MAX_ID_BYTES = 1024
"""The maximum length of an id in UTF-8. Two ids fit into one index entry (at most 2,704 bytes)."""

_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_FORBIDDEN = frozenset({"__proto__", "prototype", "constructor"})
_RULE = (
    "Keys must start with a letter or underscore and contain at most 128 letters, digits "
    "and underscores."
)


def check_id(value: Any, name: str) -> str:
    """Return the cleaned id.

    Args:
        value: The id from outside.
        name: The field, for the error message.

    Raises:
        InvalidInput: The value is not a text, or it is empty or too long.
    """
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be text", [Issue(name, "must be text")])
    text: str = json_text.clean_text(value)
    if not 0 < (len(text) if text.isascii() else len(text.encode())) <= MAX_ID_BYTES:
        reason = f"must be 1 to {MAX_ID_BYTES} bytes long"
        raise InvalidInput(f"{name} {reason}", [Issue(name, reason)])
    return text


def check_metadata_keys(metadata: Mapping[str, Any], path: str) -> None:
    """Raise `InvalidInput` for a key that is not allowed in a filter.

    The rule is that of Mastra, where keys become part of an SQL statement.
    """
    for key in metadata:
        if not _KEY.fullmatch(key) or key in _FORBIDDEN:
            raise InvalidInput(
                f"Invalid metadata key: {json_text.dumps(key[:140])}. {_RULE}",
                [Issue(f"{path}.{key}", _RULE)],
            )
