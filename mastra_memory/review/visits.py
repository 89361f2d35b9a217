"""Who has a thread open, and how far each reviewer has read it."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from mastra_memory.db.locking import retry_conflicts
from mastra_memory.models import Visit

PRESENCE_TIMEOUT = timedelta(seconds=45)
"""A user is no longer shown as a viewer after this time without a request of the open page."""


@retry_conflicts
def record_visit(thread_id: str, user: Any, *, read_up_to: datetime | None = None) -> None:
    """Store that the user has the thread open and has read it up to a time.

    An earlier time than the stored one does not replace it.
    """
    now = timezone.now()
    visit, created = Visit.objects.get_or_create(
        thread_id=thread_id, user=user, defaults={"seen_at": now, "read_up_to": read_up_to}
    )
    if created:
        return
    times = [time for time in (visit.read_up_to, read_up_to) if time]
    latest = max(times, default=None)
    Visit.objects.filter(pk=visit.pk).update(seen_at=now, read_up_to=latest)


def get_read_position(thread_id: str, user: Any) -> datetime | None:
    """Return the time up to which the user has read the thread; None if it was never opened."""
    visits = Visit.objects.filter(thread_id=thread_id, user=user)
    return visits.values_list("read_up_to", flat=True).first()


def list_read_positions(thread_ids: Sequence[str], user: Any) -> dict[str, datetime]:
    """Return how far the user has read each thread, by id. Threads never read are left out."""
    visits = Visit.objects.filter(thread__in=thread_ids, user=user)
    positions = visits.values_list("thread_id", "read_up_to")
    return {thread_id: read_up_to for thread_id, read_up_to in positions if read_up_to}


def list_other_viewers(thread_id: str, user: Any) -> Sequence[str]:
    """Return the names of other users who have the thread open now."""
    since = timezone.now() - PRESENCE_TIMEOUT
    visits = Visit.objects.filter(thread_id=thread_id, seen_at__gte=since).exclude(user=user)
    return [
        visit.user.get_full_name() or visit.user.get_username()
        for visit in visits.select_related("user").order_by("user")
    ]
