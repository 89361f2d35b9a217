"""The messages of a turn as a save takes them, with ids that are the same when it is repeated."""

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

MessageInput = str | Mapping[str, Any] | StoredMessage
"""A text, a message in any of Mastra's forms, or one as it was read."""
MessageRow = dict[str, Any]
"""A message as a save takes it."""

_GIVEN: Any = (str, Mapping, StoredMessage)
_NAMES = uuid.UUID("5f0c6d1e-6a35-4c1c-9d0c-5f6f4f5d5c1a")
MAX_ANSWER_MESSAGES = 100
"""Messages of one answer."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn as it was saved."""

    context: Context
    """What the model was shown, or would have been."""
    user: Sequence[StoredMessage]
    answer: Sequence[StoredMessage]
    repeated: bool = False
    """True when the answer was there already, and nobody was asked again."""
    name: str = ""
    """By what the ids of the answer are made."""


def build_rows(
    given: MessageInput | Iterable[MessageInput],
    *,
    thread_id: str,
    resource_id: str,
    role: str = "user",
    name: str | None = None,
    limit: int | None = None,
) -> list[MessageRow]:
    """Messages ready to be saved into a thread; a text is said by `role`.

    What has no id gets one: made from `name` and its place, so that the same turn has the same
    ids, or without a name a random one. Raises `InvalidInput` for one of another thread, and
    for more than `limit` messages, which is MAX_NEW_MESSAGES unless it is given.
    """
    if isinstance(given, str | Mapping | StoredMessage):
        given = [given]
    limit = conf.app_settings().MAX_NEW_MESSAGES if limit is None else limit
    given = list(islice(given, limit + 1))
    limits.check_count(given, limit, "messages")
    rows = []
    for index, one in enumerate(given):
        if not isinstance(one, _GIVEN):
            reason = "is neither text nor a message"
            raise InvalidInput(f"messages.{index} {reason}", [Issue(f"messages.{index}", reason)])
        row = build_row(one, thread_id, resource_id, role)
        if row["threadId"] != thread_id:
            reason = "is of another thread"
            raise InvalidInput(f"messages.{index} {reason}", [Issue(f"messages.{index}", reason)])
        row["id"] = row.get("id") or _id(thread_id, name, index)
        rows.append(row)
    return rows


def build_row(given: MessageInput, thread_id: str, resource_id: str, role: str) -> MessageRow:
    owner = {"threadId": thread_id, "resourceId": resource_id}
    if isinstance(given, str):
        return {"role": role, "content": given, **owner}
    if isinstance(given, StoredMessage):
        return {
            "id": given.id,
            "role": given.role,
            "type": given.type,
            "content": given.content,
            "createdAt": given.created,
            **owner,
        }
    return {**owner, **given}


def _id(thread_id: str, name: str | None, index: int) -> str:
    if name is None:
        return str(uuid.uuid4())
    return str(uuid.uuid5(_NAMES, json_text.clean_text(f"{thread_id}\n{name}\n{index}")))


def make_answer_key(user_ids: Sequence[str], turn_id: str | None) -> str:
    """By what the ids of an answer are made: the turn's id, or the last thing it answers."""
    return f"answer to {turn_id or (user_ids[-1] if user_ids else uuid.uuid4())}"


def preview_messages(rows: Sequence[MessageRow]) -> list[StoredMessage]:
    """The messages as a context shows them before they are stored."""
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


def find_answer(thread_id: str, name: str) -> list[StoredMessage]:
    """The answer of this name as it was stored; empty when there is none."""
    found = messages.get_messages(
        [_id(thread_id, name, index) for index in range(MAX_ANSWER_MESSAGES)]
    )
    return [message for message in found if message.thread_id == thread_id]
