"""Merge an update into a JSON object: null deletes, arrays replace, objects are merged."""

from collections.abc import Mapping
from typing import Any

from mastra_memory.db import json_text
from mastra_memory.exceptions import InvalidInput


def parse_object(text: str) -> dict[str, Any]:
    """Return stored working memory as a dict, or an empty dict if it is not a JSON object."""
    if not text.strip():
        return {}
    try:
        value = json_text.loads(text)
    except InvalidInput:
        return {}
    return value if isinstance(value, dict) else {}


def merge_objects(stored: Mapping[str, Any], update: Any) -> dict[str, Any]:
    """Return `stored` with `update` merged into it, at every level.

    An update that is not an object changes nothing.
    """
    if not isinstance(update, Mapping):
        return dict(stored)
    return json_text.merge_objects(stored, update, delete_nulls=True)
