"""Check imported objects, clean their values, and prepare them for the database."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models

from mastra_memory.content import message_text, normalization
from mastra_memory.db import json_text
from mastra_memory.db.identifiers import check_id
from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers.records import (
    ImportedMessage,
    ImportedObject,
    ImportedObservationalRecord,
    ImportedThread,
    ImportedWorkingMemory,
    ImportNote,
    ImportOutcome,
    OmittedRecord,
    SourceItem,
    get_kind,
)
from mastra_memory.models import Message, ObservationalRecord, ObservationChunk, Scope, Thread

_TITLE_SOURCES = frozenset(Thread.TitleSource.values)


@dataclass(frozen=True, slots=True)
class ImportRow:
    """An object that can be stored."""

    item: ImportedObject
    """The object, with ids and texts that PostgreSQL can store."""
    json: str = ""
    """The content of a message or the metadata of a thread, as JSON."""
    text: str = ""
    """The readable text of a message, or the text of a working memory."""
    record: ObservationalRecord | None = None
    chunks: Sequence[ObservationChunk] = ()

    @property
    def text_length(self) -> int:
        """The number of characters, as an estimate of the memory that the row needs."""
        return len(self.json) + len(self.text)


@dataclass(frozen=True, slots=True)
class RowResult:
    """What happened to a row."""

    row: ImportRow
    outcome: ImportOutcome
    reason: str = ""
    """Why it was refused. The report counts rows with the same reason together."""
    detail: str = ""


ValidatedEntry = ImportRow | OmittedRecord | ImportNote


def validate_items(items: Iterable[SourceItem]) -> Iterator[ValidatedEntry]:
    """Yield a row for each object; objects that cannot be stored become omitted records."""
    for item in items:
        if isinstance(item, OmittedRecord | ImportNote):
            yield item
            continue
        try:
            yield validate_item(item)
        except InvalidInput as error:
            yield OmittedRecord(get_kind(item), "refused", item.location, str(error))


def validate_item(item: ImportedObject) -> ImportRow:
    """Return the row of an object.

    Raises:
        InvalidInput: The object cannot be stored.
    """
    match item:
        case ImportedMessage():
            return _validate_message(item)
        case ImportedThread():
            return _validate_thread(item)
        case ImportedWorkingMemory():
            return _validate_working_memory(item)
        case ImportedObservationalRecord():
            return _validate_observational_record(item)


def _validate_thread(item: ImportedThread) -> ImportRow:
    source = item.clone_source_id
    clean = replace(
        item,
        id=check_id(item.id, "id"),
        resource_id=check_id(item.resource_id, "resourceId"),
        title=json_text.clean_text(item.title),
        title_source=item.title_source if item.title_source in _TITLE_SOURCES else "manual",
        clone_source_id=None if source is None else check_id(source, "cloneSourceId"),
    )
    return ImportRow(clean, "" if item.metadata is None else json_text.dumps(item.metadata))


def _validate_message(item: ImportedMessage) -> ImportRow:
    if item.role not in Message.Role.values:
        raise InvalidInput(f"unknown role {item.role[:40]}")
    normalization.normalize_content({"content": item.content})
    clean = replace(
        item,
        id=check_id(item.id, "id"),
        thread_id=check_id(item.thread_id, "threadId"),
        resource_id=check_id(item.resource_id, "resourceId"),
        type=json_text.clean_text(item.type),
    )
    text = json_text.clean_text(message_text.get_text(item.content))
    return ImportRow(clean, json_text.dumps(item.content), text)


def _validate_working_memory(item: ImportedWorkingMemory) -> ImportRow:
    thread_id = item.thread_id
    clean = replace(
        item,
        resource_id=check_id(item.resource_id, "resourceId"),
        thread_id=None if thread_id is None else check_id(thread_id, "threadId"),
        content=json_text.clean_text(item.content),
    )
    return ImportRow(clean, text=clean.content)


def _validate_observational_record(item: ImportedObservationalRecord) -> ImportRow:
    thread_id = item.thread_id
    record = ObservationalRecord(
        id=check_id(item.id, "id"),
        scope=Scope.RESOURCE if thread_id is None else Scope.THREAD,
        thread_id=None if thread_id is None else check_id(thread_id, "threadId"),
        resource_id=check_id(item.resource_id, "resourceId"),
        generation_count=item.generation_count,
        **clean_fields(ObservationalRecord, item.values),
    )
    chunks = [
        ObservationChunk(record=record, position=place, **clean_fields(ObservationChunk, chunk))
        for place, chunk in enumerate(item.chunks)
    ]
    for chunk in chunks:
        check_id(chunk.id, "chunk id")
    return ImportRow(item, text=record.active_observations, record=record, chunks=chunks)


def clean_fields(model: type[models.Model], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values in the types of the model's fields.

    Raises:
        InvalidInput: A value is not valid; the message names its field.
    """
    return {
        name: _clean_field(model._meta.get_field(name), value) for name, value in values.items()
    }


def _clean_field(field: Any, value: Any) -> Any:
    if value is None and not field.null:
        raise InvalidInput(f"{field.name} is missing")
    if value is None:
        return None
    if isinstance(field, models.TextField | models.CharField) and not isinstance(value, str):
        raise InvalidInput(f"{field.name} is not a string")
    try:
        value = field.to_python(json_text.clean_json(value))
        field.run_validators(value)
    except (ValidationError, OverflowError):
        raise InvalidInput(f"{field.name} has an invalid value") from None
    if field.choices and value not in dict(field.flatchoices):
        raise InvalidInput(f"{field.name} is not one of the allowed values")
    return value
