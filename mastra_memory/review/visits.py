"""Who has a thread open, and how far each reviewer has read it."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from mastra_memory.db.locking import retry_conflicts
from mastra_memory.models import Visit

PRESENCE_TIMEOUT = timedelta(seconds=45)
"""An open page reports itself more often than this; without a report its user has left."""


@retry_conflicts
def record_visit(thread_id: str, user: Any, *, read_up_to: datetime | None = None) -> None:
    """Note that somebody has the thread open, and how far they have read; never back."""
    now = timezone.now()
    visit, made = Visit.objects.get_or_create(
        thread_id=thread_id, user=user, defaults={"seen_at": now, "read_up_to": read_up_to}
    )
    if made:
        return
    marks = [moment for moment in (visit.read_up_to, read_up_to) if moment]
    newest = max(marks, default=None)
    Visit.objects.filter(pk=visit.pk).update(seen_at=now, read_up_to=newest)


def get_read_position(thread_id: str, user: Any) -> datetime | None:
    """How far somebody has read; None for a thread they never opened."""
    visits = Visit.objects.filter(thread_id=thread_id, user=user)
    return visits.values_list("read_up_to", flat=True).first()


def list_other_viewers(thread_id: str, user: Any) -> Sequence[str]:
    """Names of the other people who have the thread open now."""
    since = timezone.now() - PRESENCE_TIMEOUT
    visits = Visit.objects.filter(thread_id=thread_id, seen_at__gte=since).exclude(user=user)
    return [
        visit.user.get_full_name() or visit.user.get_username()
        for visit in visits.select_related("user").order_by("user")
    ]
