"""Store, read and delete messages."""

import traceback
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from django.db import DatabaseError

from mastra_memory import conf
from mastra_memory.content import limits
from mastra_memory.db import identifiers, json_text, routing, sql
from mastra_memory.exceptions import (
    AccessDenied,
    ConcurrentUpdate,
    Conflict,
    InvalidInput,
    Issue,
    MastraMemoryError,
    ThreadNotFound,
)
from mastra_memory.messages import queries
from mastra_memory.messages.validation import ValidMessage, to_columns
from mastra_memory.models import Message, Thread
from mastra_memory.search import fields, tsvector
from mastra_memory.types import StoredMessage

INCOMPLETE_BATCH = "MM001"
"""The SQLSTATE of `mastra_memory_refuse()`: not every message of a batch could be stored, or
deleted."""
MAX_DELETE_ATTEMPTS = 4
"""How many times a delete is attempted if other transactions move the messages meanwhile."""


def save_messages(
    messages: Sequence[ValidMessage],
    *,
    embed_for: Sequence[str] = (),
    reopens_reviews: bool = False,
) -> list[StoredMessage]:
    """Insert or replace the messages, all or none, in one statement. See `save_and_extend`."""
    stored, _ = save_and_extend(
        messages, None, embed_for=embed_for, reopens_reviews=reopens_reviews
    )
    return stored


def save_and_extend(
    messages: Sequence[ValidMessage],
    extension: sql.Extension | None,
    *,
    embed_for: Sequence[str] = (),
    reopens_reviews: bool = False,
) -> tuple[list[StoredMessage], sql.SqlRow]:
    """Insert or replace the messages, all or none, in one statement.

    The threads are locked first, so that no other save can insert messages between those of the
    batch. A replaced message may move to another thread: then its old thread is locked too. A
    replaced message keeps its `created_at` and its position in the conversation.

    Args:
        messages: What `validation.validate_messages` returned.
        extension: Additional SQL for the same statement; not executed without messages.
        embed_for: Models for which vectors are requested, in a second statement.
        reopens_reviews: Whether a new message of a user sets resolved and waiting reviews to new.

    Returns:
        The stored messages, ordered by time and, within a millisecond, as in the batch; then the
        columns of the extension in the first row.

    Raises:
        ThreadNotFound: A thread does not exist.
        AccessDenied: A thread belongs to another resource.
        Conflict: An id belongs to a message of another resource.
    """
    if not messages:
        return [], ()
    # A single statement needs no transaction around it, which would cost two more.
    needs_transaction = bool(embed_for) or routing.get_connection().in_atomic_block
    try:
        with routing.atomic() if needs_transaction else nullcontext():
            rows = execute_store(messages, extension, reopens_reviews=reopens_reviews)
            request_vectors([message.id for message in messages], embed_for)
    except DatabaseError as error:
        if not is_incomplete_batch(error):
            raise
        # The error and psycopg's frames refer to each other, which would keep the batch in memory
        # until the next full garbage collection.
        traceback.clear_frames(error.__traceback__)
        if error.__cause__ is not None:
            traceback.clear_frames(error.__cause__.__traceback__)
        raise _explain_incomplete_batch(messages) from None
    by_id = {message.id: message for message in messages}
    stored = [
        _to_stored_message(by_id[message_id], created, sequence)
        for message_id, created, sequence, *_ in rows
    ]
    return sorted(stored, key=lambda message: message.sort_key), rows[0][4:]


def _to_stored_message(message: ValidMessage, created: str, sequence: int) -> StoredMessage:
    return StoredMessage(
        id=message.id,
        thread_id=message.thread_id,
        resource_id=message.resource_id,
        role=message.role,
        type=message.type,
        content_json=message.content_json,
        created=created,
        sequence=sequence,
        signal=message.signal,
    )


def execute_store(
    messages: Sequence[ValidMessage],
    extension: sql.Extension | None = None,
    *,
    reopens_reviews: bool = False,
) -> list[sql.SqlRow]:
    """Run the statement that stores a batch; return a row for each message.

    Its columns are the id, the time, the sequence, NULL, and those of the extension.

    It raises a `DatabaseError` with the SQLSTATE `INCOMPLETE_BATCH` if a message is not stored.
    """
    thread_ids = sql.TextArray({message.thread_id for message in messages})
    message_ids = sql.TextArray(message.id for message in messages)
    locks = [thread_ids, message_ids, thread_ids]
    language = conf.app_settings().SEARCH_LANGUAGE
    writes_words = len(messages) <= tsvector.MAX_MESSAGES_ON_SAVE
    reopens_reviews = reopens_reviews and any(message.role == "user" for message in messages)
    words = _split_words(messages) if writes_words else [sql.TextArray([""] * len(messages))] * 3
    columns = [*to_columns(messages), *words]
    statement, params = queries.STORE_MESSAGES, extension.params if extension else ()
    if extension:
        statement = queries.store_messages(extension.expressions, extension.columns)
    return sql.fetch_all_prepared(
        statement,
        [*locks, writes_words, language, *columns, reopens_reviews, *params, len(messages)],
    )


def _split_words(messages: Sequence[ValidMessage]) -> list[sql.TextArray]:
    """Return one array for each item of `MessageWords`."""
    split = [fields.split_message(message.text, message.content_json) for message in messages]
    return [sql.TextArray(column) for column in zip(*split, strict=True)]


def is_incomplete_batch(error: DatabaseError) -> bool:
    """Return whether the database refused a batch that it could not store completely."""
    return getattr(error.__cause__, "sqlstate", None) == INCOMPLETE_BATCH


def _explain_incomplete_batch(messages: Sequence[ValidMessage]) -> MastraMemoryError:
    """Return the error for the first message that cannot be stored."""
    thread_owners = _get_owners(Thread, [message.thread_id for message in messages])
    message_owners = _get_owners(Message, [message.id for message in messages])
    for message in messages:
        if message.thread_id not in thread_owners:
            return ThreadNotFound(f"Thread not found: {message.thread_id}")
        if thread_owners[message.thread_id] != message.resource_id:
            return AccessDenied()
        if message_owners.get(message.id, message.resource_id) != message.resource_id:
            return Conflict(
                f"messages.{message.position}: id {message.id} belongs to a message of another"
                " resource"
            )
    # All messages could be stored now, so another transaction has changed the rows and ended.
    return ConcurrentUpdate()


def _get_owners(model: type[Thread] | type[Message], ids: Sequence[str]) -> dict[str, str]:
    """Return the resource ids of the rows with these ids, by id."""
    manager = model._default_manager.using(routing.get_alias())
    return dict(manager.filter(pk__in=ids).values_list("pk", "resource_id"))


def request_vectors(message_ids: Sequence[str], models: Sequence[str]) -> None:
    """Request vectors of these models for messages that have none.

    If the text of a message has changed, a trigger has deleted its vectors.
    """
    if models:
        sql.execute(queries.REQUEST_VECTORS, [list(models), list(message_ids)])


def get_messages(
    message_ids: Iterable[str], *, resource_id: str | None = None
) -> list[StoredMessage]:
    """Return the messages with these ids, ordered by time. Unknown ids are left out.

    With `resource_id`, messages of other resources are left out too.
    """
    message_ids = list(message_ids)
    limits.check_count(message_ids, conf.app_settings().MAX_IDS, "messageIds")
    where = sql.Where()
    where.add("m.id = ANY(%s)", [json_text.clean_text(message_id) for message_id in message_ids])
    if resource_id is not None:
        where.add("m.resource_id = %s", resource_id)
    rows = sql.fetch_all(
        f"""SELECT {queries.MESSAGE_COLUMNS} FROM mastra_memory_message m WHERE {where}
        ORDER BY m.created_at, m.sequence""",
        where.params,
    )
    return [StoredMessage(*row) for row in rows]


def parse_message_ids(items: Sequence[str | Mapping[str, Any]]) -> list[str]:
    """Return the ids from a list of ids, or of objects with an `id`.

    Raises:
        InvalidInput: The value is not such a list, or it has more than `MAX_IDS` items.
    """
    if isinstance(items, str) or not isinstance(items, Sequence):
        raise InvalidInput("expected a list of message ids", [Issue("messageIds", "not a list")])
    limits.check_count(items, conf.app_settings().MAX_IDS, "messageIds")
    ids = [item.get("id") if isinstance(item, Mapping) else item for item in items]
    return [
        identifiers.check_id(message_id, f"messageIds.{index}")
        for index, message_id in enumerate(ids)
    ]


def delete_messages(message_ids: Iterable[str], *, resource_id: str | None = None) -> int:
    """Delete the messages, update the `updated_at` of their threads and return the count.

    With `resource_id`, messages of other resources are kept. Messages that other transactions move
    to another thread in the meantime are looked up again. A message that is moved during every
    attempt is kept.
    """
    where = sql.Where()
    where.add("id = ANY(%s)", [json_text.clean_text(message_id) for message_id in message_ids])
    if resource_id is not None:
        where.add("resource_id = %s", resource_id)
    for _ in range(MAX_DELETE_ATTEMPTS - 1):
        try:
            # Inside a transaction, an error must roll back only to a savepoint.
            in_transaction = routing.get_connection().in_atomic_block
            with routing.atomic() if in_transaction else nullcontext():
                return _delete_matching(where, may_skip=False)
        except DatabaseError as error:
            if not is_incomplete_batch(error):
                raise
    return _delete_matching(where, may_skip=True)


def _delete_matching(where: sql.Where, *, may_skip: bool) -> int:
    """Delete in one statement. Unless `may_skip`, it fails if a message was moved meanwhile."""
    params = [*where.params, *where.params, may_skip]
    row = sql.fetch_one(queries.delete_messages(where), params)
    return row[0] if row else 0
