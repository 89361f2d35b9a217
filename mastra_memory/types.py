"""The plain values that the facade answers with: rows as they were read, JSON parsed on demand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar

from mastra_memory.db import json_text

ClonedMessage = TypeVar("ClonedMessage")


class StoredThread(NamedTuple):
    """One thread as it stands in the database."""

    id: str
    resource_id: str
    title: str
    metadata_json: str | None
    """JSON text of the metadata, thread-scoped working memory included; None when there is none."""
    created: str
    """When it was created, as the wire shows it: `2024-01-01T00:00:00.000Z`."""
    updated: str
    """When it was last active, in the same form."""

    @property
    def created_at(self) -> datetime:
        """When it was created."""
        return datetime.fromisoformat(self.created)

    @property
    def updated_at(self) -> datetime:
        """When it was last active."""
        return datetime.fromisoformat(self.updated)

    @property
    def metadata(self) -> dict[str, Any] | None:
        """The metadata, parsed anew at each access."""
        return None if self.metadata_json is None else json_text.loads(self.metadata_json)


class StoredMessage(NamedTuple):
    """One message as it stands in the database."""

    id: str
    thread_id: str
    resource_id: str
    role: str
    type: str
    content_json: str
    """JSON text of the content, never parsed on the way to a client."""
    created: str
    """When it was said, as the wire shows it: `2024-01-01T00:00:00.000Z`."""
    sequence: int
    """Breaks ties of `created_at`; grows in the order of saving."""
    signal: str = ""
    """The kind of signal or reminder the message is, `""` for an ordinary one."""

    @property
    def created_at(self) -> datetime:
        """When it was said."""
        return datetime.fromisoformat(self.created)

    @property
    def sort_key(self) -> tuple[str, int]:
        """What messages are ordered by: the time, then the sequence."""
        return self.created, self.sequence

    @property
    def content(self) -> dict[str, Any]:
        """The content, parsed anew at each access."""
        return json_text.loads(self.content_json)


@dataclass(frozen=True, slots=True)
class ThreadPage:
    """One page of a thread list."""

    threads: Sequence[StoredThread]
    total: int
    page: int
    per_page: int | bool
    """False when everything was asked for."""
    has_more: bool


@dataclass(frozen=True, slots=True)
class MessagePage:
    """One page of a message list, with what `include` or semantic recall added to it."""

    messages: Sequence[StoredMessage]
    total: int
    """Messages of the thread that match the filter, hidden ones counted, added ones not."""
    page: int
    per_page: int | bool
    has_more: bool
    usage_tokens: int = 0
    """Tokens spent on embedding the query."""


@dataclass(frozen=True, slots=True)
class SavedMessages:
    """What a save stored, sorted by time, ties in the order given."""

    messages: Sequence[StoredMessage]
    usage_tokens: int = 0


@dataclass(frozen=True, slots=True)
class CloneResult(Generic[ClonedMessage]):
    """A fresh clone. `messages` is empty for `copy_thread`, which does not read the bodies."""

    thread: StoredThread
    message_id_map: dict[str, str]
    """Id in the source to id in the clone, in the order of the conversation."""
    messages: list[ClonedMessage] = field(default_factory=list)
    """The copied messages, or what `shape` made of each."""


@dataclass(frozen=True, slots=True)
class ContextMessage:
    """A message beside a search hit."""

    id: str
    role: str
    text: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class SearchContext:
    """What was said around a search hit, in the order of time."""

    before: Sequence[ContextMessage] = ()
    after: Sequence[ContextMessage] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """A message that was found."""

    id: str
    thread_id: str
    resource_id: str
    role: str
    text: str
    created_at: datetime
    thread_title: str
    """The thread's id where it has no title."""
    context: SearchContext | None = None
    """None: not read (Mastra leaves it out for what lies outside its history)."""
    score: float | None = None
    """Only when a kind of search was asked for: better is higher, a similarity is 0 to 1."""
    snippet: str | None = None
    """Escaped HTML with `<mark>` around found words; only when a kind of search was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """What a search found."""

    results: Sequence[SearchHit]
    """Best first when a kind of search was asked for, else newest first."""
    query: str
    search_scope: str
    """`thread` or `resource`."""
    search_type: str
    """`semantic`, `text` or `hybrid`."""
    usage_tokens: int = 0
    """Tokens spent on embedding the query."""

    @property
    def count(self) -> int:
        """How many results there are."""
        return len(self.results)


@dataclass(frozen=True, slots=True)
class Revision:
    """What a working memory was from one change to the next."""

    version: int
    content: str
    source: str
    """Where the change came from: `api`, `agent`, `admin`, `clone`, `import`, `python`, …"""
    author_id: Any
    created: str
    """When, as the wire shows it."""
    author: str = ""
    """The name of the user who made the change, empty where it was no user."""


@dataclass(frozen=True, slots=True)
class RevisionPage:
    """One page of a working memory's revisions, newest first."""

    revisions: Sequence[Revision]
    total: int
    page: int
    per_page: int
    has_more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFilter:
    """Which messages of a thread are meant; all conditions must hold."""

    start: datetime | None = None
    end: datetime | None = None
    start_exclusive: bool = False
    end_exclusive: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Top-level keys of the content's metadata, equal in type and value."""
    roles: Sequence[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Include:
    """One message to bring along, with so many neighbours on each side."""

    id: str
    before: int = 0
    after: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageSelection:
    """Which messages a clone gets: all conditions must hold, then the newest `limit` stay."""

    limit: int | None = None
    """None, 0 and less mean no limit."""
    start: datetime | None = None
    end: datetime | None = None
    """Both inclusive."""
    message_ids: Sequence[str] = ()
    """Empty means any; ids of other threads are ignored."""
