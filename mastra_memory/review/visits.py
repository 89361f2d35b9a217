"""Who has a thread open, and how far each reviewer has read it."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from mastra_memory.db import times, users
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.models import Visit

PRESENCE_TIMEOUT = timedelta(seconds=45)
"""A user is no longer shown as a viewer after this time without a request of the open page."""


@retry_conflicts
def record_visit(thread_id: str, user: Any, *, read_up_to: datetime | None = None) -> None:
    """Store that the user has the thread open and has read it up to a time.

    An earlier time than the stored one does not replace it.
    """
    now = times.now()
    visit, created = Visit.objects.get_or_create(
        thread_id=thread_id, user_id=user.pk, defaults={"seen_at": now, "read_up_to": read_up_to}
    )
    if created:
        return
    positions = [position for position in (visit.read_up_to, read_up_to) if position]
    latest = max(positions, default=None)
    Visit.objects.filter(pk=visit.pk).update(seen_at=now, read_up_to=latest)


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
