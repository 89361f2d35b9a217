"""The history of changes that users make to threads.

Each change is stored twice: as a `ThreadChange` with full values, and in the log of Django's admin.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.contrib.contenttypes.models import ContentType
from django.db.models import Case, F, Func, IntegerField, JSONField, TextField, Value, When
from django.db.models.functions import Cast, Left
from django.db.models.lookups import GreaterThan

from mastra_memory.content import redaction
from mastra_memory.db import json_text, times
from mastra_memory.models import Thread, ThreadChange

MAX_LOGGED_CHARACTERS = 2000
"""Characters of each value in Django's log; a `ThreadChange` keeps the whole value."""
MAX_SHOWN_BYTES = 50_000
"""Longer values of a change are not shown."""
TOO_LONG_PLACEHOLDER = "…"
"""Replaces values that are too long to be shown."""
MAX_TITLE_CHARACTERS = 200
"""Length of the object's name in Django's log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeInput:
    """A change to record. Values must be JSON."""

    thread_id: str
    kind: str
    before: Any = None
    after: Any = None
    message_id: str | None = None


def record_changes(by: Any, *changes: ChangeInput) -> list[ThreadChange]:
    """Store changes made by a user, or by the system if `by` is None.

    Call it in the transaction that makes the changes.
    """
    rows = ThreadChange.objects.bulk_create(
        ThreadChange(
            thread_id=change.thread_id,
            kind=change.kind,
            author_id=by and by.pk,
            message_id=change.message_id,
            before=change.before,
            after=change.after,
        )
        for change in changes
    )
    if by is not None and apps.is_installed("django.contrib.admin"):
        _write_admin_log(by, changes)
    return rows


def _write_admin_log(by: Any, changes: Sequence[ChangeInput]) -> None:
    # Not imported at the top: a host project may run without Django's admin.
    log_entry: Any = apps.get_model("admin", "LogEntry")
    content_type = ContentType.objects.get_for_model(Thread)
    titles = _get_masked_titles(change.thread_id for change in changes)
    log_entry.objects.bulk_create(
        log_entry(
            user_id=by.pk,
            content_type=content_type,
            object_id=change.thread_id,
            object_repr=titles.get(change.thread_id, change.thread_id)[:MAX_TITLE_CHARACTERS],
            action_flag=2,  # CHANGE
            change_message=_format_log_message(change),
        )
        for change in changes
    )


def _get_masked_titles(thread_ids: Iterable[str]) -> dict[str, str]:
    # Django shows the names in its log to every member of staff.
    mask = redaction.get_mask()
    beginning = Left("title", MAX_TITLE_CHARACTERS + 2 * redaction.MAX_MATCH_CHARS)
    titles = Thread.objects.filter(pk__in=set(thread_ids)).values_list("pk", beginning)
    return {
        pk: redaction.mask_beginning(title, mask, MAX_TITLE_CHARACTERS) or pk
        for pk, title in titles
    }


def _format_log_message(change: ChangeInput) -> str:
    subject = f"{change.kind} {change.message_id}" if change.message_id else change.kind
    return f"{subject}: was {_truncate_json(change.before)}, is {_truncate_json(change.after)}"


def _truncate_json(value: Any) -> str:
    return json_text.dumps(value)[:MAX_LOGGED_CHARACTERS]


def log_deletion(by: Any, thread: Thread) -> None:
    """Record in Django's log that the user is about to delete the thread."""
    if not apps.is_installed("django.contrib.admin"):
        return
    log_entry: Any = apps.get_model("admin", "LogEntry")
    log_entry.objects.create(
        user_id=by.pk,
        content_type=ContentType.objects.get_for_model(Thread),
        object_id=thread.pk,
        object_repr=redaction.mask_beginning(
            str(thread), redaction.get_mask(), MAX_TITLE_CHARACTERS
        ),
        action_flag=3,  # DELETION
        change_message=f"deleted: was {thread.messages.count()} messages of {thread.resource_id}",
    )


def list_changes(thread_id: str, *, limit: int = 50) -> list[ThreadChange]:
    """Return the newest changes of the thread, newest first.

    Values of more than `MAX_SHOWN_BYTES` are not read; `TOO_LONG_PLACEHOLDER` replaces them.
    """
    changes: Any = ThreadChange.objects.filter(thread_id=thread_id)
    changes = changes.defer("before", "after").annotate(
        short_before=_value_or_placeholder("before"), short_after=_value_or_placeholder("after")
    )
    newest = list(changes.order_by("-id")[:limit])
    for change in newest:
        change.before, change.after = change.short_before, change.short_after
    return newest


def _value_or_placeholder(field: str) -> Case:
    """Return an expression for the value, or for `TOO_LONG_PLACEHOLDER` if it is too long.

    The stored size is available without reading the value. Since values may be compressed, the real
    size is checked as well, but only if the stored size is small.
    """
    stored = Func(F(field), function="pg_column_size", output_field=IntegerField())
    text = Cast(F(field), TextField())
    real = Func(text, function="octet_length", output_field=IntegerField())
    too_long = Value(TOO_LONG_PLACEHOLDER, output_field=JSONField())
    return Case(
        When(GreaterThan(stored, MAX_SHOWN_BYTES), then=too_long),
        When(GreaterThan(real, MAX_SHOWN_BYTES), then=too_long),
        default=F(field),
    )


def find_undoable_change(thread_id: str, *, with_values: bool = True) -> ThreadChange | None:
    """Return the newest edit that can be undone, or None.

    If `with_values` is False, the values are deferred: they are loaded on access.
    """
    edits = ThreadChange.objects.filter(thread_id=thread_id, kind__in=ThreadChange.UNDOABLE)
    if not with_values:
        edits = edits.defer("before", "after")
    return edits.filter(undone_at=None).order_by("-id").first()


def mark_undone(change: ThreadChange, by: Any) -> None:
    """Mark a change as undone and record the undo as a change of its own."""
    ThreadChange.objects.filter(pk=change.pk).update(undone_at=times.now())
    kind = ThreadChange.Kind.UNDO
    record_changes(
        by,
        ChangeInput(
            thread_id=change.thread_id,
            kind=kind,
            before=change.after,
            after=change.before,
            message_id=change.message_id,
        ),
    )


def count_related_rows(thread_ids: Sequence[str]) -> dict[str, int]:
    """Return how many rows of each model are deleted with the threads, by plural name."""
    counts: dict[str, int] = {str(Thread._meta.verbose_name_plural): len(thread_ids)}
    for relation in Thread._meta.related_objects:
        model = relation.related_model
        if relation.field.null and model._meta.model_name == "modelusage":
            continue  # usage records are kept without their thread
        rows = model._default_manager.filter(**{f"{relation.field.name}__in": thread_ids})
        if count := rows.count():
            counts[str(model._meta.verbose_name_plural)] = count
    return counts
