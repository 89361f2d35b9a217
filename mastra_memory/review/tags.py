"""Tags on threads."""

from collections.abc import Sequence
from typing import Any

from mastra_memory.db import json_text, locking, routing
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.models import Tag, ThreadChange, ThreadTag
from mastra_memory.review import history
from mastra_memory.review.history import ChangeInput

MAX_TAG_CHARACTERS = 64


def list_tags(thread_id: str) -> list[str]:
    """Return the names of the thread's tags in alphabetical order."""
    tags = ThreadTag.objects.filter(thread_id=thread_id)
    return list(tags.order_by("tag__name").values_list("tag__name", flat=True))


@retry_conflicts
@routing.atomic
def add_tag(thread_ids: Sequence[str], name: str, *, by: Any) -> int:
    """Add a tag to the threads and return how many did not have it.

    The tag is created if it does not exist. An empty name changes nothing; a long one is cut.
    Threads that were deleted meanwhile are left out.

    Raises:
        ThreadNotFound: None of the threads exists any more.
    """
    name = " ".join(json_text.clean_text(name).split())[:MAX_TAG_CHARACTERS]
    if not name:
        return 0
    thread_ids = locking.lock_existing_threads(thread_ids)
    tag, _created = Tag.objects.get_or_create(name=name)
    tagged = ThreadTag.objects.filter(tag=tag, thread__in=thread_ids)
    tagged_ids = set(tagged.values_list("thread_id", flat=True))
    untagged = [pk for pk in sorted(thread_ids) if pk not in tagged_ids]
    ThreadTag.objects.bulk_create(
        [ThreadTag(thread_id=pk, tag=tag) for pk in untagged], ignore_conflicts=True
    )
    kind = ThreadChange.Kind.REVIEW
    history.record_changes(
        by, *(ChangeInput(thread_id=pk, kind=kind, after={"tag": name}) for pk in untagged)
    )
    return len(untagged)


@retry_conflicts
@routing.atomic
def remove_tag(thread_id: str, name: str, *, by: Any) -> None:
    """Remove a tag from the thread. The tag itself is kept, even if no thread has it.

    Raises:
        ThreadNotFound: The thread was deleted meanwhile.
    """
    locking.lock_thread(thread_id, "KEY SHARE")
    deleted, _by_model = ThreadTag.objects.filter(thread_id=thread_id, tag__name=name).delete()
    if deleted:
        kind = ThreadChange.Kind.REVIEW
        history.record_changes(
            by, ChangeInput(thread_id=thread_id, kind=kind, before={"tag": name})
        )
