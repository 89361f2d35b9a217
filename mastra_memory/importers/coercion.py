"""Convert JSON values of other systems. Unexpected types become empty values, without an error."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from mastra_memory.db import json_text, times
from mastra_memory.exceptions import InvalidInput

_MAX_SECONDS = 10**11


def to_text(value: Any) -> str:
    """Return a string unchanged, and an empty string for any other type."""
    return value if isinstance(value, str) else ""


def to_texts(value: Any) -> list[str]:
    """Return the strings in a list, and an empty list for any other type."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def to_mapping(value: Any) -> Mapping[str, Any]:
    """Return an object unchanged, and an empty mapping for any other type."""
    return value if isinstance(value, Mapping) else {}


def to_mappings(value: Any) -> list[Mapping[str, Any]]:
    """Return the objects in a list, and an empty list for any other type."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def to_int(value: Any) -> int:
    """Return an integer unchanged, and 0 for any other type."""
    return to_int_or_none(value) or 0


def to_int_or_none(value: Any) -> int | None:
    """Return an integer unchanged, and None for any other type."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def to_datetime(value: Any) -> datetime | None:
    """Return the time of an ISO 8601 string or of epoch seconds, and None for anything else.

    Numbers that would be beyond the year 5000 as seconds are milliseconds.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = value * 1000 if abs(value) < _MAX_SECONDS else value
    try:
        return times.parse_time(value)
    except ValueError:
        return None


def parse_json(value: str) -> Any:
    """Return the value of a JSON text, and None for text that is not JSON."""
    try:
        return json_text.loads(value)
    except InvalidInput:
        return None


def drop_empty(**values: Any) -> dict[str, Any]:
    """Return the values without None, empty strings, empty lists and empty objects."""
    return {key: value for key, value in values.items() if value not in (None, "", [], {})}
