"""Messages: save, get, update, delete."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from django.db import DatabaseError

from mastra_memory import conf
from mastra_memory.content import limits, normalization
from mastra_memory.db import identifiers, json_text, locking, routing, sql
from mastra_memory.exceptions import (
    AccessDenied,
    ConcurrentUpdate,
    Conflict,
    InvalidInput,
    Issue,
    MastraMemoryError,
    ThreadNotFound,
)
from mastra_memory.messages.validation import (
    ValidMessage,
    to_columns,
    validate_message,
    validate_messages,
)
from mastra_memory.search import tsvector
from mastra_memory.types import StoredMessage

MESSAGE_COLUMNS = f"""m.id, m.thread_id, m.resource_id, m.role, m.type, m.content::text,
    {sql.format_time("m.created_at")} AS created, m.sequence, m.signal"""
"""What a `StoredMessage` is made of, in its order."""


def save_messages(
    drafts: Sequence[ValidMessage], *, embed_for: Sequence[str] = ()
) -> list[StoredMessage]:
    """Insert or replace the messages, all or none; one statement, whatever the number.

    A second one asks for vectors of the models `embed_for`, where the text has none of them yet.

    The threads are locked first, those that replaced messages come from too, so that a batch stays
    together. A replaced message keeps its first `created_at` and its place. Sorted by time, ties in
    the order given. Raises `ThreadNotFound`, `AccessDenied` for a thread of another resource, and
    `Conflict` for the id of another resource's message; then nothing is stored.
    """
    if not drafts:
        return []
    alone = not embed_for and not routing.get_connection().in_atomic_block
    try:
        with nullcontext() if alone else routing.atomic():
            saved = _store(drafts)
            _ask_for_vectors([draft.id for draft in drafts], embed_for)
    except DatabaseError as error:
        if not _is_refusal(error):
            raise
        raise _reason_of_refusal(drafts) from None
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
    return sorted(stored, key=lambda message: message.sort_key)


__all__ = [
    "MESSAGE_COLUMNS",
    "delete_messages",
    "validate_messages",
    "get_messages",
    "parse_message_ids",
    "save_messages",
    "update_messages",
]

INCOMPLETE_BATCH = "MM001"
"""The SQLSTATE with which the database takes back a batch that it could not store whole."""

# A message may come from another thread, which is locked with the others. One that was moved
# between the search for its thread and the lock is not stored, and the batch is run again.
# Sequences are drawn in the order given; rows are inserted in the order of their ids.
_STORE = f"""WITH locked AS MATERIALIZED (
    SELECT id FROM mastra_memory_thread
    WHERE id = ANY (ARRAY(SELECT unnest(%b::text[]) UNION
        SELECT thread_id FROM mastra_memory_message WHERE id = ANY(%b::text[])))
    ORDER BY id FOR NO KEY UPDATE),
touched AS (
    UPDATE mastra_memory_thread SET updated_at = {sql.NEXT_UPDATED_AT}
    WHERE id IN (SELECT id FROM locked) AND id = ANY(%b::text[])
    RETURNING id, resource_id, updated_at),
saved AS (
    INSERT INTO mastra_memory_message AS m (id, thread_id, resource_id, role, type, signal,
        content, text, search, created_at, sequence)
    SELECT n.id, n.thread_id, n.resource_id, n.role, n.type, n.signal, n.content::jsonb, n.text,
        CASE WHEN %s THEN mastra_memory_words(%s::regconfig, n.text) END,
        coalesce(nullif(n.created_at, '')::timestamptz, n.updated_at), n.sequence
    FROM (SELECT i.*, t.updated_at, nextval('mastra_memory_message_sequence') AS sequence
        FROM unnest(%b::text[], %b::text[], %b::text[], %b::text[], %b::text[], %b::text[],
            %b::text[], %b::text[], %b::text[]) WITH ORDINALITY
            AS i(id, thread_id, resource_id, role, type, signal, content, text, created_at, place)
        JOIN touched t ON t.id = i.thread_id AND t.resource_id = i.resource_id
        ORDER BY i.place) n
    ORDER BY n.id
    ON CONFLICT (id) DO UPDATE SET thread_id = excluded.thread_id, role = excluded.role,
        type = excluded.type, signal = excluded.signal, content = excluded.content,
        text = excluded.text, search = excluded.search
    WHERE m.resource_id = excluded.resource_id AND m.thread_id IN (SELECT id FROM locked)
    RETURNING m.id, {sql.format_time("m.created_at")} AS created, m.sequence)
SELECT s.id, s.created, s.sequence, CASE WHEN c.stored <> %s THEN mastra_memory_refuse() END
FROM (SELECT count(*) AS stored FROM saved) c LEFT JOIN saved s ON TRUE"""


def _store(drafts: Sequence[ValidMessage]) -> list[sql.SqlRow]:
    """Return id, time and sequence of each message; raise `INCOMPLETE_BATCH` if one is missing."""
    thread_ids = sql.TextArray({draft.thread_id for draft in drafts})
    language = conf.app_settings().SEARCH_LANGUAGE
    at_once = len(drafts) <= tsvector.MAX_MESSAGES_ON_SAVE
    columns = to_columns(drafts)
    message_ids = sql.TextArray(draft.id for draft in drafts)
    locks = [thread_ids, message_ids, thread_ids]
    stored = sql.fetch_all_prepared(_STORE, [*locks, at_once, language, *columns, len(drafts)])
    return [cells[:3] for cells in stored]


def _is_refusal(error: DatabaseError) -> bool:
    return getattr(error.__cause__, "sqlstate", None) == INCOMPLETE_BATCH


def _reason_of_refusal(drafts: Sequence[ValidMessage]) -> MastraMemoryError:
    """Why a batch could not be stored, told by what stands in the database."""
    statement = "SELECT id, resource_id FROM mastra_memory_{} WHERE id = ANY(%s)"
    threads: dict[str, str] = dict(
        sql.fetch_all(statement.format("thread"), [[draft.thread_id for draft in drafts]])
    )
    messages: dict[str, str] = dict(
        sql.fetch_all(statement.format("message"), [[draft.id for draft in drafts]])
    )
    for draft in drafts:
        if draft.thread_id not in threads:
            return ThreadNotFound(f"Thread not found: {draft.thread_id}")
        if threads[draft.thread_id] != draft.resource_id:
            return AccessDenied()
        if messages.get(draft.id, draft.resource_id) != draft.resource_id:
            return Conflict(
                f"messages.{draft.position}: id {draft.id} belongs to a message of another resource"
            )
    return ConcurrentUpdate()


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
            ORDER BY m.id, w.model ON CONFLICT (message_id, model) DO NOTHING""",
            [list(models), list(message_ids)],
        )


def get_messages(
    message_ids: Iterable[str], *, resource_id: str | None = None
) -> list[StoredMessage]:
    """The messages with these ids in the order of time; unknown ids are left out."""
    message_ids = list(message_ids)
    limits.check_count(message_ids, conf.app_settings().MAX_IDS, "messageIds")
    where = sql.Where()
    where.add("m.id = ANY(%s)", [json_text.clean_text(message_id) for message_id in message_ids])
    if resource_id is not None:
        where.add("m.resource_id = %s", resource_id)
    found = sql.fetch_all(
        f"""SELECT {MESSAGE_COLUMNS} FROM mastra_memory_message m WHERE {where}
        ORDER BY m.created_at, m.sequence""",
        where.params,
    )
    return [StoredMessage(*cells) for cells in found]


def update_messages(
    changes: Sequence[Mapping[str, Any]], *, embed_for: Sequence[str] = ()
) -> list[StoredMessage]:
    """Change messages by id: content shallowly merged, its metadata too, other fields replaced.

    Fields are `id`, `content`, `role`, `type`, `createdAt`. Unknown ids are skipped; the threads
    of the others get a new `updated_at`. Raises `InvalidInput` naming the index of a fault, and
    `ConcurrentUpdate` if messages are moved or deleted meanwhile; then nothing is changed.
    """
    limits.check_count(changes, conf.app_settings().MAX_MESSAGES_PER_SAVE, "messages")
    by_id = {identifiers.check_id(change.get("id"), "id"): change for change in changes}
    try:
        return _update(by_id, embed_for)
    except DatabaseError as error:
        if not _is_refusal(error):
            raise
        raise ConcurrentUpdate from error


def _update(
    by_id: Mapping[str, Mapping[str, Any]], embed_for: Sequence[str]
) -> list[StoredMessage]:
    places = {message_id: place for place, message_id in enumerate(by_id)}
    with routing.atomic():
        locked = locking.lock_threads(message.thread_id for message in get_messages(by_id))
        current = get_messages(by_id)  # again, now that nobody else can change them
        if not current:
            return []
        if any(message.thread_id not in locked for message in current):
            raise ConcurrentUpdate  # One was moved; to lock its thread now would break the order.
        drafts = [_changed(places[m.id], m, by_id[m.id]) for m in current]
        _store(drafts)
        _move(drafts)
        _ask_for_vectors([draft.id for draft in drafts], embed_for)
        return get_messages(by_id)


def _changed(index: int, message: StoredMessage, change: Mapping[str, Any]) -> ValidMessage:
    content = dict(message.content)
    given = change.get("content")
    if isinstance(given, Mapping):
        metadata = {**(content.get("metadata") or {}), **(given.get("metadata") or {})}
        content |= given
        if metadata:
            content["metadata"] = metadata
    elif given is not None:
        content = normalization.normalize_content(change)
    draft = validate_message(
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
    return draft._replace(created_at=draft.created_at or message.created_at)


def _move(drafts: Sequence[ValidMessage]) -> None:
    """Mark the edit, and set the time, which an upsert keeps."""
    sql.execute(
        """UPDATE mastra_memory_message m SET created_at = i.created_at,
            edited_at = clock_timestamp()
        FROM unnest(%s::text[], %s::timestamptz[]) AS i(id, created_at) WHERE m.id = i.id""",
        [[draft.id for draft in drafts], [draft.created_at for draft in drafts]],
    )


def parse_message_ids(given: Sequence[str | Mapping[str, Any]]) -> list[str]:
    """Ids from a list of ids or of objects with an `id`. Raises `InvalidInput` for others."""
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InvalidInput("expected a list of message ids", [Issue("messageIds", "not a list")])
    limits.check_count(given, conf.app_settings().MAX_IDS, "messageIds")
    found = [item.get("id") if isinstance(item, Mapping) else item for item in given]
    return [identifiers.check_id(known, f"messageIds.{index}") for index, known in enumerate(found)]


def delete_messages(message_ids: Iterable[str], *, resource_id: str | None = None) -> int:
    """Delete the messages and move their threads' `updated_at`. Returns how many there were.

    With `resource_id`, messages of other resources stay.
    """
    ids = [json_text.clean_text(message_id) for message_id in message_ids]
    theirs = sql.Where()
    theirs.add("id = ANY(%s)", ids)
    if resource_id is not None:
        theirs.add("resource_id = %s", resource_id)
    # Threads are locked before their messages, in the order of a save.
    found = sql.fetch_one(
        f"""WITH locked AS MATERIALIZED (
            SELECT id FROM mastra_memory_thread WHERE id = ANY (ARRAY(
                SELECT thread_id FROM mastra_memory_message WHERE {theirs}))
            ORDER BY id FOR NO KEY UPDATE),
        touched AS (UPDATE mastra_memory_thread SET updated_at = {sql.NEXT_UPDATED_AT}
            WHERE id IN (SELECT id FROM locked) RETURNING id),
        deleted AS (DELETE FROM mastra_memory_message
            WHERE {theirs} AND thread_id IN (SELECT id FROM touched) RETURNING id)
        SELECT count(*) FROM deleted""",
        [*theirs.params, *theirs.params],
    )
    return found[0] if found else 0
