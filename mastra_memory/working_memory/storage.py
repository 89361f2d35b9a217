"""Find, save and update the rows of working memory."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mastra_memory import conf
from mastra_memory.content import limits
from mastra_memory.db import json_text, routing, sql
from mastra_memory.db.users import get_user_id
from mastra_memory.exceptions import ThreadNotFound

METADATA_KEY = "workingMemory"
"""The key of a thread's metadata that holds thread-scoped working memory in the API."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The thread that a working memory belongs to, or the resource if `thread_id` is None."""

    resource_id: str
    thread_id: str | None = None

    @property
    def scope(self) -> str:
        """`thread` or `resource`."""
        return "resource" if self.thread_id is None else "thread"

    @property
    def condition(self) -> sql.Where:
        """Return the condition that selects the row, for a table with the alias `w`."""
        where = sql.Where()
        if self.thread_id is not None:
            where.add("w.thread_id = %s", json_text.clean_text(self.thread_id))
        else:
            where.add("w.resource_id = %s", json_text.clean_text(self.resource_id))
            where.add("w.thread_id IS NULL")
        return where


def pop_from_metadata(
    metadata: Mapping[str, Any] | None,
) -> tuple[str | None, dict[str, Any] | None]:
    """Return the working memory in a thread's metadata, and the metadata without it.

    A string is the new working memory. Null clears the working memory and is returned as an empty
    string. Any other value is ordinary metadata. If the metadata has no new working memory, None is
    returned for it.
    """
    if metadata is None:
        return None, None
    kept = dict(metadata)
    value = kept.get(METADATA_KEY)
    if isinstance(value, str):
        return kept.pop(METADATA_KEY), kept
    return ("" if METADATA_KEY in kept and value is None else None), kept


def find_content(owner: Owner) -> str | None:
    """Return the text of a working memory, or None if there is none."""
    where = owner.condition
    found = sql.fetch_one(
        f"SELECT w.content FROM mastra_memory_workingmemory w WHERE {where} AND w.content <> ''",
        where.params,
    )
    return found[0] if found else None


def find_for_thread(thread_id: str) -> str | None:
    """Return the thread's text, or None if there is none."""
    return find_content(Owner("", thread_id))


def find_for_resource(resource_id: str) -> str | None:
    """Return the resource's text, or None if there is none."""
    return find_content(Owner(resource_id))


def save_for_thread(
    thread_id: str, resource_id: str, content: str, *, source: str, author_id: Any = None
) -> int:
    """Replace the thread's text, add a revision, and return the new version."""
    return _save_content(Owner(resource_id, thread_id), content, source, author_id)


def save_for_resource(resource_id: str, content: str, *, source: str, author_id: Any = None) -> int:
    """Replace the resource's text, add a revision, and return the new version."""
    return _save_content(Owner(resource_id), content, source, author_id)


def _save_content(owner: Owner, content: str, source: str, author_id: Any) -> int:
    check_size(content)
    # The upsert and its revision in one statement: a save costs one round trip.
    saved = sql.fetch_one(
        f"""WITH saved AS ({_build_upsert(owner)}
                content = excluded.content, version = w.version + 1,
                updated_at = clock_timestamp()
            RETURNING id, version, content)
        INSERT INTO mastra_memory_workingmemoryrevision
            (working_memory_id, version, content, source, author_id)
        SELECT id, version, content, %s, %s FROM saved RETURNING version""",
        [*_build_row_values(owner, content, version=1), source, _as_text(author_id)],
    )
    if saved is None:
        raise ThreadNotFound
    version: int = saved[0]
    return version


def _as_text(author_id: Any) -> str | None:
    return None if author_id is None else get_user_id(author_id)


def check_size(content: str) -> None:
    """Raise `InvalidInput` for a text over `MAX_WORKING_MEMORY_BYTES`."""
    limits.check_size(content, conf.app_settings().MAX_WORKING_MEMORY_BYTES, METADATA_KEY)


def _build_upsert(owner: Owner) -> str:
    """Return the beginning of an upsert. It inserts nothing if the thread does not exist.

    A thread is locked by the same statement, so that it is neither deleted nor transferred before
    its working memory is inserted.
    """
    columns = "(content, version, scope, thread_id, resource_id)"
    if owner.thread_id is None:
        return f"""INSERT INTO mastra_memory_workingmemory AS w {columns}
            VALUES (%s, %s, 'resource', NULL, %s)
            ON CONFLICT (resource_id) WHERE thread_id IS NULL DO UPDATE SET"""
    return f"""INSERT INTO mastra_memory_workingmemory AS w {columns}
        SELECT %s, %s, 'thread', t.id, t.resource_id FROM mastra_memory_thread t
        WHERE t.id = %s FOR KEY SHARE
        ON CONFLICT (thread_id) WHERE thread_id IS NOT NULL DO UPDATE SET"""


def _build_row_values(owner: Owner, content: str, version: int) -> list[Any]:
    subject_id = owner.resource_id if owner.thread_id is None else owner.thread_id
    return [json_text.clean_text(content), version, json_text.clean_text(subject_id)]


def update_locked(
    owner: Owner, build_content: Callable[[str], str | None], *, source: str, author_id: Any = None
) -> int:
    """Replace the text with the result of `build_content`, and add a revision.

    `build_content` is called with the current text. The row is locked meanwhile, so concurrent
    updates are applied one after the other and none is lost. If it returns None, nothing changes.
    Return the version after the update.

    Raises:
        ThreadNotFound: The thread does not exist, or was deleted meanwhile.
    """
    with routing.atomic():
        row_id, version, content = _lock_row(owner)
        new_content = build_content(content)
        if new_content is None:
            return version
        check_size(new_content)
        saved = sql.fetch_one(
            """WITH saved AS (UPDATE mastra_memory_workingmemory SET content = %s,
                version = version + 1, updated_at = clock_timestamp() WHERE id = %s
                RETURNING id, version, content)
            INSERT INTO mastra_memory_workingmemoryrevision
                (working_memory_id, version, content, source, author_id)
            SELECT id, version, content, %s, %s FROM saved RETURNING version""",
            [json_text.clean_text(new_content), row_id, source, _as_text(author_id)],
        )
    assert saved is not None
    new_version: int = saved[0]
    return new_version


def _lock_row(owner: Owner) -> tuple[int, int, str]:
    """Lock the row, inserting an empty one if needed, and return its id, version and text."""
    where = owner.condition
    found = sql.fetch_one(
        f"""SELECT w.id, w.version, w.content FROM mastra_memory_workingmemory w
        WHERE {where} FOR UPDATE""",
        where.params,
    ) or sql.fetch_one(
        f"{_build_upsert(owner)} version = w.version RETURNING id, version, content",
        _build_row_values(owner, "", version=0),
    )
    if found is None:
        raise ThreadNotFound
    return found[0], found[1], found[2]
