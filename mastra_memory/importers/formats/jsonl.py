"""Read the lossless JSON Lines that `mastra_export --format jsonl` writes.

Each line is a thread, a message, a working memory or an observational record.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from mastra_memory.db import times
from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import coercion
from mastra_memory.importers.files import SourceFile
from mastra_memory.importers.parsing import read_items
from mastra_memory.importers.records import (
    ImportedMessage,
    ImportedObject,
    ImportedObservationalRecord,
    ImportedRevision,
    ImportedThread,
    ImportedWorkingMemory,
    OmittedRecord,
    RecordKind,
    ResourceMapping,
    SourceItem,
)

NAME = "own"
KEEPS_IDS = True
FORMAT, VERSION = "mastra-memory", 1
"""The values of `format` and `version` in the first line of an export."""

_RECORD_FIELDS = {
    "originType": "origin_type",
    "createdByName": "created_by_name",
    "activeObservations": "active_observations",
    "observationTokenCount": "observation_token_count",
    "totalTokensObserved": "total_tokens_observed",
    "pendingMessageTokens": "pending_message_tokens",
    "lastObservedAt": "last_observed_at",
    "observedMessageIds": "observed_message_ids",
    "observedTimezone": "observed_timezone",
    "lastBufferedAtTokens": "last_buffered_at_tokens",
    "lastBufferedAtTime": "last_buffered_at_time",
    "bufferedReflection": "buffered_reflection",
    "bufferedReflectionTokens": "buffered_reflection_tokens",
    "bufferedReflectionInputTokens": "buffered_reflection_input_tokens",
    "reflectedObservationLineCount": "reflected_observation_line_count",
    "unproductiveReflectionTokens": "unproductive_reflection_tokens",
    "pinned": "pinned",
    "config": "config",
    "metadata": "metadata",
    "createdAt": "created_at",
    "updatedAt": "updated_at",
}
_CHUNK_FIELDS = {
    "id": "id",
    "origin": "origin",
    "threadId": "thread_id",
    "cycleId": "cycle_id",
    "groupId": "group_id",
    "range": "range",
    "observations": "observations",
    "tokenCount": "token_count",
    "messageIds": "message_ids",
    "messageTokens": "message_tokens",
    "lastObservedAt": "last_observed_at",
    "hints": "hints",
    "activatedAt": "activated_at",
    "createdAt": "created_at",
}
_TIME_FIELDS = frozenset(
    {"createdAt", "updatedAt", "lastObservedAt", "lastBufferedAtTime", "activatedAt"}
)


def detect(record: Mapping[str, Any]) -> bool:
    """Return whether a record is the first line or an object of our own export."""
    kind = record.get("kind")
    return record.get("format") == FORMAT or (isinstance(kind, str) and kind in _READERS)


def read(files: Sequence[SourceFile], resources: ResourceMapping) -> Iterator[SourceItem]:
    """Yield all objects. Ids are kept, but `resources` may change resource ids."""
    for file in files:
        yield from read_items(file, partial(_read_record, resources))


def _read_record(
    resources: ResourceMapping, record: Mapping[str, Any], location: str
) -> Iterator[SourceItem]:
    if record.get("format") == FORMAT:
        if record.get("version") != VERSION:
            raise InvalidInput(
                f"unsupported version {record.get('version')} of the export format, not {VERSION}"
            )
        return
    name = coercion.to_text(record.get("kind"))
    if name not in _READERS:
        raise InvalidInput(f"unknown kind of record {name[:40]}")
    kind, read_object = _READERS[name]
    try:
        yield read_object(resources, record, location)
    except InvalidInput as error:
        yield OmittedRecord(kind, "refused", location, str(error))


def _read_thread(
    resources: ResourceMapping, record: Mapping[str, Any], location: str
) -> ImportedThread:
    title = coercion.to_text(record.get("title"))
    return ImportedThread(
        id=coercion.to_text(record.get("id")),
        resource_id=_read_resource_id(resources, record),
        title=title,
        title_source=coercion.to_text(record.get("titleSource", "manual" if title else "")),
        metadata=_read_mapping_or_none(record, "metadata"),
        clone_source_id=coercion.to_text(record.get("cloneSourceId")) or None,
        created_at=_read_time(record, "createdAt"),
        updated_at=_read_time(record, "updatedAt"),
        location=location,
    )


def _read_message(
    resources: ResourceMapping, record: Mapping[str, Any], location: str
) -> ImportedMessage:
    content = _read_mapping_or_none(record, "content")
    if content is None:
        raise InvalidInput("no content")
    return ImportedMessage(
        id=coercion.to_text(record.get("id")),
        thread_id=coercion.to_text(record.get("threadId")),
        resource_id=_read_resource_id(resources, record),
        role=coercion.to_text(record.get("role")),
        type=coercion.to_text(record.get("type")) or "v2",
        content=content,
        created_at=_read_time(record, "createdAt"),
        edited_at=_read_time_or_none(record, "editedAt"),
        location=location,
    )


def _read_working_memory(
    resources: ResourceMapping, record: Mapping[str, Any], location: str
) -> ImportedWorkingMemory:
    return ImportedWorkingMemory(
        resource_id=_read_resource_id(resources, record),
        thread_id=coercion.to_text(record.get("threadId")) or None,
        content=coercion.to_text(record.get("content")),
        created_at=_read_time(record, "createdAt"),
        updated_at=_read_time(record, "updatedAt"),
        revisions=[
            ImportedRevision(
                version=coercion.to_int(revision.get("version")),
                content=coercion.to_text(revision.get("content")),
                source=coercion.to_text(revision.get("source")),
                created_at=_read_time(revision, "createdAt"),
            )
            for revision in coercion.to_mappings(record.get("revisions"))
        ],
        location=location,
    )


def _read_observational_record(
    resources: ResourceMapping, record: Mapping[str, Any], location: str
) -> ImportedObservationalRecord:
    return ImportedObservationalRecord(
        id=coercion.to_text(record.get("id")),
        resource_id=_read_resource_id(resources, record),
        thread_id=coercion.to_text(record.get("threadId")) or None,
        generation_count=coercion.to_int(record.get("generationCount")),
        values=_rename_fields(record, _RECORD_FIELDS),
        chunks=[
            _rename_fields(chunk, _CHUNK_FIELDS)
            for chunk in coercion.to_mappings(record.get("chunks"))
        ],
        pending_message_ids=coercion.to_texts(record.get("pendingMessageIds")),
        location=location,
    )


def _rename_fields(record: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a record under their names in the models."""
    return {
        name: _read_time_or_none(record, key) if key in _TIME_FIELDS else record[key]
        for key, name in names.items()
        if key in record
    }


def _read_resource_id(resources: ResourceMapping, record: Mapping[str, Any]) -> str:
    return resources.resolve(coercion.to_text(record.get("resourceId")))


def _read_time(record: Mapping[str, Any], key: str) -> datetime:
    try:
        return times.parse_time(record.get(key))
    except ValueError:
        raise InvalidInput(f"{key} is not a valid time") from None


def _read_time_or_none(record: Mapping[str, Any], key: str) -> datetime | None:
    return None if record.get(key) is None else _read_time(record, key)


def _read_mapping_or_none(record: Mapping[str, Any], key: str) -> Mapping[str, Any] | None:
    value = record.get(key)
    if value is not None and not isinstance(value, Mapping):
        raise InvalidInput(f"{key} is not an object")
    return value


_READERS: dict[
    str, tuple[RecordKind, Callable[[ResourceMapping, Mapping[str, Any], str], ImportedObject]]
] = {
    "thread": ("threads", _read_thread),
    "message": ("messages", _read_message),
    "workingMemory": ("working memories", _read_working_memory),
    "observationalRecord": ("observations", _read_observational_record),
}
