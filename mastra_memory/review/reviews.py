"""The state of reviews: status, assignee, priority, tags, and what comes next."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from mastra_memory.db import locking, routing
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.exceptions import StaleData
from mastra_memory.models import Review, Thread, ThreadChange
from mastra_memory.review import history
from mastra_memory.review.history import ChangeInput

OPEN_STATUSES = (Review.Status.NEW, Review.Status.IN_REVIEW, Review.Status.FLAGGED)
"""What waits for a reviewer; `waiting` waits for somebody else."""
MAX_QUEUE_LENGTH = 500
REVIEW_FIELDS = ("status", "priority", "assignee_id")


def get_review(thread_id: str) -> Review:
    """The thread's review; an unsaved one of version 0 when nobody has begun."""
    found = Review.objects.filter(pk=thread_id).select_related("assignee", "changed_by").first()
    return found or Review(thread_id=thread_id, version=0)


@retry_conflicts
@routing.atomic
def update_reviews(
    thread_ids: Sequence[str], *, by: Any, version: int | None = None, **fields: Any
) -> int:
    """Set `status`, `priority`, `assignee_id` of the threads' reviews; how many changed.

    A fixed number of statements. With `version`, raises `StaleData` if somebody changed one since
    it had that version.
    """
    locking.lock_threads(thread_ids, "KEY SHARE")
    # Version 0 is what a form says that was filled in before anybody had begun.
    Review.objects.bulk_create(
        [Review(thread_id=pk, version=0) for pk in sorted(thread_ids)], ignore_conflicts=True
    )
    held = Review.objects.select_for_update().filter(pk__in=thread_ids).order_by("pk")
    current = list(held)
    if version is not None and any(review.version != version for review in current):
        raise StaleData(_("Somebody else changed this review meanwhile."))
    changed = [r for r in current if any(getattr(r, name) != fields[name] for name in fields)]
    if "status" in fields:
        resolved = fields["status"] == Review.Status.RESOLVED
        fields["resolved_at"] = timezone.now() if resolved else None
    Review.objects.filter(pk__in=[r.pk for r in changed]).update(
        **fields, version=F("version") + 1, changed_by=by, updated_at=timezone.now()
    )
    history.record_changes(by, *(_change(review, fields) for review in changed))
    return len(changed)


def _change(review: Review, fields: dict[str, Any]) -> ChangeInput:
    names = [
        name for name in REVIEW_FIELDS if name in fields and getattr(review, name) != fields[name]
    ]
    return ChangeInput(
        thread_id=review.pk,
        kind=ThreadChange.Kind.REVIEW,
        before={name: getattr(review, name) for name in names},
        after={name: fields[name] for name in names},
    )


def list_queue(user: Any, threads: QuerySet[Thread]) -> list[str]:
    """Ids of what a person still has to do, the most urgent and then the oldest first."""
    mine = threads.filter(review__assignee=user, review__status__in=OPEN_STATUSES)
    ordered = mine.order_by("-review__priority", "updated_at", "pk")
    return list(ordered.values_list("pk", flat=True)[:MAX_QUEUE_LENGTH])


def find_next(queue: Sequence[str], current: str | None) -> str | None:
    """What comes after the current thread, round to the beginning; None when nothing is left."""
    others = [pk for pk in queue if pk != current]
    if not others:
        return None
    if current in queue:
        later = queue[queue.index(current) + 1 :]
        return later[0] if later else others[0]
    return others[0]


def find_unassigned_thread(threads: QuerySet[Thread], *, skip: Iterable[str] = ()) -> str | None:
    """The thread with the newest activity that is nobody's and not settled."""
    taken = Review.objects.filter(
        ~Q(assignee=None) | ~Q(status__in=OPEN_STATUSES), thread_id=OuterRef("pk")
    ).order_by()
    free = threads.filter(~Exists(taken)).exclude(pk__in=list(skip))
    return free.order_by("-updated_at", "-pk").values_list("pk", flat=True).first()
