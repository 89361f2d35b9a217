"""Foreign JSON read without surprises: each function answers for every value there is."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from mastra_memory.db import json_text, times
from mastra_memory.exceptions import InvalidInput


def to_text(value: Any) -> str:
    """The text, `""` for anything else."""
    return value if isinstance(value, str) else ""


def to_mapping(value: Any) -> Mapping[str, Any]:
    """The object, an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


def to_mappings(value: Any) -> list[Mapping[str, Any]]:
    """The objects of the list, nothing for anything else."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def to_datetime(value: Any) -> datetime | None:
    """The moment that ISO text or epoch seconds name, None for anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = value * 1000
    try:
        return times.parse_time(value)
    except ValueError:
        return None


def drop_empty(**values: Any) -> dict[str, Any]:
    """The values that say something."""
    return {key: value for key, value in values.items() if value not in (None, "", [], {})}


def parse_json(value: str) -> Any:
    """What the text says as JSON, None when it is none."""
    try:
        return json_text.loads(value)
    except InvalidInput:
        return None


def to_int_or_none(value: Any) -> int | None:
    """The whole number, None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def to_int(value: Any) -> int:
    """The whole number, 0 for anything else."""
    return to_int_or_none(value) or 0


def to_texts(value: Any) -> list[str]:
    """The texts of the list, nothing for anything else."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
