"""The rows of working memory: find a text, store one, change one while nobody else can."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mastra_memory import conf
from mastra_memory.content import limits
from mastra_memory.db import json_text, routing, sql

METADATA_KEY = "workingMemory"
"""The key of a thread's metadata under which thread-scoped working memory is shown."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose text is meant: a thread's, or without one a resource's."""

    resource_id: str
    thread_id: str | None = None

    @property
    def scope(self) -> str:
        """`thread` or `resource`."""
        return "resource" if self.thread_id is None else "thread"

    @property
    def condition(self) -> sql.Where:
        """The row, as SQL on `w`."""
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
    """Working memory given as a key of the metadata, and the metadata without it.

    Text is taken out; null clears the working memory; anything else is ordinary metadata.
    """
    if metadata is None:
        return None, None
    kept = dict(metadata)
    given = kept.get(METADATA_KEY)
    if isinstance(given, str):
        return kept.pop(METADATA_KEY), kept
    return ("" if METADATA_KEY in kept and given is None else None), kept


def find_content(place: Owner) -> str | None:
    """The text, None when there is none."""
    where = place.condition
    found = sql.fetch_one(
        f"SELECT w.content FROM mastra_memory_workingmemory w WHERE {where} AND w.content <> ''",
        where.params,
    )
    return found[0] if found else None


def find_for_thread(thread_id: str) -> str | None:
    """The thread's text, None when there is none."""
    return find_content(Owner("", thread_id))


def find_for_resource(resource_id: str) -> str | None:
    """The resource's text, None when there is none."""
    return find_content(Owner(resource_id))


def save_for_thread(
    thread_id: str, resource_id: str, content: str, *, source: str, author_id: Any = None
) -> int:
    """Replace the thread's text and keep the old one as a revision. Returns the new version."""
    return _save_content(Owner(resource_id, thread_id), content, source, author_id)


def save_for_resource(resource_id: str, content: str, *, source: str, author_id: Any = None) -> int:
    """Replace the resource's text and keep the old one as a revision. Returns the new version."""
    return _save_content(Owner(resource_id), content, source, author_id)


def _save_content(place: Owner, content: str, source: str, author_id: Any) -> int:
    check_size(content)
    saved = sql.fetch_one(
        f"""WITH saved AS ({_build_upsert(place)}
                content = excluded.content, version = w.version + 1,
                updated_at = clock_timestamp()
            RETURNING id, version, content)
        INSERT INTO mastra_memory_workingmemoryrevision
            (working_memory_id, version, content, source, author_id)
        SELECT id, version, content, %s, %s FROM saved RETURNING version""",
        [*_build_row_values(place, content, version=1), source, author_id],
    )
    assert saved is not None
    return saved[0]


def check_size(content: str) -> None:
    """Raise `InvalidInput` for a text over `MAX_WORKING_MEMORY_BYTES`."""
    limits.check_size(content, conf.app_settings().MAX_WORKING_MEMORY_BYTES, METADATA_KEY)


def _build_upsert(place: Owner) -> str:
    target = "(thread_id) WHERE thread_id IS NOT NULL"
    if place.thread_id is None:
        target = "(resource_id) WHERE thread_id IS NULL"
    return f"""INSERT INTO mastra_memory_workingmemory AS w
        (scope, thread_id, resource_id, content, version) VALUES (%s, %s, %s, %s, %s)
        ON CONFLICT {target} DO UPDATE SET"""


def _build_row_values(place: Owner, content: str, version: int) -> list[Any]:
    owner = json_text.clean_text(place.resource_id)
    return [place.scope, place.thread_id, owner, json_text.clean_text(content), version]


def update_locked(
    place: Owner, decide: Callable[[str], str | None], *, source: str, author_id: Any = None
) -> int:
    """Store what `decide` makes of the text as it is now, and keep the old one as a revision.

    Nobody else can change the text meanwhile, so that nothing is lost however many do this at
    once. None from `decide` changes nothing. Returns the version that stands afterwards.
    """
    with routing.atomic():
        row_id, version, content = _lock_row(place)
        wanted = decide(content)
        if wanted is None:
            return version
        check_size(wanted)
        saved = sql.fetch_one(
            """WITH saved AS (UPDATE mastra_memory_workingmemory SET content = %s,
                version = version + 1, updated_at = clock_timestamp() WHERE id = %s
                RETURNING id, version, content)
            INSERT INTO mastra_memory_workingmemoryrevision
                (working_memory_id, version, content, source, author_id)
            SELECT id, version, content, %s, %s FROM saved RETURNING version""",
            [json_text.clean_text(wanted), row_id, source, author_id],
        )
    assert saved is not None
    return saved[0]


def _lock_row(place: Owner) -> tuple[int, int, str]:
    """The row's id, version and text, locked; an empty one of version 0 where there was none."""
    where = place.condition
    found = sql.fetch_one(
        f"""SELECT w.id, w.version, w.content FROM mastra_memory_workingmemory w
        WHERE {where} FOR UPDATE""",
        where.params,
    ) or sql.fetch_one(
        f"{_build_upsert(place)} version = w.version RETURNING id, version, content",
        _build_row_values(place, "", version=0),
    )
    assert found is not None
    return found[0], found[1], found[2]
