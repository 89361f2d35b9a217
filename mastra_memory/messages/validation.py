"""Check messages and bring them into the form in which they are stored.

`validate_messages` runs these steps for a batch:

1. Check that each message names its thread and the owner of the thread.
2. Convert the content of each message to format 2 (`content.normalization`).
3. Check its size.
4. Remove working-memory tags and tool calls.
5. Compute the columns that are used for searching and sorting.

Nothing is written to the database.
"""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from mastra_memory import conf
from mastra_memory.content import limits, message_text, normalization, signal_types
from mastra_memory.db import identifiers, json_text, sql, times
from mastra_memory.exceptions import InvalidInput, Issue
from mastra_memory.models import Message

ROLES = tuple(Message.Role.values)


class ValidMessage(NamedTuple):
    """A message that was checked and is ready to be stored."""

    position: int
    """Its index in the batch, for error messages."""
    id: str
    thread_id: str
    resource_id: str
    role: str
    type: str
    signal: str
    """The signal type; see `content.signal_types`."""
    content_json: str
    text: str
    """The plain text of the content, which is searched and embedded."""
    created_at: datetime | None
    """None means the time of saving."""


def validate_messages(messages: Sequence[Any], *, strip_memory: bool = True) -> list[ValidMessage]:
    """Check a batch and return the messages to store.

    System messages, transient signals and empty messages are left out. Of several messages with
    the same id the last one is stored, in the position of the first.

    Args:
        messages: Objects with Mastra's names: `id`, `threadId`, `resourceId`, `role`, `type`,
            `content`, `createdAt`.
        strip_memory: Remove tags and tool calls of working memory from the content first.

    Raises:
        InvalidInput: A message is invalid. The error names its index and field.
    """
    settings = conf.app_settings()
    limits.check_count(messages, settings.MAX_MESSAGES_PER_SAVE, "messages")
    _check_owners(messages)
    valid_messages: dict[str, ValidMessage] = {}
    for index, message in enumerate(messages):
        try:
            valid_message = validate_message(index, message, settings, strip_memory=strip_memory)
        except InvalidInput as error:
            issues = [Issue(f"messages.{index}.{i.field}", i.message) for i in error.issues]
            raise InvalidInput(f"messages.{index}: {error}", issues) from None
        if valid_message is not None:
            valid_messages[valid_message.id] = valid_message
    return list(valid_messages.values())


def _check_owners(messages: Sequence[Any]) -> None:
    """Raise `InvalidInput` unless every message names its thread and the thread's resource."""
    invalid = [
        index
        for index, message in enumerate(messages)
        if not isinstance(message, Mapping)
        or not message.get("threadId")
        or not message.get("resourceId")
    ]
    if invalid:
        # Mastra's wording: clients compare it.
        raise InvalidInput(
            "All messages must have threadId and resourceId fields. "
            f"Found {len(invalid)} invalid message(s).",
            (Issue(f"messages.{index}", "needs threadId and resourceId") for index in invalid),
        )
    owners: dict[Any, Any] = {}
    for index, message in enumerate(messages):
        thread_id, resource_id = str(message["threadId"]), message["resourceId"]
        if owners.setdefault(thread_id, resource_id) != resource_id:
            raise InvalidInput(
                "All messages for the same threadId must use the same resourceId.",
                [Issue(f"messages.{index}.resourceId", "differs within the thread")],
            )


def validate_message(
    position: int,
    message: Mapping[str, Any],
    settings: conf.AppSettings,
    *,
    strip_memory: bool,
) -> ValidMessage | None:
    """Check one message and return it, or None if it is not stored.

    Messages that are not stored are checked as well, so that an invalid field is never accepted.

    Raises:
        InvalidInput: A field is invalid. The error names it.
    """
    role = message.get("role")
    if role not in (*ROLES, "system"):
        reason = f"must be one of {', '.join(ROLES)}"
        raise InvalidInput(f"role {reason}", [Issue("role", reason)])
    content, content_json = _read_content(message, settings, strip_memory=strip_memory)
    created_at = _read_created_at(message)
    message_id = identifiers.check_id(message["id"], "id") if message.get("id") else None
    thread_id = identifiers.check_id(message["threadId"], "threadId")
    resource_id = identifiers.check_id(message["resourceId"], "resourceId")
    message_type = _read_type(message)
    is_empty = content is None or not (content["parts"] or content.get("content"))
    if content is None or is_empty or role == "system":
        return None
    if signal_types.is_transient_signal(role, content):
        return None
    signal = signal_types.get_signal_type(role, content)
    text = json_text.clean_text(message_text.get_text(content))
    return ValidMessage(
        position=position,
        id=message_id or str(uuid.uuid4()),
        thread_id=thread_id,
        resource_id=resource_id,
        role=role,
        type=message_type,
        signal=signal,
        content_json=content_json,
        text=text,
        created_at=created_at,
    )


def _read_content(
    message: Mapping[str, Any], settings: conf.AppSettings, *, strip_memory: bool
) -> tuple[normalization.Content | None, str]:
    """Return the content in format 2 and as JSON text; None if stripping left nothing."""
    content: normalization.Content | None = normalization.normalize_content(message)
    limits.check_parts(content or {}, settings.MAX_PARTS)
    content_json = json_text.dumps(content)
    limits.check_size(content_json, settings.MAX_MESSAGE_BYTES, "content")
    if content and strip_memory and normalization.may_contain_working_memory(content_json):
        content = normalization.strip_working_memory(content)
        content_json = json_text.dumps(content)
    return content, content_json


def _read_type(message: Mapping[str, Any]) -> str:
    """Return the type of the message.

    Like Mastra, keep a type other than `v2` only if `content` is an object.
    """
    message_type = message.get("type") or "v2"
    if message_type == "v2":
        return message_type
    if not isinstance(message_type, str):
        raise InvalidInput("type must be text", [Issue("type", "must be text")])
    limits.check_size(message_type, identifiers.MAX_ID_BYTES, "type")
    is_stored_form = isinstance(message.get("content"), Mapping)
    return json_text.clean_text(message_type) if is_stored_form else "v2"


def _read_created_at(message: Mapping[str, Any]) -> datetime | None:
    created_at = message.get("createdAt")
    if created_at is None or created_at == "":
        return None
    try:
        return times.parse_time(created_at)
    except ValueError as error:
        reason = f"cannot be read: {error}"
        raise InvalidInput(f"createdAt {reason}", [Issue("createdAt", reason)]) from None


def to_columns(messages: Sequence[ValidMessage]) -> list[sql.TextArray]:
    """Return one array for each field but the position, for `unnest`.

    A message without a time has an empty text. Arrays in the binary format are read by the
    database in half the time that one JSON document takes.
    """
    *columns, created_at = zip(*[message[1:] for message in messages], strict=True)
    times_as_text = [moment.isoformat() if moment else "" for moment in created_at]
    return [*map(sql.TextArray, columns), sql.TextArray(times_as_text)]
