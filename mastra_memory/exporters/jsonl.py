"""Export lossless JSON Lines, which `mastra_import` can read.

The first line contains the format and its version. It is followed by the working memories of
resources, each thread with its working memory, messages and observations, and the observations of
resources. Revisions are exported without their authors. The leases of observational records, with
which a worker reserves its work, are not exported.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

import orjson

from mastra_memory.db import json_text, sql, times
from mastra_memory.exporters import queries
from mastra_memory.exporters.output import ExportCounts, WriteBytes
from mastra_memory.exporters.selection import (
    ExportedMessage,
    ExportedThread,
    ExportSelection,
    iterate_thread_batches,
    iterate_with_messages,
)
from mastra_memory.models import ObservationalRecord, ObservationChunk
from mastra_memory.observational import tracking
from mastra_memory.options import camel_keys

NAME, SUFFIX = "jsonl", ".jsonl"
RECORDS_PER_BATCH = 100
HEADER = {"kind": "export", "format": "mastra-memory", "version": 1}

_RECORD_FIELDS = (
    "origin_type",
    "created_by_name",
    "active_observations",
    "observation_token_count",
    "total_tokens_observed",
    "pending_message_tokens",
    "last_observed_at",
    "observed_message_ids",
    "observed_timezone",
    "last_buffered_at_tokens",
    "last_buffered_at_time",
    "buffered_reflection",
    "buffered_reflection_tokens",
    "buffered_reflection_input_tokens",
    "reflected_observation_line_count",
    "unproductive_reflection_tokens",
    "pinned",
    "config",
    "metadata",
    "created_at",
    "updated_at",
)
_CHUNK_FIELDS = (
    "id",
    "origin",
    "thread_id",
    "cycle_id",
    "group_id",
    "range",
    "observations",
    "token_count",
    "message_ids",
    "message_tokens",
    "last_observed_at",
    "hints",
    "activated_at",
    "created_at",
)


def export(
    selection: ExportSelection, write: WriteBytes, after_thread: Callable[[], None]
) -> ExportCounts:
    """Write all selected data.

    Working memories and observations of resources are included only if all data of the selected
    resources is exported.
    """
    counts = ExportCounts()
    write(_encode_line(HEADER))
    if selection.is_whole:
        for line in _encode_working_memories(
            selection.resource_condition("w.resource_id"), "resource"
        ):
            write(line)
    for threads in iterate_thread_batches(selection):
        memories, records = _encode_related_rows(threads)
        for thread, messages in iterate_with_messages(selection, threads):
            write(_encode_thread(thread))
            for line in memories.get(thread.id, ()):
                write(line)
            for message in messages:
                write(_encode_message(message))
                counts.messages += 1
            for line in records.get(thread.id, ()):
                write(line)
            counts.threads += 1
            after_thread()
    if selection.is_whole:
        for line in _encode_resource_records(selection):
            write(line)
    return counts


def _encode_line(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)


def _format_time(moment: datetime | None) -> str | None:
    return None if moment is None else times.format_time(moment)


def _encode_thread(thread: ExportedThread) -> bytes:
    metadata = thread.metadata_json
    return _encode_line(
        {
            "kind": "thread",
            "id": thread.id,
            "resourceId": thread.resource_id,
            "title": thread.title,
            "titleSource": thread.title_source,
            "cloneSourceId": thread.clone_source_id,
            "createdAt": _format_time(thread.created_at),
            "updatedAt": _format_time(thread.updated_at),
            "metadata": None if metadata is None else orjson.Fragment(metadata),
        }
    )


def _encode_message(message: ExportedMessage) -> bytes:
    return _encode_line(
        {
            "kind": "message",
            "id": message.id,
            "threadId": message.thread_id,
            "resourceId": message.resource_id,
            "role": message.role,
            "type": message.type,
            "createdAt": _format_time(message.created_at),
            "editedAt": _format_time(message.edited_at),
            "content": orjson.Fragment(message.content_json),
        }
    )


def _encode_related_rows(threads: Sequence[ExportedThread]) -> tuple[dict[str, list[bytes]], ...]:
    """Return the working memories and the observations of the threads as lines by thread id."""
    ids = [thread.id for thread in threads]
    where = sql.Where()
    where.add("w.thread_id = ANY(%s)", ids)
    memories: dict[str, list[bytes]] = {}
    for line in _encode_working_memories(where, "thread"):
        memories.setdefault(json_text.loads(line)["threadId"], []).append(line)
    records: dict[str, list[bytes]] = {}
    rows = ObservationalRecord.objects.filter(thread_id__in=ids).order_by("generation_count")
    for record, line in _encode_records(rows.prefetch_related("chunks")):
        records.setdefault(str(record.thread_id), []).append(line)
    return memories, records


def _encode_working_memories(where: sql.Where, scope: str) -> Iterator[bytes]:
    with queries.stream_working_memories(where, scope) as rows:
        for thread_id, resource_id, content, created_at, updated_at, revisions in rows:
            yield _encode_line(
                {
                    "kind": "workingMemory",
                    "threadId": thread_id,
                    "resourceId": resource_id,
                    "content": content,
                    "createdAt": _format_time(created_at),
                    "updatedAt": _format_time(updated_at),
                    "revisions": orjson.Fragment(revisions),
                }
            )


def _encode_resource_records(selection: ExportSelection) -> Iterator[bytes]:
    records = ObservationalRecord.objects.filter(thread__isnull=True)
    if selection.resource_ids:
        records = records.filter(resource_id__in=selection.resource_ids)
    ordered = records.order_by("resource_id", "generation_count").prefetch_related("chunks")
    rows = ordered.iterator(chunk_size=RECORDS_PER_BATCH)
    while batch := list(islice(rows, RECORDS_PER_BATCH)):
        for _, line in _encode_records(batch):
            yield line


def _encode_records(
    records: Iterable[ObservationalRecord],
) -> Iterator[tuple[ObservationalRecord, bytes]]:
    """Yield the records with their lines.

    Messages with an old time that are not observed are named, because an importer would take the
    messages up to the cursor as observed.
    """
    records = list(records)
    pending = tracking.list_pending_before_cursor([record.id for record in records])
    for record in records:
        yield record, _encode_record(record, pending.get(record.id, []))


def _encode_record(record: ObservationalRecord, pending_ids: Sequence[str]) -> bytes:
    chunks = sorted(record.chunks.all(), key=lambda chunk: chunk.position)
    return _encode_line(
        {
            "kind": "observationalRecord",
            "id": record.id,
            "threadId": record.thread_id,
            "resourceId": record.resource_id,
            "generationCount": record.generation_count,
            **_collect_fields(record, _RECORD_FIELDS),
            "pendingMessageIds": pending_ids,
            "chunks": [_collect_fields(chunk, _CHUNK_FIELDS) for chunk in chunks],
        }
    )


def _collect_fields(
    row: ObservationalRecord | ObservationChunk, names: Sequence[str]
) -> dict[str, Any]:
    fields: dict[str, Any] = camel_keys(
        {name: _convert_value(getattr(row, name)) for name in names}
    )
    return fields


def _convert_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return _format_time(value)
    if isinstance(value, dict | list):  # orjson refuses integers of more than 64 bits
        return orjson.Fragment(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    return value
