"""Prepare the messages of a turn for saving. A repeated turn gets the same ids."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from mastra_memory import conf, messages
from mastra_memory.content import limits
from mastra_memory.context import Context
from mastra_memory.db import json_text, times
from mastra_memory.exceptions import InvalidInput, Issue
from mastra_memory.types import StoredMessage

MessageInput = str | Mapping[str, object] | StoredMessage
"""A text, a message in any of Mastra's formats, or a message that was read before."""
MessageRow = dict[str, Any]
"""A message as `Memory.save_messages` accepts it, with `id`, `threadId` and `resourceId`."""

MAX_ANSWER_MESSAGES = 100
"""`find_answer` looks for this many messages of one answer."""

_ID_NAMESPACE = uuid.UUID("5f0c6d1e-6a35-4c1c-9d0c-5f6f4f5d5c1a")


@dataclass(frozen=True, slots=True)
class Turn:
    """A saved turn."""

    context: Context
    """The context for the model, also if the model was not called."""
    user: Sequence[StoredMessage]
    """The user's messages as they were stored."""
    answer: Sequence[StoredMessage]
    """The answer as it was stored; empty if there is none."""
    repeated: bool = False
    """True if the answer was stored before, and the model was not called again."""
    answer_key: str = ""
    """The key from which the ids of the answer's messages are derived."""


def build_rows(
    inputs: MessageInput | Iterable[MessageInput],
    *,
    thread_id: str,
    resource_id: str,
    role: str = "user",
    key: str | None = None,
    limit: int | None = None,
) -> list[MessageRow]:
    """Return rows that can be saved into the thread.

    Args:
        inputs: One message or several.
        thread_id: The thread of the messages.
        resource_id: The owner of the thread.
        role: The role of plain texts.
        key: The ids of messages without an id are derived from this key and their index, so that a
            repeated turn has the same ids. None for random ids.
        limit: The largest number of messages; None for `MAX_NEW_MESSAGES`.

    Raises:
        InvalidInput: A message is of another type or thread, or there are too many.
    """
    if isinstance(inputs, str | Mapping | StoredMessage):
        inputs = [inputs]
    limit = conf.app_settings().MAX_NEW_MESSAGES if limit is None else limit
    inputs = list(islice(inputs, limit + 1))
    limits.check_count(inputs, limit, "messages")
    rows = []
    for index, message in enumerate(inputs):
        # Not `str | Mapping | StoredMessage`: mypy would call the next lines unreachable.
        if not isinstance(message, _INPUT_TYPES):
            raise _invalid(index, "must be text or a message")
        row = build_row(message, thread_id, resource_id, role)
        if row["threadId"] != thread_id:
            raise _invalid(index, "belongs to another thread")
        row["id"] = row.get("id") or _make_id(thread_id, key, index)
        rows.append(row)
    return rows


_INPUT_TYPES: Any = (str, Mapping, StoredMessage)


def _invalid(index: int, reason: str) -> InvalidInput:
    return InvalidInput(f"messages.{index} {reason}", [Issue(f"messages.{index}", reason)])


def build_row(message: MessageInput, thread_id: str, resource_id: str, role: str) -> MessageRow:
    """Return one row. The thread and resource in the message take precedence."""
    owner = {"threadId": thread_id, "resourceId": resource_id}
    if isinstance(message, str):
        return {"role": role, "content": message, **owner}
    if isinstance(message, StoredMessage):
        return {
            "id": message.id,
            "role": message.role,
            "type": message.type,
            "content": message.content,
            "createdAt": message.created,
            **owner,
        }
    return {**owner, **message}


def _make_id(thread_id: str, key: str | None, index: int) -> str:
    if key is None:
        return str(uuid.uuid4())
    return str(uuid.uuid5(_ID_NAMESPACE, json_text.clean_text(f"{thread_id}\n{key}\n{index}")))


def make_answer_key(user_ids: Sequence[str], turn_id: str | None) -> str:
    """Return the key of an answer, made from `turn_id` or from the last of the user's messages."""
    return f"answer to {turn_id or (user_ids[-1] if user_ids else uuid.uuid4())}"


def preview_messages(rows: Sequence[MessageRow]) -> list[StoredMessage]:
    """Validate rows, and return the messages as they would be stored."""
    now = times.now()
    return [
        StoredMessage(
            id=draft.id,
            thread_id=draft.thread_id,
            resource_id=draft.resource_id,
            role=draft.role,
            type=draft.type,
            content_json=draft.content_json,
            created=times.format_time(draft.created_at or now),
            sequence=draft.position,
            signal=draft.signal,
        )
        for draft in messages.validate_messages(rows)
    ]


def find_answer(thread_id: str, key: str) -> list[StoredMessage]:
    """Return the stored answer with this key; empty if there is none."""
    ids = [_make_id(thread_id, key, index) for index in range(MAX_ANSWER_MESSAGES)]
    return [message for message in messages.get_messages(ids) if message.thread_id == thread_id]
