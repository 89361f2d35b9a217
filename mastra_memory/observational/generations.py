"""Read, create, configure and supersede observational records.

The generation that no other one supersedes is live. It is also called the head.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Prefetch

from mastra_memory.content import tokens
from mastra_memory.db import locking, routing, sql, times
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.exceptions import (
    ClaimLost,
    ConcurrentUpdate,
    InvalidInput,
    LogChanged,
    ThreadNotFound,
)
from mastra_memory.models import ObservationalRecord, ObservationChunk, Scope
from mastra_memory.models.fields import new_id
from mastra_memory.models.observational_record import ObservationalRecordQuerySet
from mastra_memory.observational import claims, log, queries, thread_metadata
from mastra_memory.observational.claims import Claim
from mastra_memory.observational.keys import RecordKey
from mastra_memory.observational.thread_metadata import LockedThread
from mastra_memory.options import merge_options

MAX_LOCK_ATTEMPTS = 10
"""How often `lock_live` looks again after another transaction has opened a generation."""
MAX_UNLOCKED_ATTEMPTS = 3
"""How often a log is composed without a lock, before it is composed under the lock."""


def list_records(
    scope: str, *, thread_id: str | None, resource_id: str | None
) -> ObservationalRecordQuerySet:
    """Return all generations of a thread, or of a resource in resource scope."""
    records = _prefetch_chunks(ObservationalRecord.objects.all())
    if scope == Scope.THREAD:
        return records.about_thread(thread_id) if thread_id else records.none()
    return records.about_resource(resource_id) if resource_id else records.none()


def _prefetch_chunks(records: ObservationalRecordQuerySet) -> ObservationalRecordQuerySet:
    in_order = ObservationChunk.objects.buffered().order_by("position")
    return records.prefetch_related(Prefetch("chunks", in_order))


def find_live_in_scope(
    scope: str, *, thread_id: str | None, resource_id: str | None
) -> ObservationalRecord | None:
    """Return the live generation with its buffered chunks, or None if there is no record."""
    records = list_records(scope, thread_id=thread_id, resource_id=resource_id)
    return records.filter(superseded_by=None).first()


def find_live(key: RecordKey) -> ObservationalRecord | None:
    """Return the live generation with its buffered chunks, or None if there is no record."""
    return find_live_in_scope(key.scope, thread_id=key.thread_id, resource_id=key.resource_id)


def find_live_state(key: RecordKey) -> ObservationalRecord | None:
    """Return the live generation without its log and its chunks, which may be long.

    A cycle of work looks at the state of a record again and again.
    """
    return (
        list_records(key.scope, thread_id=key.thread_id, resource_id=key.resource_id)
        .live()
        .prefetch_related(None)
        .defer("active_observations")
        .first()
    )


def get_live(key: RecordKey) -> ObservationalRecord:
    """Return the live generation. Raise `ClaimLost` if it does not exist any more."""
    live = find_live(key)
    if live is None:
        raise ClaimLost("The observational record was deleted.")
    return live


def lock_live(key: RecordKey, claim: Claim | None = None) -> ObservationalRecord:
    """Return the live generation, locked until the end of the transaction.

    Raises:
        ClaimLost: The record does not exist any more, or the claim is not valid any more.
        ConcurrentUpdate: Other transactions open one generation after the other.
    """
    live = list_records(key.scope, thread_id=key.thread_id, resource_id=key.resource_id).live()
    for _ in range(MAX_LOCK_ATTEMPTS):
        locked = live.select_for_update(no_key=True).first()
        if locked is not None:
            break
        # The statement may have waited for a transaction that opened a generation. It does not see
        # that one, and the row it waited for is not live any more.
        if not live.exists():
            raise ClaimLost("The observational record was deleted.")
    else:
        raise ConcurrentUpdate
    if claim is not None:
        claims.check_claim(claim, locked)
    return locked


@retry_conflicts
def get_or_create_live(
    key: RecordKey, *, agent_id: str | None = None, timezone: str = "UTC"
) -> ObservationalRecord:
    """Return the live generation, and create the first one if there is none.

    However many callers do so at the same time, one record is created.

    Raises:
        ThreadNotFound: The thread does not exist.
    """
    if (head := find_live(key)) is not None:
        return head
    with routing.atomic():
        owner = key.resource_id
        if key.thread_id is not None:
            owner = locking.lock_threads([key.thread_id], "KEY SHARE").get(key.thread_id, "")
            if not owner:
                raise ThreadNotFound
        first = ObservationalRecord(
            scope=key.scope,
            thread_id=key.thread_id,
            resource_id=owner,
            agent_id=agent_id,
            observed_timezone=timezone,
        )
        ObservationalRecord.objects.bulk_create([first], ignore_conflicts=True)
    head = find_live(key)
    if head is None:
        raise ThreadNotFound
    return head


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
        head = find_live_in_scope(scope, thread_id=thread_id, resource_id=resource_id)
        busy = head and (head.is_buffering_observation or head.is_buffering_reflection)
        if not busy or time.monotonic() >= deadline:
            return head
        time.sleep(min(0.2, max(0.0, deadline - time.monotonic())))


@retry_conflicts
def override_config(
    scope: str, config: Mapping[str, Any], *, thread_id: str | None, resource_id: str | None
) -> ObservationalRecord:
    """Merge `config` into the head's overrides. Raise `InvalidInput` if there is no head."""
    key = RecordKey.build(scope, thread_id=thread_id, resource_id=resource_id)
    with routing.atomic():
        try:
            head = lock_live(key) if key is not None else None
        except ClaimLost:
            head = None
        if head is None:
            raise InvalidInput("There is no observational memory record to configure")
        overrides = merge_options(head.config.get("_overrides") or {}, config)
        head.config = {**head.config, "_overrides": overrides}
        head.updated_at = times.now()
        head.save(update_fields=["config", "updated_at"])
    return head


@retry_conflicts
def clear(key: RecordKey) -> int:
    """Delete all generations with their chunks and events, and return how many there were.

    The messages become unobserved, and what the Observer wrote into the metadata of their threads
    is removed.
    """
    condition, params = key.record_condition("r")
    subject = "id" if key.thread_id is not None else "resource_id"
    with routing.atomic():
        rows = sql.fetch_all(queries.select_observed_threads(subject), [key.subject_id])
        locking.lock_threads(thread_id for (thread_id,) in rows)
        sql.execute(queries.remove_observer_metadata(subject), [key.subject_id])
        return sql.execute(queries.delete_records(condition), params)


@retry_conflicts
def open_generation(
    claim: Claim | None,
    head: ObservationalRecord,
    new_log: str,
    *,
    origin: str,
    read_log: str,
    user_name: str = "",
    pinned: Sequence[str] | None = None,
    unproductive_tokens: int | None = None,
    thread_id: str | None = None,
    update_thread: Callable[[LockedThread], None] | None = None,
) -> ObservationalRecord:
    """Supersede the live generation by one with another log, and return that.

    Buffered chunks, leases, the request for work and the cursor move to the new generation, so
    that an observation in flight can still be committed.

    Args:
        claim: The claim on reflecting; None for a person.
        head: The record that was read.
        new_log: What replaces `read_log`.
        origin: The reason, an `ObservationalRecord.Origin`.
        read_log: The log, or the beginning of the log, that was read. What was appended since is
            kept.
        user_name: The person who made the change.
        pinned: The pinned observations; None keeps them.
        unproductive_tokens: The tokens of the new log if the reflection did not shorten it enough.
        thread_id: A thread to change in the same transaction.
        update_thread: Changes the metadata of the thread, if it exists.

    Raises:
        LogChanged: The log does not start with `read_log` any more.
        ClaimLost: Another worker has taken over, or the record was deleted.
    """
    key = RecordKey.of_record(head)

    def compose(record: ObservationalRecord) -> tuple[str, int]:
        composed = log.replace_prefix(record.active_observations, read_log, new_log)
        if composed is None:
            raise LogChanged
        return composed, tokens.get_token_counter().text(composed)

    attempts = 0
    while True:
        attempts += 1
        live = get_live(key)
        composed = compose(live)
        with routing.atomic():
            thread = thread_metadata.lock_thread(thread_id)
            locked = lock_live(key, claim)
            if not is_unchanged(live, locked):
                if attempts < MAX_UNLOCKED_ATTEMPTS:
                    continue
                composed = compose(locked)
            if thread is not None and update_thread is not None:
                update_thread(thread)
            return supersede(
                locked,
                *composed,
                origin=origin,
                user_name=user_name,
                pinned=locked.pinned if pinned is None else list(pinned),
                unproductive_tokens=unproductive_tokens,
            )


def is_unchanged(read: ObservationalRecord, locked: ObservationalRecord) -> bool:
    """Return whether the live generation and its log are still those that were read."""
    return read.id == locked.id and read.active_observations == locked.active_observations


def supersede(
    live: ObservationalRecord,
    new_log: str,
    token_count: int,
    *,
    origin: str,
    user_name: str = "",
    pinned: list[str],
    unproductive_tokens: int | None = None,
) -> ObservationalRecord:
    """Insert the next generation of a locked record, and return it."""
    names = [field.attname for field in ObservationalRecord._meta.concrete_fields]
    following = ObservationalRecord(**{name: getattr(live, name) for name in names})
    following.id = new_id()
    following.generation_count += 1
    following.origin_type = origin
    following.created_by_name = user_name
    following.active_observations = new_log
    following.observation_token_count = token_count
    following.pinned = pinned
    following.unproductive_reflection_tokens = unproductive_tokens
    following.created_at = following.updated_at = times.now()
    clear_buffered_reflection(following)
    # The old generation first: at no time may two be live.
    clear_work(live)
    clear_buffered_reflection(live)
    live.superseded_by = following
    live.save(update_fields=["superseded_by_id", *WORK_FIELDS, *BUFFERED_REFLECTION_FIELDS])
    following.save(force_insert=True)
    sql.execute(queries.MOVE_BUFFERED_CHUNKS, [following.id, live.id])
    return following


WORK_FIELDS = (
    "due_at",
    "requests",
    "lease_token",
    "lease_operation",
    "lease_expires_at",
    "reflection_token",
    "reflection_operation",
    "reflection_expires_at",
)
BUFFERED_REFLECTION_FIELDS = (
    "buffered_reflection",
    "buffered_reflection_tokens",
    "buffered_reflection_input_tokens",
    "reflected_observation_line_count",
)


def clear_work(record: ObservationalRecord) -> None:
    """Remove the leases and the request for work. The record is not saved."""
    record.due_at, record.requests = None, {}
    record.lease_token = record.lease_expires_at = None
    record.reflection_token = record.reflection_expires_at = None
    record.lease_operation = record.reflection_operation = ""


def clear_buffered_reflection(record: ObservationalRecord) -> None:
    """Remove the reflection that was prepared in advance. The record is not saved."""
    record.buffered_reflection = ""
    record.buffered_reflection_tokens = record.buffered_reflection_input_tokens = None
    record.reflected_observation_line_count = None
