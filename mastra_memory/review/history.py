"""What people changed in threads: written down once for us and once in Django's own log."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.contrib.contenttypes.models import ContentType
from django.db.models import Case, F, Func, IntegerField, JSONField, TextField, Value, When
from django.db.models.functions import Cast, Left
from django.db.models.lookups import GreaterThan
from django.utils import timezone

from mastra_memory.content import redaction
from mastra_memory.db import json_text
from mastra_memory.models import Thread, ThreadChange

MAX_LOGGED_CHARACTERS = 2000
"""Characters of each side of a change that Django's log keeps; our own history keeps all."""


MAX_SHOWN_BYTES = 50_000
"""Of each side of a change that a page shows."""
TOO_LONG_PLACEHOLDER = "…"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeInput:
    """One change to write down."""

    thread_id: str
    kind: str
    before: Any = None
    after: Any = None
    message_id: str | None = None


def record_changes(by: Any, *changes: ChangeInput) -> list[ThreadChange]:
    """Write changes down, in the transaction that makes them."""
    rows = ThreadChange.objects.bulk_create(
        ThreadChange(
            thread_id=change.thread_id,
            kind=change.kind,
            author=by,
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
    # Imported late: hosts may use the app without Django's admin.
    log_entry: Any = apps.get_model("admin", "LogEntry")
    kind_of_thread = ContentType.objects.get_for_model(Thread)
    titles = _get_masked_titles(change.thread_id for change in changes)
    log_entry.objects.bulk_create(
        log_entry(
            user_id=by.pk,
            content_type=kind_of_thread,
            object_id=change.thread_id,
            object_repr=titles.get(change.thread_id, change.thread_id)[:200],
            action_flag=2,  # CHANGE
            change_message=_format_log_message(change),
        )
        for change in changes
    )


def _get_masked_titles(thread_ids: Iterable[str]) -> dict[str, str]:
    beginning = Left("title", 200 + 2 * redaction.MAX_MATCH_CHARS)
    found = Thread.objects.filter(pk__in=set(thread_ids)).values_list("pk", beginning)
    mask = redaction.get_mask()  # Django shows these names to everybody
    return {pk: redaction.mask_beginning(title, mask, 200) or pk for pk, title in found}


def _format_log_message(change: ChangeInput) -> str:
    subject = f"{change.kind} {change.message_id}" if change.message_id else change.kind
    return f"{subject}: was {_truncate_json(change.before)}, is {_truncate_json(change.after)}"


def _truncate_json(value: Any) -> str:
    return json_text.dumps(value)[:MAX_LOGGED_CHARACTERS]


def log_deletion(by: Any, thread: Thread) -> None:
    """Say in Django's log that a thread is about to go, and what it was."""
    if not apps.is_installed("django.contrib.admin"):
        return
    log_entry: Any = apps.get_model("admin", "LogEntry")
    log_entry.objects.create(
        user_id=by.pk,
        content_type=ContentType.objects.get_for_model(Thread),
        object_id=thread.pk,
        object_repr=redaction.mask_beginning(str(thread), redaction.get_mask(), 200),
        action_flag=3,  # DELETION
        change_message=f"deleted: was {thread.messages.count()} messages of {thread.resource_id}",
    )


def list_changes(thread_id: str, *, limit: int = 50) -> list[ThreadChange]:
    """Return the newest changes first, with their authors.

    Values that are too long to be shown are not read: they are `TOO_LONG_PLACEHOLDER` instead.
    """
    changes: Any = ThreadChange.objects.filter(thread_id=thread_id).select_related("author")
    changes = changes.defer("before", "after").annotate(
        short_before=_value_or_placeholder("before"), short_after=_value_or_placeholder("after")
    )
    newest = list(changes.order_by("-id")[:limit])
    for change in newest:
        change.before, change.after = change.short_before, change.short_after
    return newest


def _value_or_placeholder(field: str) -> Case:
    """Return the value, or `TOO_LONG_PLACEHOLDER` in its place.

    PostgreSQL knows the stored size without reading the value. Compressed, it may be a hundredth
    of the real size, which is looked at only where the stored size is small.
    """
    stored = Func(F(field), function="pg_column_size", output_field=IntegerField())
    text = Cast(F(field), TextField())
    written = Func(text, function="octet_length", output_field=IntegerField())
    too_long = Value(TOO_LONG_PLACEHOLDER, output_field=JSONField())
    return Case(
        When(GreaterThan(stored, MAX_SHOWN_BYTES), then=too_long),
        When(GreaterThan(written, MAX_SHOWN_BYTES), then=too_long),
        default=F(field),
    )


def find_undoable_change(thread_id: str, *, with_values: bool = True) -> ThreadChange | None:
    """The newest edit, if nobody took it back and it can be taken back.

    Without `with_values`, what it changed is read only when it is asked for.
    """
    edits = ThreadChange.objects.filter(thread_id=thread_id, kind__in=ThreadChange.UNDOABLE)
    if not with_values:
        edits = edits.defer("before", "after")
    return edits.filter(undone_at=None).order_by("-id").first()


def mark_undone(change: ThreadChange, by: Any) -> None:
    """Note that a change was taken back."""
    ThreadChange.objects.filter(pk=change.pk).update(undone_at=timezone.now())
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
    """What hangs on these threads and goes with them, by the plural of its name."""
    kept: dict[str, int] = {str(Thread._meta.verbose_name_plural): len(thread_ids)}
    for relation in Thread._meta.related_objects:
        rows = relation.related_model._default_manager.filter(
            **{f"{relation.field.name}__in": thread_ids}
        )
        if relation.field.null and relation.related_model._meta.model_name == "modelusage":
            continue  # the numbers stay when their thread goes
        if count := rows.count():
            kept[str(relation.related_model._meta.verbose_name_plural)] = count
    return kept
