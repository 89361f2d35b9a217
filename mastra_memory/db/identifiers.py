"""What may be an id, and what may be a key that a metadata filter names."""

import re
from collections.abc import Mapping
from typing import Any

from mastra_memory.db import json_text
from mastra_memory.exceptions import InvalidInput, Issue

MAX_ID_BYTES = 1024
"""An id may be 1 to this many bytes long in UTF-8: two of them fit into one index entry."""

_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_FORBIDDEN = frozenset({"__proto__", "prototype", "constructor"})
_RULE = (
    "Keys must start with a letter or underscore and contain at most 128 letters, digits "
    "and underscores."
)


def check_id(value: Any, name: str) -> str:
    """The id, cleaned. Raises `InvalidInput` when it is no text, empty, or too long."""
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be text", [Issue(name, "must be text")])
    value = json_text.clean_text(value)
    if not 0 < (len(value) if value.isascii() else len(value.encode())) <= MAX_ID_BYTES:
        reason = f"must be 1 to {MAX_ID_BYTES} bytes long"
        raise InvalidInput(f"{name} {reason}", [Issue(name, reason)])
    return value


def check_metadata_keys(metadata: Mapping[str, Any], path: str) -> None:
    """Raise `InvalidInput` for a key that a filter may not name."""
    for key in metadata:
        if not _KEY.fullmatch(key) or key in _FORBIDDEN:
            raise InvalidInput(
                f"Invalid metadata key: {json_text.dumps(key[:140])}. {_RULE}",
                [Issue(f"{path}.{key}", _RULE)],
            )
