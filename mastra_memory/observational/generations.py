"""Read, configure and clone observational records. The newest generation is called the head."""

import re
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import Prefetch, QuerySet

from mastra_memory.db import routing, times
from mastra_memory.exceptions import InvalidInput
from mastra_memory.models import ObservationalRecord, ObservationChunk, Scope
from mastra_memory.models.fields import new_id
from mastra_memory.models.observational_record import ObservationalRecordQuerySet
from mastra_memory.options import merge_options

_RANGE = re.compile(r'range="([^":]+):([^":]+)"')


def list_records(
    scope: str, *, thread_id: str | None, resource_id: str | None
) -> QuerySet[ObservationalRecord]:
    """Return all generations of a thread, or of a resource in resource scope."""
    records = _prefetch_chunks(ObservationalRecord.objects.all())
    if scope == Scope.THREAD:
        return records.about_thread(thread_id) if thread_id else records.none()
    return records.about_resource(resource_id) if resource_id else records.none()


def _prefetch_chunks(records: ObservationalRecordQuerySet) -> ObservationalRecordQuerySet:
    in_order = ObservationChunk.objects.buffered().order_by("position")
    return records.prefetch_related(Prefetch("chunks", in_order))


def find_head(
    scope: str, *, thread_id: str | None, resource_id: str | None
) -> ObservationalRecord | None:
    """Return the newest generation, or None if nothing was observed yet."""
    records = list_records(scope, thread_id=thread_id, resource_id=resource_id)
    return records.order_by("-generation_count").first()


def list_history(
    scope: str,
    *,
    thread_id: str | None,
    resource_id: str | None,
    limit: int = 10,
    offset: int = 0,
    start: datetime | None = None,
    end: datetime | None = None,
) -> list[ObservationalRecord]:
    """Return generations, newest first, including the head. `start` and `end` are inclusive."""
    records = list_records(scope, thread_id=thread_id, resource_id=resource_id)
    if start is not None:
        records = records.filter(created_at__gte=start)
    if end is not None:
        records = records.filter(created_at__lte=end)
    return list(records.order_by("-generation_count")[offset : offset + limit])


def wait_for_buffering(
    scope: str, *, thread_id: str | None, resource_id: str | None, timeout: float
) -> ObservationalRecord | None:
    """Wait until nothing is being buffered, at most `timeout` seconds, and return the head."""
    deadline = time.monotonic() + timeout
    while True:
        head = find_head(scope, thread_id=thread_id, resource_id=resource_id)
        busy = head and (head.is_buffering_observation or head.is_buffering_reflection)
        if not busy or time.monotonic() >= deadline:
            return head
        time.sleep(min(0.2, max(0.0, deadline - time.monotonic())))


def override_config(
    scope: str, config: Mapping[str, Any], *, thread_id: str | None, resource_id: str | None
) -> ObservationalRecord:
    """Merge `config` into the head's overrides. Raise `InvalidInput` if there is no head."""
    with routing.atomic():
        records = list_records(scope, thread_id=thread_id, resource_id=resource_id)
        head = records.order_by("-generation_count").select_for_update().first()
        if head is None:
            raise InvalidInput("There is no observational memory record to configure")
        overrides = merge_options(head.config.get("_overrides") or {}, config)
        head.config = {**head.config, "_overrides": overrides}
        head.updated_at = times.now()
        head.save(update_fields=["config", "updated_at"])
    return head


def clone_head(
    *,
    source_id: str,
    source_resource_id: str,
    clone_id: str,
    clone_resource_id: str,
    message_id_map: Mapping[str, str],
) -> ObservationalRecord | None:
    """Copy the head of the source thread for the clone, and return the copy, or None.

    The thread's own record takes precedence over its resource's. A resource's record is shared by
    all threads of the resource, so it is copied only to another resource, and only if that one has
    no record yet.
    """
    head = _find_head_to_clone(source_id, source_resource_id)
    moved = clone_resource_id != source_resource_id
    if head is None or (head.scope == Scope.RESOURCE and not moved):
        return None
    if head.scope == Scope.RESOURCE and find_head(
        Scope.RESOURCE, thread_id=None, resource_id=clone_resource_id
    ):
        return None
    chunks = list(head.chunks.all())
    _reset_as_copy(head, clone_id, clone_resource_id)
    if head.observed_message_ids is not None:
        head.observed_message_ids = _map_ids(head.observed_message_ids, message_id_map)
    for name in ("active_observations", "buffered_reflection"):
        text = getattr(head, name)
        setattr(head, name, _rewrite_references(text, source_id, clone_id, moved, message_id_map))
    head.save(force_insert=True)
    for chunk in chunks:
        chunk.id, chunk.record = f"ombuf-{new_id()}", head
        chunk.message_ids = _map_ids(chunk.message_ids, message_id_map)
        chunk.observations = _rewrite_references(
            chunk.observations, source_id, clone_id, moved, message_id_map
        )
    ObservationChunk.objects.bulk_create(chunks)
    return head


def _find_head_to_clone(thread_id: str, resource_id: str) -> ObservationalRecord | None:
    """Return the thread's head, otherwise the resource's, in one query."""
    about_thread = ObservationalRecord.objects.about_thread(thread_id)
    about_resource = ObservationalRecord.objects.about_resource(resource_id)
    both = (about_thread | about_resource).order_by("-scope", "-generation_count")
    return _prefetch_chunks(both).first()


def _reset_as_copy(record: ObservationalRecord, clone_id: str, resource_id: str) -> None:
    record.id, record.resource_id = new_id(), resource_id
    record.thread_id = clone_id if record.scope == Scope.THREAD else None
    record.created_at = record.updated_at = times.now()
    record.superseded_by = None
    record.lease_token = record.lease_expires_at = None
    record.reflection_token = record.reflection_expires_at = None
    record.lease_operation = record.reflection_operation = ""


def _map_ids(ids: list[str], message_id_map: Mapping[str, str]) -> list[str]:
    return [message_id_map[old_id] for old_id in ids if old_id in message_id_map]


def _rewrite_references(
    text: str, source_id: str, clone_id: str, moved: bool, message_id_map: Mapping[str, str]
) -> str:
    """Replace message ids in the ranges of the text, and the thread's id if it was moved."""

    def mapped_range(match: re.Match[str]) -> str:
        first, last = message_id_map.get(match[1]), message_id_map.get(match[2])
        return f'range="{first}:{last}"' if first and last else match[0]

    if moved:
        text = text.replace(f'<thread id="{source_id}">', f'<thread id="{clone_id}">')
    return _RANGE.sub(mapped_range, text)
