"""Notes of a library beside what everybody can read: in `providerMetadata` and in `metadata`."""

from collections.abc import Mapping
from typing import Any

from mastra_memory.content.normalization import Content

Json = dict[str, Any]


def drop_empty(value: Mapping[str, Any]) -> Json:
    """The mapping without what says nothing: null, empty lists and objects."""
    return {key: part for key, part in value.items() if part is not None and part not in ([], {})}


def attach_metadata(
    library: str, part: Json, notes: Mapping[str, Any], *, under: str | None = None
) -> Json:
    """The part with a library's notes beside it, `under` a key of their own if one is given."""
    kept = drop_empty(notes)
    if not kept:
        return part
    return {**part, "providerMetadata": {library: {under: kept} if under else kept}}


def get_part_metadata(library: str, part: Mapping[str, Any]) -> Json:
    """What a library noted beside a part; empty when it was somebody else's."""
    beside = part.get("providerMetadata")
    found = beside.get(library) if isinstance(beside, Mapping) else None
    return dict(found) if isinstance(found, Mapping) else {}


def build_content(library: str, parts: list[Json], notes: Mapping[str, Any]) -> Content:
    """Content of these parts, with a library's notes on the whole message."""
    content: Content = {"format": 2, "parts": parts}
    kept = drop_empty(notes)
    return {**content, "metadata": {library: kept}} if kept else content


def get_message_metadata(library: str, content: Mapping[str, Any]) -> Json | None:
    """What a library noted on a message; None when it was not written by it."""
    metadata = content.get("metadata")
    found = metadata.get(library) if isinstance(metadata, Mapping) else None
    return dict(found) if isinstance(found, Mapping) else None


def make_opaque_part(library: str, value: Any) -> Json:
    """A part for what only the library understands."""
    return {"type": f"data-{library}", "data": value}
