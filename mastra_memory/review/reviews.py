"""The state of reviews: status, assignee, priority, and each reviewer's queue."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from mastra_memory.db import locking, routing, times
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.db.users import get_user_id
from mastra_memory.exceptions import StaleData
from mastra_memory.models import Review, Thread, ThreadChange
from mastra_memory.review import history
from mastra_memory.review.history import ChangeInput

OPEN_STATUSES = (Review.Status.NEW, Review.Status.IN_REVIEW, Review.Status.FLAGGED)
"""Statuses that need a reviewer. `waiting` means that the reviewer waits for someone else."""
MAX_QUEUE_LENGTH = 500
REVIEW_FIELDS = ("status", "priority", "assignee_id")


def get_review(thread_id: str) -> Review:
    """Return the review of the thread, or an unsaved one of version 0 if it has none."""
    review = Review.objects.filter(pk=thread_id).first()
    return review or Review(thread_id=thread_id, version=0)


@retry_conflicts
@routing.atomic
def update_reviews(
    thread_ids: Sequence[str], *, by: Any, version: int | None = None, **fields: Any
) -> int:
    """Set fields of the threads' reviews and return how many reviews changed.

    Runs a fixed number of queries. Threads that were deleted meanwhile are left out.

    Args:
        thread_ids: Threads to update; missing reviews are created.
        by: The user who makes the change.
        version: The version that the user has seen; None skips the check.
        **fields: New values of `status`, `priority` and `assignee_id`.

    Raises:
        StaleData: A review was changed since it had this version. Nothing is changed.
        ThreadNotFound: None of the threads exists any more.
    """
    if fields.get("assignee_id") is not None:
        fields["assignee_id"] = get_user_id(fields["assignee_id"])
    thread_ids = locking.lock_existing_threads(thread_ids)
    # Version 0 is what a page shows while there is no review yet, so its form stays valid.
    Review.objects.bulk_create(
        [Review(thread_id=pk, version=0) for pk in sorted(thread_ids)], ignore_conflicts=True
    )
    # Locked in the order of keys, so that two bulk changes do not wait for each other.
    locked = Review.objects.select_for_update().filter(pk__in=thread_ids).order_by("pk")
    reviews = list(locked)
    if version is not None and any(review.version != version for review in reviews):
        raise StaleData(_("Another user changed this review in the meantime."))
    changed = [r for r in reviews if any(getattr(r, name) != fields[name] for name in fields)]
    if "status" in fields:
        is_resolved = fields["status"] == Review.Status.RESOLVED
        fields["resolved_at"] = times.now() if is_resolved else None
    Review.objects.filter(pk__in=[r.pk for r in changed]).update(
        **fields, version=F("version") + 1, changed_by_id=by.pk, updated_at=times.now()
    )
    history.record_changes(by, *(_build_change(review, fields) for review in changed))
    return len(changed)


def _build_change(review: Review, fields: dict[str, Any]) -> ChangeInput:
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
    """Return the ids of the open threads assigned to the user.

    The highest priority comes first, then the longest time without activity.
    """
    assigned = threads.filter(review__assignee_id=user.pk, review__status__in=OPEN_STATUSES)
    ordered = assigned.order_by("-review__priority", "updated_at", "pk")
    return list(ordered.values_list("pk", flat=True)[:MAX_QUEUE_LENGTH])


def find_next(queue: Sequence[str], current: str | None) -> str | None:
    """Return the thread after `current`. If `current` is the last one, return the first.

    Return None if the queue has no other thread.
    """
    others = [pk for pk in queue if pk != current]
    if not others:
        return None
    if current in queue:
        later = queue[queue.index(current) + 1 :]
        return later[0] if later else others[0]
    return others[0]


def find_unassigned_thread(threads: QuerySet[Thread], *, skip: Iterable[str] = ()) -> str | None:
    """Return the open thread without an assignee that was active last, or None."""
    assigned_or_closed = Review.objects.filter(
        ~Q(assignee_id=None) | ~Q(status__in=OPEN_STATUSES), thread_id=OuterRef("pk")
    ).order_by()
    unassigned = threads.filter(~Exists(assigned_or_closed)).exclude(pk__in=list(skip))
    return unassigned.order_by("-updated_at", "-pk").values_list("pk", flat=True).first()
