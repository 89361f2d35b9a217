"""Merge an update into a JSON object: arrays replace, objects are merged, null may delete."""

from collections.abc import Mapping, Sequence
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

    Null deletes a key (RFC 7396). An update that is not an object changes nothing.
    """
    if not isinstance(update, Mapping):
        return dict(stored)
    return json_text.merge_objects(stored, update, delete_nulls=True)


def drop_nulls(update: Any) -> Any:
    """Return the update without the keys that are null, and without objects that had only those.

    Models that must give all keys of a schema set the keys that they do not change to null. Lists
    replace the stored ones as a whole, so they stay as they are.
    """
    if not isinstance(update, Mapping):
        return update
    kept = {}
    for key, value in update.items():
        changes = drop_nulls(value)
        if changes is not None and (changes != {} or value == {}):
            kept[key] = changes
    return kept


def remove_paths(stored: Mapping[str, Any], paths: Sequence[str]) -> dict[str, Any]:
    """Return the object without the keys at these paths. Paths that do not exist are ignored.

    Args:
        stored: The object. It is not changed.
        paths: Keys separated by dots, such as `job.title`. Keys may contain dots themselves.
    """
    result = dict(stored)
    for path in paths:
        result = _remove_path(result, path)
    return result


def _remove_path(value: dict[str, Any], path: str) -> dict[str, Any]:
    if path in value:
        return {key: item for key, item in value.items() if key != path}
    for key, item in value.items():
        if isinstance(item, dict) and path.startswith(f"{key}."):
            changed = _remove_path(item, path[len(key) + 1 :])
            if changed != item:
                return {**value, key: changed}
    return value
