"""Notes on threads and on single messages."""

from typing import Any

from django.utils.translation import gettext as _

from mastra_memory.content.redaction import Mask, keep_text
from mastra_memory.db import json_text, locking, routing
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.db.users import get_usernames
from mastra_memory.exceptions import InvalidInput
from mastra_memory.models import Message, ReviewNote, ThreadChange
from mastra_memory.review import history
from mastra_memory.review.history import ChangeInput
from mastra_memory.search import tsvector

MAX_NOTE_CHARACTERS = 20_000


def list_notes(thread_id: str, *, mask: Mask = keep_text) -> list[ReviewNote]:
    """Return the notes on the thread and its messages with the names of authors, oldest first.

    Do not save the returned notes: their texts are masked.
    """
    notes = ReviewNote.objects.filter(thread_id=thread_id)
    ordered = list(notes.order_by("created_at", "pk"))
    names = get_usernames(note.author_id for note in ordered if note.author_id)
    for note in ordered:
        note.text = mask(note.text)
        note.author_name = names.get(note.author_id or "", "")
    return ordered


def count_notes_after(thread_id: str, note_id: int) -> int:
    """Return how many notes on the thread are newer than this one."""
    return ReviewNote.objects.filter(thread_id=thread_id, pk__gt=note_id).count()


@retry_conflicts
@routing.atomic
def add_note(thread_id: str, text: str, *, by: Any, message_id: str | None = None) -> ReviewNote:
    """Add a note to the thread, or to one of its messages.

    Raises:
        InvalidInput: The text is empty or too long, or the message is not in this thread.
        ThreadNotFound: The thread was deleted meanwhile.
    """
    locking.lock_thread(thread_id, "KEY SHARE")
    text = json_text.clean_text(text).strip()
    if not text or len(text) > MAX_NOTE_CHARACTERS:
        raise InvalidInput(_("A note needs 1 to %d characters.") % MAX_NOTE_CHARACTERS)
    if message_id and not Message.objects.filter(pk=message_id, thread_id=thread_id).exists():
        raise InvalidInput(_("The message is no longer part of this conversation."))
    note = ReviewNote.objects.create(
        thread_id=thread_id, text=text, author_id=by.pk, message_id=message_id or None
    )
    tsvector.write_note_words([note.pk])
    history.record_changes(by, _build_change(note, after=text))
    return note


@retry_conflicts
@routing.atomic
def delete_note(thread_id: str, note_id: int, *, by: Any) -> bool:
    """Delete a note of the user; return False if the user has no such note.

    Raises:
        ThreadNotFound: The thread was deleted meanwhile.
    """
    locking.lock_thread(thread_id, "KEY SHARE")
    note = ReviewNote.objects.filter(pk=note_id, thread_id=thread_id, author_id=by.pk).first()
    if note is None:
        return False
    history.record_changes(by, _build_change(note, before=note.text))
    note.delete()
    return True


def _build_change(
    note: ReviewNote, *, before: str | None = None, after: str | None = None
) -> ChangeInput:
    return ChangeInput(
        thread_id=note.thread_id,
        kind=ThreadChange.Kind.NOTE,
        before=before,
        after=after,
        message_id=note.message_id,
    )
