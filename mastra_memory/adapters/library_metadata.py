"""Read and write a library's metadata: `providerMetadata` of parts, `metadata` of messages."""

from collections.abc import Mapping
from typing import Any

from pydantic_core import to_jsonable_python

from mastra_memory.content.normalization import Content
from mastra_memory.db import json_text
from mastra_memory.exceptions import InvalidInput

Json = dict[str, Any]


def drop_empty(value: Mapping[str, Any]) -> Json:
    """Return the mapping without the keys whose values are None, `[]` or `{}`."""
    return {key: item for key, item in value.items() if item is not None and item not in ([], {})}


def make_jsonable(fields: Mapping[str, Any]) -> Json:
    """Return the fields as JSON values, because tools may attach any Python object to a message.

    Bytes become base64 text, sets become lists, and dataclasses become objects. A value without a
    JSON form becomes None; so does a whole field that is too deep or contains itself.
    """
    return {key: _convert_to_json(value) for key, value in fields.items()}


def _convert_to_json(value: Any) -> Any:
    try:
        converted = to_jsonable_python(value, bytes_mode="base64", fallback=lambda _: None)
        json_text.dumps(converted)
    except (ValueError, InvalidInput):
        return None
    return converted


def attach_metadata(
    library: str, part: Json, metadata: Mapping[str, Any], *, under: str | None = None
) -> Json:
    """Return the part with a library's metadata, or the part itself if the metadata is empty.

    Args:
        library: The key in `providerMetadata`.
        part: A part of a message.
        metadata: Values to attach. Empty values are left out.
        under: A key inside the library's metadata. A tool call and its result use different
            keys, because both are stored in one part.
    """
    values = drop_empty(metadata)
    if not values:
        return part
    return {**part, "providerMetadata": {library: {under: values} if under else values}}


def get_part_metadata(library: str, part: Mapping[str, Any]) -> Json:
    """Return a library's metadata of a part, or an empty dict if there is none."""
    all_metadata = part.get("providerMetadata")
    metadata = all_metadata.get(library) if isinstance(all_metadata, Mapping) else None
    return dict(metadata) if isinstance(metadata, Mapping) else {}


def build_content(library: str, parts: list[Json], metadata: Mapping[str, Any]) -> Content:
    """Return message content with these parts and a library's metadata of the whole message."""
    content: Content = {"format": 2, "parts": parts}
    values = drop_empty(metadata)
    return {**content, "metadata": {library: values}} if values else content


def get_message_metadata(library: str, content: Mapping[str, Any]) -> Json | None:
    """Return a library's metadata of a message, or None if the library did not write it."""
    all_metadata = content.get("metadata")
    metadata = all_metadata.get(library) if isinstance(all_metadata, Mapping) else None
    return dict(metadata) if isinstance(metadata, Mapping) else None


def make_opaque_part(library: str, value: Any) -> Json:
    """Return a part for a value that only the library understands."""
    return {"type": f"data-{library}", "data": value}
