"""Edit conversations through `Memory`, and record each change in the history."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from mastra_memory.content import message_text, normalization
from mastra_memory.db import json_text, routing, times
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.exceptions import InvalidInput, InvalidJson, StaleData, ThreadNotFound
from mastra_memory.memory import Memory
from mastra_memory.models import Message, MessageEmbedding, Thread, ThreadChange
from mastra_memory.review import conversation_pages, history
from mastra_memory.review.history import ChangeInput

ChangeKind = ThreadChange.Kind


def fingerprint(value: Any) -> str:
    """Return a short hash of a JSON value.

    Forms send it back, so that a change by another user in the meantime is detected.
    """
    return hashlib.sha256(json_text.dumps(value).encode()).hexdigest()[:24]


def _lock_thread(thread_id: str) -> Thread:
    thread = Thread.objects.select_for_update().filter(pk=thread_id).first()
    if thread is None:
        raise ThreadNotFound(_("This conversation was deleted in the meantime."))
    return thread


def _check_unchanged(value: Any, was: str) -> None:
    if fingerprint(value) != was:
        raise StaleData(_("Another user changed this while you were editing. Nothing was saved."))


@retry_conflicts
@routing.atomic
def change_title(thread_id: str, title: str, *, was: str, by: Any) -> None:
    """Change the title. Raises `StaleData` unless the title has the fingerprint `was`."""
    old = _lock_thread(thread_id).title
    _check_unchanged(old, was)
    title = " ".join(json_text.clean_text(title).split())
    if title != old:
        Memory().update_thread(thread_id, title=title)
        history.record_changes(
            by, ChangeInput(thread_id=thread_id, kind=ChangeKind.TITLE, before=old, after=title)
        )


@retry_conflicts
@routing.atomic
def change_metadata(thread_id: str, metadata: Mapping[str, Any], *, was: str, by: Any) -> None:
    """Replace the metadata. Raises `StaleData` unless it has the fingerprint `was`."""
    old = _lock_thread(thread_id).metadata
    _check_unchanged(old, was)
    if metadata != old:
        Memory().update_thread(thread_id, metadata=metadata, replace_metadata=True)
        after = Thread.objects.get(pk=thread_id).metadata  # reserved keys stay
        kind = ChangeKind.METADATA
        history.record_changes(
            by, ChangeInput(thread_id=thread_id, kind=kind, before=old, after=after)
        )


def parse_metadata(text: str) -> dict[str, Any]:
    """Parse a JSON object. Raises `InvalidInput` with line and column of the error."""
    try:
        value = json_text.loads(text or "{}")
    except InvalidJson as error:
        place = {"line": error.line, "column": error.column, "fault": error.reason}
        raise InvalidInput(_("Line %(line)d, column %(column)d: %(fault)s") % place) from None
    except InvalidInput:
        raise InvalidInput(_("This JSON is too large or too deep.")) from None
    if not isinstance(value, dict):
        raise InvalidInput(_("Metadata must be an object: { … }"))
    return value


@retry_conflicts
@routing.atomic
def change_text(message: Message, text: str, *, was: str, by: Any) -> None:
    """Replace the text of a message. Its tool calls, files and reasoning are kept.

    Raises:
        StaleData: The content does not have the fingerprint `was`, or the message was deleted.
        InvalidInput: The text is empty and the message has no other content.
    """
    _lock_thread(message.thread_id)
    current = Message.objects.filter(pk=message.pk, thread_id=message.thread_id).first()
    if current is None:
        raise StaleData(_("The message was deleted in the meantime."))
    _check_unchanged(current.content, was)
    if text == message_text.get_editable_text(current.content):
        return
    content = message_text.replace_text(current.content, json_text.clean_text(text))
    _get_memory(message.thread_id).update_messages([{"id": message.pk, "content": content}])
    changed = Message.objects.get(pk=message.pk)
    history.record_changes(
        by,
        ChangeInput(
            thread_id=message.thread_id,
            kind=ChangeKind.MESSAGE,
            message_id=message.pk,
            before=current.content,
            after=changed.content,
        ),
    )


@retry_conflicts
@routing.atomic
def delete_messages(thread_id: str, message_ids: Sequence[str], *, by: Any) -> int:
    """Delete messages of this thread and return how many were deleted."""
    _lock_thread(thread_id)
    messages = Message.objects.filter(thread_id=thread_id, pk__in=message_ids)
    deleted = [_message_as_dict(message) for message in messages.order_by("created_at", "sequence")]
    if deleted:
        Memory().delete_messages([message["id"] for message in deleted])
        kind, first = ChangeKind.MESSAGES_DELETED, deleted[0]["id"] if len(deleted) == 1 else None
        change = ChangeInput(thread_id=thread_id, kind=kind, before=deleted, message_id=first)
        history.record_changes(by, change)
    return len(deleted)


def _message_as_dict(message: Message) -> dict[str, Any]:
    """Return the fields that are needed to save the message again."""
    return {
        "id": message.pk,
        "role": message.role,
        "type": message.type,
        "content": message.content,
        "createdAt": times.format_time(message.created_at),
    }


@retry_conflicts
@routing.atomic
def undo_last_change(thread_id: str, *, by: Any) -> ThreadChange | None:
    """Undo the newest edit and return it, or None if there is nothing to undo.

    Raises:
        StaleData: The edited value was changed again later.
    """
    thread = _lock_thread(thread_id)
    change = history.find_undoable_change(thread_id)
    if change is None:
        return None
    match change.kind:
        case ChangeKind.TITLE:
            _check_unchanged(thread.title, fingerprint(change.after))
            Memory().update_thread(thread_id, title=change.before)
        case ChangeKind.METADATA:
            _check_unchanged(thread.metadata, fingerprint(change.after))
            before = change.before or {}
            Memory().update_thread(thread_id, metadata=before, replace_metadata=True)
        case ChangeKind.MESSAGE:
            _restore_message(thread, change)
        case ChangeKind.MESSAGES_DELETED:
            _restore_deleted_messages(thread, change.before or [])
    history.mark_undone(change, by)
    return change


def _restore_message(thread: Thread, change: ThreadChange) -> None:
    message = Message.objects.filter(pk=change.message_id, thread=thread).first()
    if message is None:
        raise StaleData(_("The message was deleted in the meantime."))
    _check_unchanged(message.content, fingerprint(change.after))
    _get_memory(thread.pk).update_messages([{"id": message.pk, "content": change.before}])


def _restore_deleted_messages(thread: Thread, messages: Sequence[Mapping[str, Any]]) -> None:
    """Save deleted messages again.

    `save_messages` removes working memory tags from the text. Messages with such tags are
    therefore stored as they were, with `persist_messages`, which does not embed them.
    """
    owner = {"threadId": thread.pk, "resourceId": thread.resource_id}
    plain = [
        m for m in messages if normalization.strip_working_memory(m["content"]) == m["content"]
    ]
    with_tags = [message for message in messages if message not in plain]
    memory = _get_memory(thread.pk)
    memory.save_messages([{**message, **owner} for message in plain])
    memory.persist_messages([{**message, **owner} for message in with_tags])


def _get_memory(thread_id: str) -> Memory:
    """Return a `Memory` that embeds changed messages if the thread has embeddings."""
    embedded = MessageEmbedding.objects.filter(thread_id=thread_id).exists()
    return Memory(options={"semanticRecall": True} if embedded else None)


@retry_conflicts
@routing.atomic
def clone_thread(thread: Thread, *, by: Any, up_to: Message | None = None, title: str = "") -> str:
    """Copy the thread, or its messages up to `up_to`, and return the id of the copy."""
    choices: dict[str, Any] = {"title": title}
    if up_to is not None:
        choices["selection"] = conversation_pages.select_messages_up_to(up_to)
    made = Memory().copy_thread(thread.pk, **choices).thread
    history.record_changes(
        by,
        ChangeInput(
            thread_id=thread.pk,
            kind=ChangeKind.CLONE,
            after=made.id,
            message_id=up_to.pk if up_to else None,
        ),
        ChangeInput(thread_id=made.id, kind=ChangeKind.CLONE, before=thread.pk, after=made.id),
    )
    return made.id


@retry_conflicts
@routing.atomic
def transfer_thread(thread: Thread, resource_id: str, *, by: Any) -> None:
    """Move the thread to another resource."""
    old = _lock_thread(thread.pk).resource_id
    new = Memory().transfer_thread(thread.pk, resource_id.strip()).resource_id
    if new != old:
        kind = ChangeKind.TRANSFER
        history.record_changes(
            by, ChangeInput(thread_id=thread.pk, kind=kind, before=old, after=new)
        )


@retry_conflicts
@routing.atomic
def delete_thread(thread: Thread, *, by: Any) -> None:
    """Delete a thread with all related rows, and record it in Django's admin log."""
    history.log_deletion(by, thread)
    Memory().delete_thread(thread.pk)
