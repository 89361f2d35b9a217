"""Messages: save, get, update, delete."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import transaction

from mastra_memory import conf, jsontext, keys, parts, sql, times
from mastra_memory.exceptions import (
    AccessDenied,
    Conflict,
    InvalidInput,
    Issue,
    ThreadNotFound,
)
from mastra_memory.models import Message
from mastra_memory.values import StoredMessage

COLUMNS = f"""m.id, m.thread_id, m.resource_id, m.role, m.type, m.content::text,
    {sql.instant("m.created_at")} AS created, m.sequence, m.signal"""
"""What a `StoredMessage` is made of, in its order."""


ROLES = tuple(Message.Role.values)


@dataclass(frozen=True, slots=True)
class Draft:
    """A message checked and ready to be stored."""

    index: int
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


def draft_messages(messages: Sequence[Any], *, strip: bool = True) -> list[Draft]:
    """Check a batch and bring it into the stored form.

    System messages, transient signals, and what is empty once working-memory traces are taken
    out (`strip`) are left out; of an id given twice the last one stays, in the first one's place.
    Raises `InvalidInput` naming the index and field of the first fault.
    """
    _check_owners(messages)
    drafts: dict[str, Draft] = {}
    for index, message in enumerate(messages):
        try:
            draft = _draft(index, message, strip)
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
            [Issue(f"messages.{index}", "needs threadId and resourceId") for index in faulty],
        )
    owners: dict[Any, Any] = {}
    for index, message in enumerate(messages):
        thread_id, resource_id = str(message["threadId"]), message["resourceId"]
        if owners.setdefault(thread_id, resource_id) != resource_id:
            raise InvalidInput(
                "All messages for the same threadId must use the same resourceId.",
                [Issue(f"messages.{index}.resourceId", "differs within the thread")],
            )


def _draft(index: int, message: Mapping[str, Any], strip: bool) -> Draft | None:
    role = message.get("role")
    if role == "system":
        return None
    if role not in ROLES:
        reason = f"must be one of {', '.join(ROLES)}"
        raise InvalidInput(f"role {reason}", [Issue("role", reason)])
    content: parts.Content | None = parts.normalise(message)
    if strip and content is not None:
        content = parts.without_working_memory(content)
    if content is None or not (content["parts"] or content.get("content")):
        return None
    if parts.is_transient(role, content):
        return None
    content_json = jsontext.dumps(content)
    return Draft(
        index=index,
        id=keys.check_id(message["id"], "id") if message.get("id") else str(uuid.uuid4()),
        thread_id=keys.check_id(message["threadId"], "threadId"),
        resource_id=keys.check_id(message["resourceId"], "resourceId"),
        role=role,
        type=_type_of(message),
        signal=parts.signal_type(role, content),
        content_json=content_json,
        text=jsontext.clean_text(parts.text_of(content)),
        created_at=_moment_of(message),
    )


def _type_of(message: Mapping[str, Any]) -> str:
    given = message.get("type") or "v2"
    if not isinstance(given, str):
        raise InvalidInput("type must be text", [Issue("type", "must be text")])
    return jsontext.clean_text(given)


def _moment_of(message: Mapping[str, Any]) -> datetime | None:
    given = message.get("createdAt")
    if given is None or given == "":
        return None
    try:
        return times.parse(given)
    except ValueError as error:
        reason = f"cannot be read: {error}"
        raise InvalidInput(f"createdAt {reason}", [Issue("createdAt", reason)]) from None


def save_messages(drafts: Sequence[Draft], *, embed_for: Sequence[str] = ()) -> list[StoredMessage]:
    """Insert or replace the messages in one transaction; two statements, whatever the number.

    A third one asks for vectors of the models `embed_for`, where the text has none of them yet.

    The threads are locked first, so that a batch stays together. A replaced message keeps its
    first `created_at` and its place. Sorted by time, ties in the order given.
    Raises `ThreadNotFound`, `AccessDenied` for a thread of another resource, and `Conflict` for
    the id of another resource's message; then nothing is stored.
    """
    if not drafts:
        return []
    with transaction.atomic():
        now = _touch_threads({draft.thread_id: draft.resource_id for draft in drafts})
        saved = _upsert(drafts, now)
        _ask_for_vectors([draft.id for draft in drafts], embed_for)
    by_id = {draft.id: draft for draft in drafts}
    stored = [
        StoredMessage(
            id=message_id,
            thread_id=(draft := by_id[message_id]).thread_id,
            resource_id=draft.resource_id,
            role=draft.role,
            type=draft.type,
            content_json=draft.content_json,
            created=created,
            sequence=sequence,
            signal=draft.signal,
        )
        for message_id, created, sequence in saved
    ]
    return sorted(stored, key=lambda message: message.place)


def _touch_threads(owners: Mapping[str, str]) -> datetime:
    """Lock the threads in the order of their ids, move their `updated_at`, return the latest."""
    touched = sql.rows(
        f"""UPDATE mastra_memory_thread SET updated_at = {sql.LATER}
        WHERE id IN (SELECT id FROM mastra_memory_thread WHERE id = ANY(%s)
            ORDER BY id FOR UPDATE)
        RETURNING id, resource_id, updated_at""",
        [list(owners)],
    )
    found = {thread_id: resource_id for thread_id, resource_id, _ in touched}
    for thread_id, resource_id in owners.items():
        if thread_id not in found:
            raise ThreadNotFound(f"Thread not found: {thread_id}")
        if found[thread_id] != resource_id:
            raise AccessDenied
    return max(moment for _, _, moment in touched)


def _upsert(drafts: Sequence[Draft], now: datetime) -> list[sql.Row]:
    saved = sql.rows(
        f"""INSERT INTO mastra_memory_message AS m (id, thread_id, resource_id, role, type, signal,
            content, text, search, created_at)
        SELECT i.id, i.thread_id, i.resource_id, i.role, i.type, i.signal, i.content, i.text,
            mastra_memory_words(%s::regconfig, i.text), coalesce(i.created_at, %s)
        FROM json_to_recordset(%s::json) AS i(place int, id text, thread_id text,
            resource_id text, role text, type text, signal text, content jsonb, text text,
            created_at timestamptz)
        ORDER BY i.place
        ON CONFLICT (id) DO UPDATE SET thread_id = excluded.thread_id, role = excluded.role,
            type = excluded.type, signal = excluded.signal, content = excluded.content,
            text = excluded.text, search = excluded.search
        WHERE m.resource_id = excluded.resource_id
        RETURNING id, {sql.instant("m.created_at")}, sequence""",
        [conf.app_settings().SEARCH_LANGUAGE, now, _as_one_document(drafts)],
    )
    if len(saved) < len(drafts):
        known = {message_id for message_id, _, _ in saved}
        foreign = next(draft for draft in drafts if draft.id not in known)
        raise Conflict(
            f"messages.{foreign.index}: the id {foreign.id} belongs to another resource's message"
        )
    return saved


def _ask_for_vectors(message_ids: Sequence[str], models: Sequence[str]) -> None:
    """Ask for the vectors of texts that have none; a text that has changed has lost its own."""
    if models:
        sql.execute(
            r"""INSERT INTO mastra_memory_embeddingrequest
                (message_id, thread_id, resource_id, model)
            SELECT m.id, m.thread_id, m.resource_id, w.model
            FROM mastra_memory_message m CROSS JOIN unnest(%s::text[]) AS w(model)
            WHERE m.id = ANY(%s) AND m.text ~ '\S' AND m.signal <> 'system-reminder'
                AND NOT EXISTS (SELECT 1 FROM mastra_memory_messageembedding e
                    WHERE e.message_id = m.id AND e.model = w.model)
            ON CONFLICT (message_id, model) DO NOTHING""",
            [list(models), list(message_ids)],
        )


def _as_one_document(drafts: Sequence[Draft]) -> str:
    """The batch as one JSON parameter: cheaper to send than an array for each column."""
    return jsontext.dumps(
        [
            {
                "place": place,
                "id": draft.id,
                "thread_id": draft.thread_id,
                "resource_id": draft.resource_id,
                "role": draft.role,
                "type": draft.type,
                "signal": draft.signal,
                "content": jsontext.fragment(draft.content_json),
                "text": draft.text,
                "created_at": draft.created_at,
            }
            for place, draft in enumerate(drafts)
        ]
    )


def get_messages(
    message_ids: Iterable[str], *, resource_id: str | None = None
) -> list[StoredMessage]:
    """The messages with these ids in the order of time; unknown ids are left out."""
    where = sql.Where()
    where.add("m.id = ANY(%s)", [jsontext.clean_text(message_id) for message_id in message_ids])
    if resource_id is not None:
        where.add("m.resource_id = %s", resource_id)
    found = sql.rows(
        f"""SELECT {COLUMNS} FROM mastra_memory_message m WHERE {where}
        ORDER BY m.created_at, m.sequence""",
        where.params,
    )
    return [StoredMessage(*cells) for cells in found]


def update_messages(
    changes: Sequence[Mapping[str, Any]], *, embed_for: Sequence[str] = ()
) -> list[StoredMessage]:
    """Change messages by id: content shallowly merged, its metadata too, other fields replaced.

    Fields are `id`, `content`, `role`, `type`, `createdAt`. Unknown ids are skipped; the threads
    of the others get a new `updated_at`. Raises `InvalidInput` naming the index of a fault.
    """
    by_id = {keys.check_id(change.get("id"), "id"): change for change in changes}
    places = {message_id: place for place, message_id in enumerate(by_id)}
    with transaction.atomic():
        owners = {message.thread_id: message.resource_id for message in get_messages(by_id)}
        if not owners:
            return []
        _touch_threads(owners)
        current = get_messages(by_id)  # again, now that nobody else can change them
        drafts = [_changed(places[m.id], m, by_id[m.id]) for m in current]
        _upsert(drafts, times.now())
        _move(drafts)
        _ask_for_vectors([draft.id for draft in drafts], embed_for)
        return get_messages(by_id)


def _changed(index: int, message: StoredMessage, change: Mapping[str, Any]) -> Draft:
    content = dict(message.content)
    given = change.get("content")
    if isinstance(given, Mapping):
        metadata = {**(content.get("metadata") or {}), **(given.get("metadata") or {})}
        content |= given
        if metadata:
            content["metadata"] = metadata
    elif given is not None:
        content = parts.normalise(change)
    draft = _draft(
        index,
        {
            "id": message.id,
            "threadId": message.thread_id,
            "resourceId": message.resource_id,
            "role": change.get("role", message.role),
            "type": change.get("type", message.type),
            "content": content,
            "createdAt": change.get("createdAt"),
        },
        strip=False,
    )
    if draft is None:
        raise InvalidInput(f"messages.{index}: an update may not empty a message")
    return replace(draft, created_at=draft.created_at or message.created_at)


def _move(drafts: Sequence[Draft]) -> None:
    """Mark the edit, and set the time, which an upsert keeps."""
    sql.execute(
        """UPDATE mastra_memory_message m SET created_at = i.created_at,
            edited_at = clock_timestamp()
        FROM unnest(%s::text[], %s::timestamptz[]) AS i(id, created_at) WHERE m.id = i.id""",
        [[draft.id for draft in drafts], [draft.created_at for draft in drafts]],
    )


def ids_of(given: Sequence[str | Mapping[str, Any]]) -> list[str]:
    """Ids from a list of ids or of objects with an `id`. Raises `InvalidInput` for others."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InvalidInput("expected a list of message ids", [Issue("messageIds", "not a list")])
    found = [item.get("id") if isinstance(item, Mapping) else item for item in given]
    for index, message_id in enumerate(found):
        keys.check_id(message_id, f"messageIds.{index}")
    return found


def delete_messages(message_ids: Iterable[str]) -> int:
    """Delete the messages and move their threads' `updated_at`. Returns how many there were."""
    ids = [jsontext.clean_text(message_id) for message_id in message_ids]
    # Threads are locked before their messages, as in a save: no deadlock between the two.
    found = sql.row(
        f"""WITH touched AS (UPDATE mastra_memory_thread SET updated_at = {sql.LATER}
            WHERE id IN (SELECT thread_id FROM mastra_memory_message WHERE id = ANY(%s))
            RETURNING id),
        deleted AS (DELETE FROM mastra_memory_message
            WHERE id = ANY(%s) AND thread_id IN (SELECT id FROM touched) RETURNING id)
        SELECT count(*) FROM deleted""",
        [ids, ids],
    )
    return found[0] if found else 0
