"""Change stored messages."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import DatabaseError

from mastra_memory import conf
from mastra_memory.content import limits, normalization
from mastra_memory.db import identifiers, locking, routing, sql
from mastra_memory.exceptions import ConcurrentUpdate, InvalidInput
from mastra_memory.messages import queries, storage
from mastra_memory.messages.validation import ValidMessage, validate_message
from mastra_memory.types import StoredMessage


def update_messages(
    changes: Sequence[Mapping[str, Any]], *, embed_for: Sequence[str] = ()
) -> list[StoredMessage]:
    """Change messages and return them, ordered by time.

    Args:
        changes: Objects with an `id` and the fields to change: `content`, `role`, `type`,
            `createdAt`. Content and its metadata are merged key by key, one level deep; other
            fields are replaced. Unknown ids are skipped.
        embed_for: Models for which vectors of changed texts are requested.

    Raises:
        InvalidInput: A change is invalid. The error names its index.
        ConcurrentUpdate: Messages were moved or deleted meanwhile. Nothing is changed.
    """
    limits.check_count(changes, conf.app_settings().MAX_MESSAGES_PER_SAVE, "messages")
    by_id = {identifiers.check_id(change.get("id"), "id"): change for change in changes}
    try:
        return _update(by_id, embed_for)
    except DatabaseError as error:
        if not storage.is_incomplete_batch(error):
            raise
        raise ConcurrentUpdate from error


def _update(
    by_id: Mapping[str, Mapping[str, Any]], embed_for: Sequence[str]
) -> list[StoredMessage]:
    positions = {message_id: position for position, message_id in enumerate(by_id)}
    with routing.atomic():
        messages = storage.get_messages(by_id)
        locked = locking.lock_threads(message.thread_id for message in messages)
        messages = storage.get_messages(by_id)  # Again: they may have changed before the lock.
        if not messages:
            return []
        if any(message.thread_id not in locked for message in messages):
            # A message was moved. Locking its thread now would break the order of locks.
            raise ConcurrentUpdate
        changed = [
            _apply_change(positions[message.id], message, by_id[message.id]) for message in messages
        ]
        storage.execute_store(changed)
        # The upsert keeps the time of a message, so a new time is set here.
        sql.execute(
            queries.MARK_EDITED,
            [[message.id for message in changed], [message.created_at for message in changed]],
        )
        storage.request_vectors([message.id for message in changed], embed_for)
        return storage.get_messages(by_id)


def _apply_change(position: int, message: StoredMessage, change: Mapping[str, Any]) -> ValidMessage:
    """Return the message with the change, checked like a new one."""
    valid_message = validate_message(
        position,
        {
            "id": message.id,
            "threadId": message.thread_id,
            "resourceId": message.resource_id,
            "role": change.get("role", message.role),
            "type": change.get("type", message.type),
            "content": _merge_content(message, change),
            "createdAt": change.get("createdAt"),
        },
        conf.app_settings(),
        strip_memory=False,
    )
    if valid_message is None:
        raise InvalidInput(f"messages.{position}: an update may not empty a message")
    return valid_message._replace(created_at=valid_message.created_at or message.created_at)


def _merge_content(message: StoredMessage, change: Mapping[str, Any]) -> Mapping[str, Any]:
    content = dict(message.content)
    new = change.get("content")
    if isinstance(new, Mapping):
        metadata = {**(content.get("metadata") or {}), **(new.get("metadata") or {})}
        content |= new
        if metadata:
            content["metadata"] = metadata
    elif new is not None:
        content = normalization.normalize_content(change)
    return content
