"""Claim a record and look at what is unobserved."""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from mastra_memory.models import (
    ObservationalRecord,
)
from mastra_memory.observational import (
    claims,
    commits,
    generations,
    tracking,
)
from mastra_memory.observational.claims import Claim
from mastra_memory.observational.keys import RecordKey
from mastra_memory.types import StoredThread
from tests.support.factories import save, track

KEY = RecordKey.about_thread("t", "r")


def save_tracked(thread: StoredThread, batch: list[Any]) -> None:
    """Save messages and track them."""
    track(save(batch), scope="thread")


def live(key: RecordKey = KEY) -> ObservationalRecord:
    """Return the live record."""
    return generations.get_live(key)


def claim(operation: Any = "observing", key: RecordKey = KEY) -> Claim:
    """Claim the record."""
    if operation in ("reflecting", "buffering reflection"):
        made = claims.claim_reflecting(live(key), operation.partition(" ")[0])
    else:
        made = claims.claim_observing(live(key), operation)
    assert made is not None
    return made


def expire() -> None:
    """Let another worker take over."""
    past = timezone.now() - timedelta(seconds=1)
    ObservationalRecord.objects.exclude(lease_token=None).update(lease_expires_at=past)


def list_ids(key: RecordKey = KEY, **choices: Any) -> list[str]:
    """Return the ids of the unobserved messages."""
    return [message.id for message in tracking.list_unobserved(key, **choices)]


def buffer(count: int, text: str, **choices: Any) -> commits.Commit:
    """Buffer the oldest messages as a chunk."""
    held = claim("buffering")
    unbuffered = tracking.list_unobserved(KEY, exclude_buffered=True)
    commit = commits.commit_chunk(held, text, unbuffered[:count], **choices)
    claims.release(held)
    return commit
