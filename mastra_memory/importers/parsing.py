"""From the files of a source to items: parse each record, and report those that are none."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from mastra_memory.db import json_text
from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers.files import SourceFile
from mastra_memory.importers.json_stream import RawRecord
from mastra_memory.importers.records import OmittedRecord, RecordKind, SourceItem

RecordReader = Callable[[Mapping[str, Any], str], Iterable[SourceItem]]
"""Items of one record, and its place in the source. May raise `InvalidInput` before the first."""


def read_items(
    file: SourceFile, understand: RecordReader, *, kind: RecordKind = "threads"
) -> Iterator[SourceItem]:
    """The items of every record of the file; `kind` is what a record counts as if it is refused."""
    for raw in file.read_records():
        location = f"{file.name}:{raw.number}" if raw.number else file.name
        try:
            yield from understand(parse_record(raw), location)
        except InvalidInput as error:
            yield OmittedRecord(kind, "refused", location, str(error), get_excerpt(raw.data))


def parse_record(raw: RawRecord) -> Mapping[str, Any]:
    """The record as an object. Raises `InvalidInput` when it is none."""
    if raw.fault:
        raise InvalidInput(raw.fault)
    try:
        value = json_text.loads(raw.data)
    except InvalidInput:
        raise InvalidInput("not valid JSON" if _is_utf8(raw.data) else "not UTF-8") from None
    if not isinstance(value, Mapping):
        raise InvalidInput("not a JSON object")
    return value


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def get_excerpt(data: bytes) -> str:
    """How the record begins."""
    return json_text.clean_text(data[:300].decode(errors="replace"))
