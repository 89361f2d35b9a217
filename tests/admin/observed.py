"""An observed conversation, and what tests of its pages need."""

from typing import Any

from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse

from mastra_memory.models import (
    MessageObservation,
    ObservationalRecord,
)
from mastra_memory.observational import log
from mastra_memory.types import StoredThread
from tests.support.factories import (
    make_chunk,
    make_record,
    make_thread,
    moment,
    save,
    some_messages,
)

ON = {"OPTIONS": {"observationalMemory": {"observation": {"messageTokens": 1_000}}}}
FIRST = "Date: Jan 1, 2024\n* 🔴 (10:00) Likes green tea\n* 🟡 (10:05) Works at Acme"
SECOND = "Date: Jan 2, 2024\n* 🔴 (09:00) Moved to Kraków\n  * -> asked for a new address"
VIEW = ("view_thread", "view_observationalrecord")


def record_page(record: ObservationalRecord, **query: Any) -> str:
    address = reverse("admin:mastra_memory_observationalrecord_change", args=[quote(record.pk)])
    return f"{address}?{'&'.join(f'{name}={value}' for name, value in query.items())}"


def do(client: Client, record: ObservationalRecord, verb: str, **fields: Any) -> Any:
    address = reverse("admin:mastra_memory_observationalrecord_do", args=[quote(record.pk), verb])
    return client.post(address, {"seen": record.generation_count, **fields}, follow=True)


def live() -> ObservationalRecord:
    return ObservationalRecord.objects.live().get()


def observed_thread(**fields: Any) -> tuple[StoredThread, ObservationalRecord]:
    """Six messages: two observed, two observed in another batch, one buffered, one raw."""
    thread = make_thread("alice", "talk", title="Tea and moving")
    save(some_messages(thread, 6))
    text = log.append_observations(FIRST, SECOND, moment(3))
    record = make_record(thread, active_observations=text, observation_token_count=40, **fields)
    for position, (observations, numbers) in enumerate(
        ((FIRST, (0, 1)), (SECOND, (2, 3)), ("* 🟢 (11:00) Said goodbye", (4,)))
    ):
        chunk = make_chunk(
            record,
            position,
            observations=observations,
            message_ids=[f"m{number}" for number in numbers],
            last_observed_at=moment(numbers[-1]),
            activated_at=moment(10 + position) if position < 2 else None,
            token_count=20,
            message_tokens=90,
        )
        for number in numbers:
            track(thread, f"m{number}", chunk=chunk)
    track(thread, "m5")
    return thread, record


def track(thread: StoredThread, message_id: str, **fields: Any) -> None:
    MessageObservation.objects.create(
        message_id=message_id,
        scope="thread",
        thread_id=thread.id,
        resource_id=thread.resource_id,
        token_count=45,
        **fields,
    )


def line_of(record: ObservationalRecord, words: str) -> int:
    return next(
        item.line for item in log.get_items(record.active_observations) if words in item.text
    )
