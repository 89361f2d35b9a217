"""Types of the values that `Memory` accepts and returns. JSON is parsed on access."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from mastra_memory.db import json_text

ClonedMessage = TypeVar("ClonedMessage")


class StoredThread(NamedTuple):
    """A stored thread."""

    id: str
    resource_id: str
    title: str
    metadata_json: str | None
    """The metadata as JSON text, with the working memory of the thread; None if there is none."""
    created: str
    """When it was created, in the format of the API: `2024-01-01T00:00:00.000Z`."""
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
        """The metadata, parsed at each access."""
        return None if self.metadata_json is None else json_text.loads(self.metadata_json)


class StoredMessage(NamedTuple):
    """A stored message."""

    id: str
    thread_id: str
    resource_id: str
    role: str
    type: str
    content_json: str
    """The content as JSON text, which is passed on to clients unparsed."""
    created: str
    """The time of the message, in the format of the API: `2024-01-01T00:00:00.000Z`."""
    sequence: int
    """Orders messages with the same time, in the order of saving."""
    signal: str = ""
    """The signal type; see `content.signal_types`. Empty for an ordinary message."""

    @property
    def created_at(self) -> datetime:
        """The time of the message."""
        return datetime.fromisoformat(self.created)

    @property
    def sort_key(self) -> tuple[str, int]:
        """The key by which messages are ordered: time, then sequence."""
        return self.created, self.sequence

    @property
    def content(self) -> dict[str, Any]:
        """The content, parsed at each access."""
        content: dict[str, Any] = json_text.loads(self.content_json)
        return content


class AgentTool(Protocol):
    """A tool definition that any agent library can use."""

    @property
    def name(self) -> str:
        """The name of the tool."""

    @property
    def description(self) -> str:
        """What the model reads about the tool."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON schema of the arguments."""

    @property
    def handler(self) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
        """The function that answers a call. It raises no exception for wrong arguments."""


@dataclass(frozen=True, slots=True)
class ThreadPage:
    """A page of a thread list."""

    threads: Sequence[StoredThread]
    total: int
    page: int
    per_page: int | bool
    """False if all threads were requested."""
    has_more: bool


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A range of time that a query names, such as `last week`."""

    text: str
    """The words of the query."""
    start: datetime
    """The first instant, in UTC."""
    end: datetime
    """The first instant after the range, in UTC."""

    def contains(self, seconds: float) -> bool:
        """Return whether a time, in seconds since 1970, is in the range."""
        return self.start.timestamp() <= seconds < self.end.timestamp()


@dataclass(frozen=True, slots=True)
class MessagePage:
    """A page of a message list, with the messages that `include` or semantic recall added."""

    messages: Sequence[StoredMessage]
    total: int
    """The number of messages of the thread that match the filter. It includes hidden messages, but
    not those that `include` or semantic recall added."""
    page: int
    per_page: int | bool
    has_more: bool
    usage_tokens: int = 0
    """Tokens spent on embedding the query."""
    interpreted_time: Sequence[TimeRange] = ()
    """The ranges of time that the query of a recall names."""


@dataclass(frozen=True, slots=True)
class SavedMessages:
    """The messages that a save stored, ordered by time."""

    messages: Sequence[StoredMessage]
    usage_tokens: int = 0


@dataclass(frozen=True, slots=True)
class CloneResult(Generic[ClonedMessage]):
    """A new clone. `messages` is empty for `copy_thread`, which does not read the contents."""

    thread: StoredThread
    message_id_map: dict[str, str]
    """Id in the source to id in the clone, in the order of the conversation."""
    messages: list[ClonedMessage] = field(default_factory=list)
    """The copied messages, or what the `convert` argument of `clone_thread` returned for them."""


@dataclass(frozen=True, slots=True)
class ContextMessage:
    """A message next to a search hit."""

    id: str
    role: str
    text: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class SearchContext:
    """The messages before and after a search hit, ordered by time."""

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
    """The title of the thread, or its id if it has no title."""
    context: SearchContext | None = None
    """None if the neighbours were not read. A search without a `search_type` reads the neighbours
    of the newest messages only, as Mastra does."""
    score: float | None = None
    """The higher, the better; a similarity is 0 to 1. None if the search had no `search_type`."""
    snippet: str | None = None
    """Escaped HTML with `<mark>` around found words. None if the search had no `search_type`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """What a search found."""

    results: Sequence[SearchHit]
    """Best first, or newest first if the search had no `search_type`."""
    query: str
    search_scope: str
    """`thread` or `resource`."""
    search_type: str
    """`semantic`, `text` or `hybrid`."""
    usage_tokens: int = 0
    """Tokens spent on embedding the query."""
    interpreted_time: Sequence[TimeRange] = ()
    """The ranges of time that the query names. Messages of these times are preferred. Empty if the
    search had no `search_type`."""
    notice: str | None = None
    """Why the words of the query cannot find anything, for example because all are too common."""

    @property
    def count(self) -> int:
        """How many results there are."""
        return len(self.results)


@dataclass(frozen=True, slots=True)
class Revision:
    """The content of a working memory between two changes."""

    version: int
    content: str
    source: str
    """Where the change came from: `api`, `agent`, `admin`, `clone`, `import`, `python`, …"""
    author_id: Any
    created: str
    """When it was changed, in the format of the API."""
    author: str = ""
    """The name of the user who made the change; empty if it was not a user."""


@dataclass(frozen=True, slots=True)
class RevisionPage:
    """A page of the revisions of a working memory, newest first."""

    revisions: Sequence[Revision]
    total: int
    page: int
    per_page: int
    has_more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationPage:
    """A page of the generations of an observational record, newest first."""

    generations: Sequence[Any]
    """`ObservationalRecord` instances."""
    total: int
    page: int
    per_page: int
    has_more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFilter:
    """Conditions on messages of a thread; all of them must be true."""

    start: datetime | None = None
    end: datetime | None = None
    start_exclusive: bool = False
    end_exclusive: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Top-level keys of the content's metadata, equal in type and value."""
    roles: Sequence[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Include:
    """A message to add to a page, with a number of neighbours on each side."""

    id: str
    before: int = 0
    after: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageSelection:
    """The messages to clone: of those that meet all conditions, the newest `limit`.

    If these contain a tool result without its call, or a call without its result, the message with
    the other one is cloned too.
    """

    limit: int | None = None
    """None, 0 or a negative number means no limit."""
    start: datetime | None = None
    end: datetime | None = None
    """`start` and `end` are inclusive."""
    message_ids: Sequence[str] = ()
    """Empty means any; ids of other threads are ignored."""
