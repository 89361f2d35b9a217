"""Copy observations for the clone of a thread."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from mastra_memory.db import json_text, sql, times
from mastra_memory.models import ObservationalRecord, ObservationChunk, Scope
from mastra_memory.models.fields import new_id
from mastra_memory.models.message import LastSequence
from mastra_memory.observational import generations, log, queries

# The range of a group ends at the quotation mark after which the tag goes on or ends. Ids in ranges
# that Mastra wrote are not encoded and may contain quotation marks.
_RANGE = re.compile(r'(\brange=")([^\n]*?)(?="(?:[\s>]|$))', re.MULTILINE)
MAX_COMMAS_IN_SEGMENT = 8
"""Ids with more commas are not found in ranges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClonedThread:
    """A clone, and the thread that it was copied from."""

    source_id: str
    source_resource_id: str
    clone_id: str
    clone_resource_id: str
    message_id_map: Mapping[str, str]
    """Id in the source to id in the clone."""

    @property
    def is_moved(self) -> bool:
        """True if the clone belongs to another resource."""
        return self.clone_resource_id != self.source_resource_id


def clone_head(thread: ClonedThread) -> ObservationalRecord | None:
    """Copy the observations of the source for the clone, and return the copy, or None.

    The thread's own record takes precedence over its resource's. A resource's record is shared by
    all threads of the resource, so it is copied only to another resource, and only if that one has
    no record yet. Of the earlier generations only the chunks are copied, so that observations still
    lead to their messages.
    """
    heads = _find_heads(thread)
    own, shared = heads.get(Scope.THREAD), heads.get(Scope.RESOURCE)
    source = own or shared
    if source is None:
        return None
    copy = None
    if own is not None or (thread.is_moved and not _has_record(thread.clone_resource_id)):
        chunks = _list_chunks(source)
        copy = _copy_record(source, thread)
        _insert_copies(source.scope, chunks, copy, thread)
    if shared is not None and not thread.is_moved:
        _copy_states(thread, Scope.RESOURCE)
    elif shared is not None and (own is not None or copy is None):
        _insert_copies(Scope.RESOURCE, [], None, thread)  # Pending for the new resource.
    return copy


def _find_heads(thread: ClonedThread) -> dict[str, ObservationalRecord]:
    """Return the live records of the thread and of its resource by scope, in one query."""
    about_thread = ObservationalRecord.objects.about_thread(thread.source_id)
    about_resource = ObservationalRecord.objects.about_resource(thread.source_resource_id)
    return {record.scope: record for record in (about_thread | about_resource).live()}


def _has_record(resource_id: str) -> bool:
    return ObservationalRecord.objects.about_resource(resource_id).live().exists()


def _list_chunks(head: ObservationalRecord) -> Sequence[ObservationChunk]:
    """Return the chunks of all generations, oldest first."""
    records = ObservationalRecord.objects.filter(
        scope=head.scope, thread_id=head.thread_id, resource_id=head.resource_id
    )
    chunks = ObservationChunk.objects.filter(record__in=records)
    return list(chunks.order_by("record__generation_count", "position"))


def _copy_record(record: ObservationalRecord, thread: ClonedThread) -> ObservationalRecord:
    id_map = thread.message_id_map
    record.id, record.resource_id = new_id(), thread.clone_resource_id
    record.thread_id = thread.clone_id if record.scope == Scope.THREAD else None
    record.created_at = record.updated_at = times.now()
    generations.clear_work(record)
    record.attempts, record.error = 0, ""
    if record.observed_message_ids is not None:
        record.observed_message_ids = _map_ids(record.observed_message_ids, id_map)
    record.active_observations = _rewrite_references(record.active_observations, thread)
    record.buffered_reflection = _rewrite_references(record.buffered_reflection, thread)
    record.imported_sequence = LastSequence()
    record.save(force_insert=True)
    return record


def _insert_copies(
    scope: str,
    chunks: Sequence[ObservationChunk],
    record: ObservationalRecord | None,
    thread: ClonedThread,
) -> None:
    """Copy the chunks to one record, and the states of the messages, in one statement.

    Messages of other chunks become pending.
    """
    columns: list[list[object]] = [[] for _ in range(8)]
    cycle_ids: set[str] = set()
    for position, chunk in enumerate(chunks):
        new_chunk_id = f"ombuf-{new_id()}"
        # Imported generations may repeat the id of a cycle.
        cycle_id = new_chunk_id if chunk.cycle_id in cycle_ids else chunk.cycle_id
        cycle_ids.add(cycle_id)
        values = (
            chunk.id,
            new_chunk_id,
            position,
            thread.clone_id if chunk.thread_id == thread.source_id else chunk.thread_id,
            cycle_id,
            map_range(chunk.range, thread.message_id_map),
            _rewrite_references(chunk.observations, thread),
            json_text.dumps(_map_ids(chunk.message_ids, thread.message_id_map)),
        )
        for column, value in zip(columns, values, strict=True):
            column.append(value)
    record_id = None if record is None else record.id
    sql.execute(queries.COPY_CHUNKS_AND_STATES, [*columns, record_id, *_get_pairs(thread), scope])


def _copy_states(thread: ClonedThread, scope: str) -> None:
    """Copy which messages are pending or observed, for a record that the clone shares."""
    sql.execute(queries.COPY_STATES, [*_get_pairs(thread), scope])


def _get_pairs(thread: ClonedThread) -> list[object]:
    """Return the parameters for the clone, its owner, and the old and new message ids."""
    ids = thread.message_id_map
    return [thread.clone_id, thread.clone_resource_id, list(ids), list(ids.values())]


def _map_ids(ids: Sequence[str], message_id_map: Mapping[str, str]) -> list[str]:
    return [message_id_map[old_id] for old_id in ids if old_id in message_id_map]


def _rewrite_references(text: str, thread: ClonedThread) -> str:
    """Replace message ids in the ranges of the text, and the thread's id if it was moved."""
    if thread.is_moved:
        new_tag = log.format_thread_tag(thread.clone_id)
        for tag in (f'<thread id="{thread.source_id}">', log.format_thread_tag(thread.source_id)):
            text = text.replace(tag, new_tag)
    return _RANGE.sub(lambda match: match[1] + map_range(match[2], thread.message_id_map), text)


def map_range(message_range: str, message_id_map: Mapping[str, str]) -> str:
    """Return a range of messages with new ids.

    A segment `first:last` changes only if both ids are in the map. Ids may be percent-encoded, or
    contain colons and commas as they are.
    """
    return ",".join(_map_segments(message_range.split(","), message_id_map))


def _map_segments(pieces: Sequence[str], message_id_map: Mapping[str, str]) -> Iterator[str]:
    start = 0
    while start < len(pieces):
        longest = min(len(pieces), start + MAX_COMMAS_IN_SEGMENT + 1)
        for end in range(longest, start, -1):
            mapped = _map_segment(",".join(pieces[start:end]), message_id_map)
            if mapped is not None:
                yield mapped
                start = end
                break
        else:
            yield pieces[start]
            start += 1


def _map_segment(segment: str, message_id_map: Mapping[str, str]) -> str | None:
    """Return `first:last` with new ids, or None if there is no colon between two known ids."""
    for colon in re.finditer(":", segment):
        ends = []
        for end in (segment[: colon.start()], segment[colon.end() :]):
            ends.append(message_id_map.get(end) or message_id_map.get(unquote(end)))
        if all(ends):
            return ":".join(map(str, ends))
    return None
