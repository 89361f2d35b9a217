"""Drafts: what a message must be before it is stored."""

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
    """A message checked and ready to be stored."""

    position: int
    """Its place in the batch as it was given."""
    id: str
    thread_id: str
    resource_id: str
    role: str
    type: str
    signal: str
    content_json: str
    text: str
    created_at: datetime | None
    """None: the moment of saving."""


def validate_messages(messages: Sequence[Any], *, strip: bool = True) -> list[ValidMessage]:
    """Check a batch and bring it into the stored form.

    System messages, transient signals, and what is empty once working-memory traces are taken
    out (`strip`) are left out; of an id given twice the last one stays, in the first one's place.
    Raises `InvalidInput` naming the index and field of the first fault.
    """
    limits.check_count(messages, conf.app_settings().MAX_MESSAGES_PER_SAVE, "messages")
    _check_owners(messages)
    drafts: dict[str, ValidMessage] = {}
    for index, message in enumerate(messages):
        try:
            draft = validate_message(index, message, strip=strip)
        except InvalidInput as error:
            issues = [Issue(f"messages.{index}.{i.field}", i.message) for i in error.issues]
            raise InvalidInput(f"messages.{index}: {error}", issues) from None
        if draft is not None:
            drafts[draft.id] = draft
    return list(drafts.values())


def _check_owners(messages: Sequence[Any]) -> None:
    faulty = [
        index
        for index, message in enumerate(messages)
        if not isinstance(message, Mapping)
        or not message.get("threadId")
        or not message.get("resourceId")
    ]
    if faulty:
        raise InvalidInput(
            "All messages must have threadId and resourceId fields. "
            f"Found {len(faulty)} invalid message(s).",
            (Issue(f"messages.{index}", "needs threadId and resourceId") for index in faulty),
        )
    owners: dict[Any, Any] = {}
    for index, message in enumerate(messages):
        thread_id, resource_id = str(message["threadId"]), message["resourceId"]
        if owners.setdefault(thread_id, resource_id) != resource_id:
            raise InvalidInput(
                "All messages for the same threadId must use the same resourceId.",
                [Issue(f"messages.{index}.resourceId", "differs within the thread")],
            )


def validate_message(index: int, message: Mapping[str, Any], *, strip: bool) -> ValidMessage | None:
    """One checked message, None for one that is not stored. Raises `InvalidInput`.

    `index` is its place in a batch; with `strip`, traces of working memory are taken out.
    """
    role = message.get("role")
    if role == "system":
        return None
    if role not in ROLES:
        reason = f"must be one of {', '.join(ROLES)}"
        raise InvalidInput(f"role {reason}", [Issue("role", reason)])
    whole = normalization.normalize_content(message)
    limits.check_parts(whole)
    content: normalization.Content | None = whole
    content_json = json_text.dumps(content)
    limits.check_size(content_json, conf.app_settings().MAX_MESSAGE_BYTES, "content")
    if content and strip and normalization.may_contain_working_memory(content_json):
        content = normalization.strip_working_memory(content)
        content_json = json_text.dumps(content)
    if content is None or not (content["parts"] or content.get("content")):
        return None
    if signal_types.is_transient_signal(role, content):
        return None
    return ValidMessage(
        position=index,
        id=identifiers.check_id(message["id"], "id") if message.get("id") else str(uuid.uuid4()),
        thread_id=identifiers.check_id(message["threadId"], "threadId"),
        resource_id=identifiers.check_id(message["resourceId"], "resourceId"),
        role=role,
        type=_type_of(message),
        signal=signal_types.get_signal_type(role, content),
        content_json=content_json,
        text=json_text.clean_text(message_text.get_text(content)),
        created_at=_moment_of(message),
    )


def _type_of(message: Mapping[str, Any]) -> str:
    """What the message calls itself, if its content came as it is stored; else the usual type."""
    given = message.get("type") or "v2"
    if given == "v2":
        return given
    if not isinstance(given, str):
        raise InvalidInput("type must be text", [Issue("type", "must be text")])
    limits.check_size(given, identifiers.MAX_ID_BYTES, "type")
    return json_text.clean_text(given) if isinstance(message.get("content"), Mapping) else "v2"


def _moment_of(message: Mapping[str, Any]) -> datetime | None:
    given = message.get("createdAt")
    if given is None or given == "":
        return None
    try:
        return times.parse_time(given)
    except ValueError as error:
        reason = f"cannot be read: {error}"
        raise InvalidInput(f"createdAt {reason}", [Issue("createdAt", reason)]) from None


def to_columns(drafts: Sequence[ValidMessage]) -> list[sql.TextArray]:
    """The batch as one list for each field but the place, in their order; `""` is no moment.

    Sent as arrays in the binary form: the database reads them in half the time of one document.
    """
    *texts, moments = zip(*[draft[1:] for draft in drafts], strict=True)
    told = [moment.isoformat() if moment else "" for moment in moments]
    return [*map(sql.TextArray, texts), sql.TextArray(told)]
