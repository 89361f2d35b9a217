"""Tags on threads."""

from collections.abc import Sequence
from typing import Any

from mastra_memory.db import json_text, locking, routing
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.models import Tag, ThreadChange, ThreadTag
from mastra_memory.review import history
from mastra_memory.review.history import ChangeInput


def list_tags(thread_id: str) -> list[str]:
    """The names of a thread's tags."""
    tags = ThreadTag.objects.filter(thread_id=thread_id)
    return list(tags.order_by("tag__name").values_list("tag__name", flat=True))


@retry_conflicts
@routing.atomic
def add_tag(thread_ids: Sequence[str], name: str, *, by: Any) -> int:
    """Put a tag on threads, new or not; how many did not have it."""
    name = " ".join(json_text.clean_text(name).split())[:64]
    if not name:
        return 0
    locking.lock_threads(thread_ids, "KEY SHARE")
    tag, _made = Tag.objects.get_or_create(name=name)
    have = set(ThreadTag.objects.filter(tag=tag, thread__in=thread_ids).values_list("thread_id"))
    fresh = [pk for pk in sorted(thread_ids) if (pk,) not in have]
    rows = [ThreadTag(thread_id=pk, tag=tag) for pk in fresh]
    ThreadTag.objects.bulk_create(rows, ignore_conflicts=True)
    kind = ThreadChange.Kind.REVIEW
    history.record_changes(
        by, *(ChangeInput(thread_id=pk, kind=kind, after={"tag": name}) for pk in fresh)
    )
    return len(fresh)


@retry_conflicts
@routing.atomic
def remove_tag(thread_id: str, name: str, *, by: Any) -> None:
    """Take a tag off a thread; one that no thread carries any more stays in the list of tags."""
    gone, _kinds = ThreadTag.objects.filter(thread_id=thread_id, tag__name=name).delete()
    if gone:
        kind = ThreadChange.Kind.REVIEW
        history.record_changes(
            by, ChangeInput(thread_id=thread_id, kind=kind, before={"tag": name})
        )
