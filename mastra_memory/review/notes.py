"""Notes on threads and messages, and who is looking at a thread."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from mastra_memory.content.redaction import Mask, keep_text
from mastra_memory.db import json_text
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.exceptions import InvalidInput
from mastra_memory.models import Message, ReviewNote, ThreadChange, Visit
from mastra_memory.review import history
from mastra_memory.review.history import Change

LONGEST_NOTE = 20_000
PRESENT = timedelta(seconds=45)
"""Somebody is here if the page said so within this time."""


def list_notes(thread_id: str, *, mask: Mask = keep_text) -> list[ReviewNote]:
    """Oldest first, with their authors; masked ones are to be shown, not saved."""
    notes = ReviewNote.objects.filter(thread_id=thread_id).select_related("author")
    listed = list(notes.order_by("created_at", "pk"))
    for note in listed:
        note.text = mask(note.text)
    return listed


def count_after(thread_id: str, note_id: int) -> int:
    """How many notes were written since this one."""
    return ReviewNote.objects.filter(thread_id=thread_id, pk__gt=note_id).count()


@retry_conflicts
@transaction.atomic
def add_note(thread_id: str, text: str, *, by: Any, message_id: str | None = None) -> ReviewNote:
    """Write a note. Raises `InvalidInput` for an empty one or for a message of another thread."""
    text = json_text.clean_text(text).strip()
    if not text or len(text) > LONGEST_NOTE:
        raise InvalidInput(_("A note needs 1 to %d characters.") % LONGEST_NOTE)
    if message_id and not Message.objects.filter(pk=message_id, thread_id=thread_id).exists():
        raise InvalidInput(_("The message is not part of this conversation any more."))
    note = ReviewNote.objects.create(
        thread_id=thread_id, text=text, author=by, message_id=message_id or None
    )
    history.record(by, _change(note, after=text))
    return note


@retry_conflicts
@transaction.atomic
def delete_note(thread_id: str, note_id: int, *, by: Any) -> bool:
    """Delete a note of one's own; False when there is no such note."""
    note = ReviewNote.objects.filter(pk=note_id, thread_id=thread_id, author=by).first()
    if note is None:
        return False
    history.record(by, _change(note, before=note.text))
    note.delete()
    return True


def _change(note: ReviewNote, *, before: str | None = None, after: str | None = None) -> Change:
    return Change(
        thread_id=note.thread_id,
        kind=ThreadChange.Kind.NOTE,
        before=before,
        after=after,
        message_id=note.message_id,
    )


@retry_conflicts
def visit(thread_id: str, user: Any, *, read_up_to: datetime | None = None) -> None:
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


def read_up_to(thread_id: str, user: Any) -> datetime | None:
    """How far somebody has read; None for a thread they never opened."""
    visits = Visit.objects.filter(thread_id=thread_id, user=user)
    return visits.values_list("read_up_to", flat=True).first()


def others_here(thread_id: str, user: Any) -> Sequence[str]:
    """Names of the other people who have the thread open now."""
    since = timezone.now() - PRESENT
    visits = Visit.objects.filter(thread_id=thread_id, seen_at__gte=since).exclude(user=user)
    return [
        visit.user.get_full_name() or visit.user.get_username()
        for visit in visits.select_related("user").order_by("user")
    ]
