"""Narrow the thread list, each condition through an index."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Exists, F, Func, OuterRef, Q, QuerySet, Subquery
from django.db.models.fields import BooleanField

from mastra_memory.models import (
    Message,
    Review,
    ReviewNote,
    Tag,
    Thread,
    ThreadTag,
    WorkingMemory,
)

MAX_THREADS_COUNTED = 5_000
"""How many threads, newest activity first, are looked through for their length."""


class HasFailedToolCall(Func):
    """Whether a message holds a failed tool call; a partial index knows those that do."""

    # Word for word the condition of the index `mastra_message_tool_error`.
    template = (
        "(%(expressions)s @? "
        "'$.parts[*].toolInvocation ? (@.state == \"output-error\" || @.isError == true)')"
    )
    output_field = BooleanField()
    conditional = True

    def __init__(self, content: str = "content") -> None:
        super().__init__(F(content))


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadFilters:
    """What the list is to show; None and empty stand for no condition."""

    resource: str = ""
    created_from: datetime | None = None
    created_to: datetime | None = None
    active_from: datetime | None = None
    active_to: datetime | None = None
    """The ends are exclusive."""
    status: str = ""
    priority: int | None = None
    assignee: str = ""
    """A user's key, or `none`."""
    tag: str = ""
    notes: bool | None = None
    tool_errors: bool | None = None
    working_memory: bool | None = None
    clone: bool | None = None
    min_messages: int | None = None
    max_messages: int | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


def filter_threads(threads: QuerySet[Thread], wanted: ThreadFilters) -> QuerySet[Thread]:
    """The threads that meet every condition."""
    threads = _filter_by_thread(threads, wanted)
    threads = _filter_by_review(threads, wanted)
    if wanted.notes is not None:
        threads = _filter_by_condition(threads, wanted.notes, _thread_in(ReviewNote.objects.all()))
    if wanted.tool_errors is not None:
        failed = _thread_in(Message.objects.filter(HasFailedToolCall()))
        threads = _filter_by_condition(threads, wanted.tool_errors, failed)
    if wanted.working_memory is not None:
        threads = _filter_by_condition(threads, wanted.working_memory, _has_working_memory())
    if wanted.min_messages or wanted.max_messages is not None:
        threads = _filter_by_length(threads, wanted.min_messages or 0, wanted.max_messages)
    return threads


def _filter_by_thread(threads: QuerySet[Thread], wanted: ThreadFilters) -> QuerySet[Thread]:
    if wanted.resource:
        threads = threads.of_resource(wanted.resource)  # type: ignore[attr-defined]
    if wanted.created_from:
        threads = threads.filter(created_at__gte=wanted.created_from)
    if wanted.created_to:
        threads = threads.filter(created_at__lt=wanted.created_to)
    if wanted.active_from:
        threads = threads.filter(updated_at__gte=wanted.active_from)
    if wanted.active_to:
        threads = threads.filter(updated_at__lt=wanted.active_to)
    if wanted.clone is not None:
        threads = threads.filter(clone_source_id__isnull=not wanted.clone)
    if wanted.metadata:
        threads = threads.filter(metadata__contains=wanted.metadata)
    return threads


def _filter_by_review(threads: QuerySet[Thread], wanted: ThreadFilters) -> QuerySet[Thread]:
    reviews = Review.objects.filter(thread_id=OuterRef("pk"))
    if wanted.status == Review.Status.NEW:  # most threads have no review yet
        threads = threads.filter(~Exists(reviews.exclude(status=Review.Status.NEW)))
    elif wanted.status:
        threads = threads.filter(review__status=wanted.status)
    if wanted.priority == Review.Priority.NORMAL:
        threads = threads.filter(~Exists(reviews.exclude(priority=wanted.priority)))
    elif wanted.priority is not None:
        threads = threads.filter(review__priority=wanted.priority)
    if wanted.assignee == "none":
        threads = threads.filter(~Exists(reviews.filter(assignee__isnull=False)))
    elif wanted.assignee:
        threads = threads.filter(review__assignee_id=int(wanted.assignee))
    if wanted.tag:
        # By its key: only then does the planner know how common the tag is.
        tag = Tag.objects.filter(name=wanted.tag).values_list("pk", flat=True).first()
        tagged = ThreadTag.objects.filter(thread_id=OuterRef("pk"), tag_id=tag or 0)
        threads = threads.filter(Exists(tagged))
    return threads


def _filter_by_condition(threads: QuerySet[Thread], wanted: bool, condition: Q) -> QuerySet[Thread]:
    return threads.filter(condition if wanted else ~condition)


def _thread_in(rows: QuerySet[Any]) -> Q:
    return Q(Exists(rows.filter(thread_id=OuterRef("pk"))))


def _has_working_memory() -> Q:
    """A text of the thread's own, or one of its resource."""
    texts = WorkingMemory.objects.exclude(content="")
    threads = texts.filter(thread__isnull=False).values("thread_id")
    resources = texts.filter(thread__isnull=True).values("resource_id")
    return Q(pk__in=Subquery(threads)) | Q(resource_id__in=Subquery(resources))


def _filter_by_length(threads: QuerySet[Thread], least: int, most: int | None) -> QuerySet[Thread]:
    window = threads.order_by("-updated_at", "-pk").values("pk")[:MAX_THREADS_COUNTED]
    kept = Thread.objects.filter(pk__in=Subquery(window))
    own = Message.objects.filter(thread_id=OuterRef("pk")).order_by("created_at", "sequence")
    if least > 0:
        kept = kept.filter(Exists(_message_at(own, least - 1)))
    if most is not None:
        kept = kept.filter(~Exists(_message_at(own, most)))
    return threads.filter(pk__in=list(kept.values_list("pk", flat=True)))


def _message_at(messages: QuerySet[Message], offset: int) -> QuerySet[Any, Any]:
    """Whether there is a message after `offset` others: no count over long threads."""
    return messages.values("pk")[offset : offset + 1]
