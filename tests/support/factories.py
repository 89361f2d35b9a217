"""Factories. Pass what the test is about; everything else has a default."""

import itertools
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from django.contrib.auth.models import User
from django.utils import timezone

from mastra_memory import messages, threads
from mastra_memory.db import sql, times
from mastra_memory.models import MessageObservation, ObservationalRecord, ObservationChunk, Scope
from mastra_memory.observational import tracking
from mastra_memory.types import StoredMessage, StoredThread

START = datetime(2024, 1, 1, tzinfo=UTC)
Json = dict[str, Any]

_numbers = itertools.count(1)


def unique(prefix: str) -> str:
    """A fresh id."""
    return f"{prefix}-{next(_numbers)}"


def moment(seconds: float = 0) -> datetime:
    """Return the time this many seconds after the start of 2024."""
    return START + timedelta(seconds=seconds)


def api_time(seconds: float = 0) -> str:
    """Return `moment(seconds)` in the format of the API."""
    return times.format_time(moment(seconds))


def make_user(name: str, *, unscoped: bool = False) -> User:
    """Create a user; with `unscoped`, a superuser, who may access all resources."""
    return User.objects.create(username=name, is_superuser=unscoped, is_staff=unscoped)


def make_thread(
    resource_id: str = "alice",
    thread_id: str | None = None,
    *,
    title: str = "",
    metadata: Mapping[str, Any] | None = None,
) -> StoredThread:
    """A thread."""
    return threads.create_thread(
        resource_id, thread_id=thread_id or unique("thread"), title=title, metadata=metadata
    )


def text_content(text: str, **more: Any) -> Json:
    """Format-2 content of one text part."""
    return {"format": 2, "parts": [{"type": "text", "text": text}], **more}


def a_message(
    thread: StoredThread,
    message_id: str | None = None,
    *,
    text: str = "Hello",
    at: float | None = None,
    content: Any = None,
    **fields: Any,
) -> Json:
    """A message as a client sends it; `at` is in seconds, None leaves `createdAt` out."""
    message: Json = {
        "id": message_id or unique("message"),
        "role": "user",
        "threadId": thread.id,
        "resourceId": thread.resource_id,
        "content": text_content(text) if content is None else content,
    }
    if at is not None:
        message["createdAt"] = api_time(at)
    return message | fields


def some_messages(
    thread: StoredThread, count: int, *, prefix: str = "m", **fields: Any
) -> list[Any]:
    """Messages `m0`, `m1`, … one second apart, user and assistant in turn."""
    roles = itertools.cycle(("user", "assistant"))
    return [
        a_message(thread, f"{prefix}{n}", text=f"Message {n}", at=n, role=next(roles)) | fields
        for n in range(count)
    ]


def save(batch: Sequence[Mapping[str, Any]]) -> list[StoredMessage]:
    """Store messages."""
    return messages.save_messages(messages.validate_messages(batch))


def track(stored: Sequence[StoredMessage], scope: str = "thread") -> None:
    """Mark stored messages as pending, as if observational memory had been on."""
    counts = tracking.count_tokens(stored)
    MessageObservation.objects.bulk_create(
        MessageObservation(
            message_id=message.id,
            scope=scope,
            thread_id=message.thread_id,
            resource_id=message.resource_id,
            token_count=count,
        )
        for message, count in zip(stored, counts, strict=True)
    )


def fill(
    thread: StoredThread, count: int, *, text: str = "Message", searchable: bool = True
) -> None:
    """Store many messages quickly: `<thread>:0`, `<thread>:1`, …, one second apart."""
    sql.execute(
        """INSERT INTO mastra_memory_message
            (id, thread_id, resource_id, role, type, signal, content, text, search, created_at)
        SELECT %s || ':' || n, %s, %s, CASE n %% 2 WHEN 0 THEN 'user' ELSE 'assistant' END,
            'v2', '', jsonb_build_object('format', 2, 'parts', jsonb_build_array(
                jsonb_build_object('type', 'text', 'text', text))),
            text, CASE WHEN %s THEN to_tsvector('simple', text) END, %s + n * interval '1 second'
        FROM (SELECT n, %s || ' ' || n AS text FROM generate_series(0, %s - 1) AS n) AS rows
        ORDER BY n""",
        [thread.id, thread.id, thread.resource_id, searchable, START, text, count],
    )


def make_record(
    thread: StoredThread | None = None, *, resource_id: str = "alice", **fields: Any
) -> ObservationalRecord:
    """Create a generation of observations about a thread or, if it is None, about a resource.

    The highest generation is live; the others are superseded by the next one.
    """
    about: Json = {"scope": Scope.RESOURCE, "resource_id": resource_id}
    if thread is not None:
        about = {"scope": Scope.THREAD, "resource_id": thread.resource_id, "thread_id": thread.id}
    record = ObservationalRecord(**about, **fields)
    others = ObservationalRecord.objects.filter(
        resource_id=record.resource_id, thread_id=record.thread_id
    )
    earlier = others.filter(generation_count__lt=record.generation_count)
    previous = earlier.order_by("-generation_count").first()
    if previous is not None:
        ObservationalRecord.objects.filter(pk=previous.pk).update(superseded_by=record.pk)
    later = others.filter(generation_count__gt=record.generation_count)
    record.superseded_by = later.order_by("generation_count").first()
    record.save(force_insert=True)
    return record


def held_lease(operation: str, *, seconds: float = 60) -> Json:
    """The fields of a record while a worker observes, buffers, or reflects.

    `operation` is `observing`, `reflecting`, `buffering` or `buffering reflection`.
    """
    prefix = "reflection" if "reflect" in operation else "lease"
    return {
        f"{prefix}_token": uuid4(),
        f"{prefix}_operation": operation.partition(" ")[0],
        f"{prefix}_expires_at": timezone.now() + timedelta(seconds=seconds),
    }


def make_chunk(record: ObservationalRecord, position: int = 0, **fields: Any) -> ObservationChunk:
    """A buffered observation."""
    facts: Json = {
        "id": unique("chunk"),
        "cycle_id": unique("cycle"),
        "observations": "noted",
        "token_count": 3,
        "message_tokens": 9,
        "last_observed_at": moment(),
    }
    return ObservationChunk.objects.create(record=record, position=position, **facts | fields)
