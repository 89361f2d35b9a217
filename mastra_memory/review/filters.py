"""Filters of the thread list. Each one can use an index."""

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
"""A filter by number of messages covers at most this many threads, newest activity first."""


class HasFailedToolCall(Func):
    """A condition that is true for messages with a failed tool call."""

    # Must equal the condition of the partial index `mastra_message_tool_error`, or PostgreSQL does
    # not use it.
    template = (
        "(%(expressions)s @? "
        "'$.parts[*].toolInvocation ? (@.state == \"output-error\" || @.isError == true)')"
    )
    output_field = BooleanField()
    conditional = True

    def __init__(self, content: str = "content") -> None:
        """Take the name of the JSON field with the content of the message."""
        super().__init__(F(content))


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadFilters:
    """Conditions on threads. None and the empty string stand for no condition."""

    resource: str = ""
    created_from: datetime | None = None
    created_to: datetime | None = None
    active_from: datetime | None = None
    active_to: datetime | None = None
    """Exclusive, as `created_to` is."""
    status: str = ""
    priority: int | None = None
    assignee: str = ""
    """A user's primary key as text, or `none` for threads without an assignee."""
    tag: str = ""
    notes: bool | None = None
    tool_errors: bool | None = None
    working_memory: bool | None = None
    clone: bool | None = None
    min_messages: int | None = None
    max_messages: int | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


def filter_threads(threads: QuerySet[Thread], filters: ThreadFilters) -> QuerySet[Thread]:
    """Return the threads that meet all conditions."""
    threads = _filter_by_thread(threads, filters)
    threads = _filter_by_review(threads, filters)
    if filters.notes is not None:
        has_notes = _is_thread_of(ReviewNote.objects.all())
        threads = _filter_by_condition(threads, filters.notes, has_notes)
    if filters.tool_errors is not None:
        has_errors = _is_thread_of(Message.objects.filter(HasFailedToolCall()))
        threads = _filter_by_condition(threads, filters.tool_errors, has_errors)
    if filters.working_memory is not None:
        threads = _filter_by_condition(threads, filters.working_memory, _has_working_memory())
    if filters.min_messages or filters.max_messages is not None:
        threads = _filter_by_message_count(threads, filters.min_messages or 0, filters.max_messages)
    return threads


def _filter_by_thread(threads: QuerySet[Thread], filters: ThreadFilters) -> QuerySet[Thread]:
    if filters.resource:
        threads = threads.of_resource(filters.resource)  # type: ignore[attr-defined]
    if filters.created_from:
        threads = threads.filter(created_at__gte=filters.created_from)
    if filters.created_to:
        threads = threads.filter(created_at__lt=filters.created_to)
    if filters.active_from:
        threads = threads.filter(updated_at__gte=filters.active_from)
    if filters.active_to:
        threads = threads.filter(updated_at__lt=filters.active_to)
    if filters.clone is not None:
        threads = threads.filter(clone_source_id__isnull=not filters.clone)
    if filters.metadata:
        threads = threads.filter(metadata__contains=filters.metadata)
    return threads


def _filter_by_review(threads: QuerySet[Thread], filters: ThreadFilters) -> QuerySet[Thread]:
    reviews = Review.objects.filter(thread_id=OuterRef("pk"))
    # A thread without a review counts as new, of normal priority and unassigned.
    if filters.status == Review.Status.NEW:
        threads = threads.filter(~Exists(reviews.exclude(status=Review.Status.NEW)))
    elif filters.status:
        threads = threads.filter(review__status=filters.status)
    if filters.priority == Review.Priority.NORMAL:
        threads = threads.filter(~Exists(reviews.exclude(priority=filters.priority)))
    elif filters.priority is not None:
        threads = threads.filter(review__priority=filters.priority)
    if filters.assignee == "none":
        threads = threads.filter(~Exists(reviews.filter(assignee_id__isnull=False)))
    elif filters.assignee:
        threads = threads.filter(review__assignee_id=filters.assignee)
    if filters.tag:
        # With the key in the query, not a join on the name, the planner knows how common it is.
        tag_id = Tag.objects.filter(name=filters.tag).values_list("pk", flat=True).first()
        tagged = ThreadTag.objects.filter(thread_id=OuterRef("pk"), tag_id=tag_id or 0)
        threads = threads.filter(Exists(tagged))
    return threads


def _filter_by_condition(
    threads: QuerySet[Thread], expected: bool, condition: Q
) -> QuerySet[Thread]:
    return threads.filter(condition if expected else ~condition)


def _is_thread_of(rows: QuerySet[Any]) -> Q:
    """Return a condition that is true for threads that one of the rows belongs to."""
    return Q(Exists(rows.filter(thread_id=OuterRef("pk"))))


def _has_working_memory() -> Q:
    """Return a condition that is true for threads whose own or resource's memory has a text."""
    memories = WorkingMemory.objects.exclude(content="")
    thread_ids = memories.filter(thread__isnull=False).values("thread_id")
    resource_ids = memories.filter(thread__isnull=True).values("resource_id")
    return Q(pk__in=Subquery(thread_ids)) | Q(resource_id__in=Subquery(resource_ids))


def _filter_by_message_count(
    threads: QuerySet[Thread], minimum: int, maximum: int | None
) -> QuerySet[Thread]:
    newest = threads.order_by("-updated_at", "-pk").values("pk")[:MAX_THREADS_COUNTED]
    matching = Thread.objects.filter(pk__in=Subquery(newest))
    messages = Message.objects.filter(thread_id=OuterRef("pk")).order_by("created_at", "sequence")
    if minimum > 0:
        matching = matching.filter(Exists(_message_at(messages, minimum - 1)))
    if maximum is not None:
        matching = matching.filter(~Exists(_message_at(messages, maximum)))
    # Evaluated here: inside another subquery PostgreSQL would check all threads, not the newest.
    return threads.filter(pk__in=list(matching.values_list("pk", flat=True)))


def _message_at(messages: QuerySet[Message], offset: int) -> QuerySet[Any, Any]:
    """Return the message at this index. This is faster than counting the messages of a thread."""
    return messages.values("pk")[offset : offset + 1]
