"""Our own export: one line of JSON for each thread, message, working memory and observation."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from mastra_memory.db import times
from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import coercion
from mastra_memory.importers.files import SourceFile
from mastra_memory.importers.parsing import items_of
from mastra_memory.importers.records import (
    ImportedMessage,
    ImportedRecord,
    ImportedThread,
    ImportedWorkingMemory,
    Item,
    Kind,
    LeftOut,
    Owner,
    Revision,
    Storable,
)

NAME = "own"
KEEPS_IDS = True
FORMAT, VERSION = "mastra-memory", 1
"""What the first line of an export says."""

_RECORD = {
    "originType": "origin_type",
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
    "config": "config",
    "metadata": "metadata",
    "createdAt": "created_at",
    "updatedAt": "updated_at",
}
_CHUNK = {
    "id": "id",
    "cycleId": "cycle_id",
    "observations": "observations",
    "tokenCount": "token_count",
    "messageIds": "message_ids",
    "messageTokens": "message_tokens",
    "lastObservedAt": "last_observed_at",
    "hints": "hints",
    "createdAt": "created_at",
}
_MOMENTS = frozenset({"createdAt", "updatedAt", "lastObservedAt", "lastBufferedAtTime"})


def recognises(record: Mapping[str, Any]) -> bool:
    """Whether a record looks like this format's."""
    kind = record.get("kind")
    return record.get("format") == FORMAT or (isinstance(kind, str) and kind in _KINDS)


def read(files: Sequence[SourceFile], owner: Owner) -> Iterator[Item]:
    """Everything as it was, ids too; `owner` may put a prefix before those of resources."""
    for file in files:
        yield from items_of(file, partial(_items, owner))


def _items(owner: Owner, record: Mapping[str, Any], where: str) -> Iterator[Item]:
    if record.get("format") == FORMAT:
        if record.get("version") != VERSION:
            raise InvalidInput(f"an export of version {record.get('version')}, not {VERSION}")
        return
    name = coercion.text(record.get("kind"))
    if name not in _KINDS:
        raise InvalidInput(f"unknown kind of record {name[:40]}")
    kind, make = _KINDS[name]
    try:
        yield make(owner, record, where)
    except InvalidInput as error:
        yield LeftOut(kind, "refused", where, str(error))


def _thread(owner: Owner, record: Mapping[str, Any], where: str) -> ImportedThread:
    title = coercion.text(record.get("title"))
    return ImportedThread(
        id=coercion.text(record.get("id")),
        resource_id=_resource(owner, record),
        title=title,
        title_source=coercion.text(record.get("titleSource", "manual" if title else "")),
        metadata=_object_or_none(record, "metadata"),
        clone_source_id=coercion.text(record.get("cloneSourceId")) or None,
        created_at=_moment(record, "createdAt"),
        updated_at=_moment(record, "updatedAt"),
        where=where,
    )


def _message(owner: Owner, record: Mapping[str, Any], where: str) -> ImportedMessage:
    content = _object_or_none(record, "content")
    if content is None:
        raise InvalidInput("no content")
    return ImportedMessage(
        id=coercion.text(record.get("id")),
        thread_id=coercion.text(record.get("threadId")),
        resource_id=_resource(owner, record),
        role=coercion.text(record.get("role")),
        type=coercion.text(record.get("type")) or "v2",
        content=content,
        created_at=_moment(record, "createdAt"),
        edited_at=_moment_or_none(record, "editedAt"),
        where=where,
    )


def _working_memory(owner: Owner, record: Mapping[str, Any], where: str) -> ImportedWorkingMemory:
    return ImportedWorkingMemory(
        resource_id=_resource(owner, record),
        thread_id=coercion.text(record.get("threadId")) or None,
        content=coercion.text(record.get("content")),
        created_at=_moment(record, "createdAt"),
        updated_at=_moment(record, "updatedAt"),
        revisions=[
            Revision(
                version=coercion.whole(revision.get("version")),
                content=coercion.text(revision.get("content")),
                source=coercion.text(revision.get("source")),
                created_at=_moment(revision, "createdAt"),
            )
            for revision in coercion.objects(record.get("revisions"))
        ],
        where=where,
    )


def _observational_record(owner: Owner, record: Mapping[str, Any], where: str) -> ImportedRecord:
    return ImportedRecord(
        id=coercion.text(record.get("id")),
        resource_id=_resource(owner, record),
        thread_id=coercion.text(record.get("threadId")) or None,
        generation_count=coercion.whole(record.get("generationCount")),
        values=_named(record, _RECORD),
        chunks=[_named(chunk, _CHUNK) for chunk in coercion.objects(record.get("chunks"))],
        where=where,
    )


def _named(record: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The fields under their names in the models."""
    return {
        name: _moment_or_none(record, key) if key in _MOMENTS else record[key]
        for key, name in names.items()
        if key in record
    }


def _resource(owner: Owner, record: Mapping[str, Any]) -> str:
    return owner.of(coercion.text(record.get("resourceId")))


def _moment(record: Mapping[str, Any], key: str) -> datetime:
    try:
        return times.parse(record.get(key))
    except ValueError:
        raise InvalidInput(f"{key} cannot be read") from None


def _moment_or_none(record: Mapping[str, Any], key: str) -> datetime | None:
    return None if record.get(key) is None else _moment(record, key)


def _object_or_none(record: Mapping[str, Any], key: str) -> Mapping[str, Any] | None:
    value = record.get(key)
    if value is not None and not isinstance(value, Mapping):
        raise InvalidInput(f"{key} is no object")
    return value


_KINDS: dict[str, tuple[Kind, Callable[[Owner, Mapping[str, Any], str], Storable]]] = {
    "thread": ("threads", _thread),
    "message": ("messages", _message),
    "workingMemory": ("working memories", _working_memory),
    "observationalRecord": ("observations", _observational_record),
}
