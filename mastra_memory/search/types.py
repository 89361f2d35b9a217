"""Values that the modules of a search exchange."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from mastra_memory.options import TimeOptions
from mastra_memory.search.query import WordQuery
from mastra_memory.search.scope import SearchScope
from mastra_memory.types import TimeRange

SearchType = Literal["text", "semantic", "hybrid"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """What to search for, and where."""

    query: str
    scope: SearchScope
    filter: Mapping[str, Any] | None = None
    """Mastra's metadata filter; see `metadata_filters`."""
    threshold: float | None = None
    """The lowest similarity at which a vector counts as a match."""
    catch_up: bool = True
    """Whether to embed and index recently saved messages first, so that they are found."""
    parse_operators: bool = True
    """Whether `"phrases"` are required and `-words` excluded. False for text of a conversation."""
    time: TimeOptions | None = None
    """How to interpret `last week` in the query. None means not at all."""


class ScoredMessage(NamedTuple):
    """A candidate: a message's id, its position in time and its score."""

    id: str
    created: float
    """Seconds since 1970. The database driver reads a number faster than a datetime."""
    sequence: int
    score: float

    @property
    def rank(self) -> tuple[float, float, int]:
        """Sort key: the score, then the time, so that the newer of two equal matches wins."""
        return self.score, self.created, self.sequence


class Candidate(NamedTuple):
    """What the fusion of scores needs to know of a message."""

    id: str
    thread_id: str
    created: float
    sequence: int
    words: int
    """How many different words it has, without stop words."""
    is_question: bool


@dataclass(frozen=True, slots=True)
class Matches:
    """The result of a search, best first. `hits.read_hits` reads the messages."""

    scored: Sequence[ScoredMessage] = ()
    words: WordQuery | None = None
    """The parsed query, for snippets; None for a search by vectors alone."""
    usage_tokens: int = 0
    """Tokens that a provider charged for the query's vectors."""
    interpreted_time: Sequence[TimeRange] = ()
    """The ranges of time that the query names."""


@dataclass(frozen=True, slots=True)
class TermPlan:
    """The terms of a query that select candidates, and those that only rank them; see `bm25`."""

    query: WordQuery
    """The terms that are used for the score."""
    filter: str | None
    """A `tsquery` that every candidate matches."""
    preferred: str | None
    """A `tsquery`: candidates that match it come before newer ones that do not."""
    max_candidates: int
    min_document_frequencies: Sequence[float]
    """For each term, the estimated minimum of messages that contain it; 0 if unknown."""
    messages: int | None = None
    """Messages in the scope; None if the statement must count them."""
