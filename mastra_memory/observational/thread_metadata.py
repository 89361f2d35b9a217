"""What the Observer writes into a thread: hints, extracted values, its cursor, and the title.

They are stored in the metadata under the key `mastra.om`, as Mastra does.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mastra_memory import conf
from mastra_memory.db import json_text, sql
from mastra_memory.models import Thread
from mastra_memory.observational import queries

MIN_TITLE_CHARACTERS = 3
MergeExtracted = Callable[[dict[str, Any]], dict[str, Any]]
"""Returns the Observer's metadata with newly extracted values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """What a model suggests for the next answer, besides its observations."""

    current_task: str | None = None
    suggested_response: str | None = None
    thread_title: str | None = None
    extracted: Mapping[str, Any] = field(default_factory=dict)
    """Values by the slugs of their extractors."""
    extraction_failures: Sequence[Mapping[str, Any]] = ()

    def to_chunk(self) -> dict[str, Any]:
        """Return the hints as they are stored in a chunk. Missing ones are left out."""
        values = {
            "currentTask": self.current_task,
            "suggestedContinuation": self.suggested_response,
            "threadTitle": self.thread_title,
            "extractedValues": dict(self.extracted),
            "extractionFailures": [dict(failure) for failure in self.extraction_failures],
        }
        return {name: value for name, value in values.items() if value}


@dataclass(frozen=True, slots=True)
class LockedThread:
    """The Observer's metadata and the title of a thread that is locked."""

    thread_id: str
    metadata: dict[str, Any]
    title: str
    may_set_title: bool
    """False if a person typed the title, or if it is pinned."""


def lock_thread(thread_id: str | None) -> LockedThread | None:
    """Lock a thread until the end of the transaction. Return None if it does not exist."""
    if thread_id is None:
        return None
    row = sql.fetch_one(queries.LOCK_OBSERVER_METADATA, [thread_id])
    if row is None:
        return None
    stored, title, source, pinned = row
    metadata = json_text.loads(stored) if stored else None
    return LockedThread(
        thread_id,
        metadata if isinstance(metadata, dict) else {},
        title,
        not pinned and source != Thread.TitleSource.MANUAL,
    )


def set_hints(metadata: dict[str, Any], hints: Hints, *, remove_missing: bool) -> dict[str, Any]:
    """Return the Observer's metadata with new hints.

    Args:
        metadata: The stored metadata.
        hints: The new hints.
        remove_missing: Remove the hints that are missing in the new ones; otherwise keep them.
    """
    values = {
        "currentTask": hints.current_task,
        "suggestedResponse": hints.suggested_response,
        "threadTitle": hints.thread_title,
    }
    merged = dict(metadata)
    for name, value in values.items():
        if value:
            merged[name] = value
        elif remove_missing:
            merged.pop(name, None)
    return merged


def save_metadata(thread: LockedThread, metadata: Mapping[str, Any]) -> None:
    """Store the Observer's metadata of a locked thread, if it has changed."""
    if metadata != thread.metadata:
        text = json_text.dumps(metadata)
        sql.execute(queries.SET_OBSERVER_METADATA, [text, thread.thread_id])


def apply_title(thread: LockedThread, title: str) -> tuple[str, str] | None:
    """Set the title that the Observer suggests. Return the old and the new one if it changes.

    Short titles are ignored, and a title that a person typed or pinned is kept.
    """
    title = json_text.clean_text(title.strip())[: conf.app_settings().MAX_TITLE_LENGTH]
    if not thread.may_set_title or len(title) < MIN_TITLE_CHARACTERS or title == thread.title:
        return None
    sql.execute(queries.SET_TITLE, [title, thread.thread_id])
    return thread.title, title
