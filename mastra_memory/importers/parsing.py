"""Parse the JSON records of files, and report the records that cannot be parsed."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from mastra_memory.db import json_text
from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import message_tree
from mastra_memory.importers.files import SourceFile
from mastra_memory.importers.json_stream import RawRecord
from mastra_memory.importers.records import OmittedRecord, RecordKind, SourceItem

EXCERPT_BYTES = 300

RecordReader = Callable[[Mapping[str, Any], str], Iterable[SourceItem] | None]
"""Converts a record, given its location in the source. May raise `InvalidInput` before the first
item. Returns None if it only collects records."""


def read_items(
    file: SourceFile, read_record: RecordReader, *, kind: RecordKind = "threads"
) -> Iterator[SourceItem]:
    """Yield the items of every record of the file.

    Args:
        file: The file to read.
        read_record: Converts a record into items.
        kind: How to count a record that cannot be converted.
    """
    for raw in file.read_records():
        location = f"{file.name}:{raw.number}" if raw.number else file.name
        try:
            yield from read_record(parse_record(raw), location) or ()
        except InvalidInput as error:
            yield OmittedRecord(kind, "refused", location, str(error), get_excerpt(raw.data))


def parse_record(raw: RawRecord) -> Mapping[str, Any]:
    """Return the record as a mapping.

    Raises:
        InvalidInput: The record is not a JSON object.
    """
    if raw.error:
        raise InvalidInput(raw.error)
    try:
        value = json_text.loads(raw.data)
    except InvalidInput:
        value = _load_nested(raw.data)
    if not isinstance(value, Mapping):
        raise InvalidInput("not a JSON object")
    return value


def _load_nested(data: bytes) -> Any:
    """Return a record with nested messages as one with a flat list of messages.

    LibreChat exports conversations in this form, so that one of 130 messages is nested deeper than
    other JSON may be.

    Raises:
        InvalidInput: The record is not JSON, or does not have this form.
    """
    try:
        value = json_text.loads_deep(data)
    except InvalidInput:
        raise InvalidInput("not valid JSON" if _is_utf8(data) else "not UTF-8") from None
    if not isinstance(value, Mapping) or not isinstance(value.get("messagesTree"), list):
        raise InvalidInput("not valid JSON")
    messages = message_tree.flatten_children(value["messagesTree"])
    return json_text.clean_json({**value, "messagesTree": messages})


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def get_excerpt(data: bytes) -> str:
    """Return the beginning of a record as text."""
    return json_text.clean_text(data[:EXCERPT_BYTES].decode(errors="replace"))
