"""Who has a thread open, and how far each reviewer has read it."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Value
from django.db.models.functions import Greatest

from mastra_memory.db import locking, routing, times, users
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.models import Visit

PRESENCE_TIMEOUT = timedelta(seconds=45)
"""A user is no longer shown as a viewer after this time without a request of the open page."""


@retry_conflicts
def record_visit(thread_id: str, user: Any, *, read_up_to: datetime | None = None) -> None:
    """Store that the user has the thread open and has read it up to a time.

    An earlier time than the stored one does not replace it.

    Raises:
        ThreadNotFound: The thread was deleted meanwhile.
    """
    now = times.now()
    fields: dict[str, Any] = {"seen_at": now}
    if read_up_to is not None:  # PostgreSQL's `greatest` ignores a stored null.
        fields["read_up_to"] = Greatest("read_up_to", Value(read_up_to))
    if Visit.objects.filter(thread_id=thread_id, user_id=user.pk).update(**fields):
        return
    visit = Visit(thread_id=thread_id, user_id=user.pk, seen_at=now, read_up_to=read_up_to)
    with routing.atomic():
        locking.lock_thread(thread_id, "KEY SHARE")
        Visit.objects.bulk_create([visit], ignore_conflicts=True)


def get_read_position(thread_id: str, user: Any) -> datetime | None:
    """Return the time up to which the user has read the thread; None if it was never opened."""
    visits = Visit.objects.filter(thread_id=thread_id, user_id=user.pk)
    return visits.values_list("read_up_to", flat=True).first()


def list_read_positions(thread_ids: Sequence[str], user: Any) -> dict[str, datetime]:
    """Return how far the user has read each thread, by id. Threads never read are left out."""
    visits = Visit.objects.filter(thread__in=thread_ids, user_id=user.pk)
    positions = visits.values_list("thread_id", "read_up_to")
    return {thread_id: read_up_to for thread_id, read_up_to in positions if read_up_to}


def list_other_viewers(thread_id: str, user: Any) -> Sequence[str]:
    """Return the names of other users who have the thread open now."""
    since = times.now() - PRESENCE_TIMEOUT
    visits = Visit.objects.filter(thread_id=thread_id, seen_at__gte=since)
    user_ids = list(visits.exclude(user_id=user.pk).values_list("user_id", flat=True))
    return sorted(map(users.get_full_name, users.find_users(user_ids).values()))
