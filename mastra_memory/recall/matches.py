"""Hits: the messages that mean, or say, what the next prompt is about."""

from collections.abc import Sequence
from dataclasses import dataclass

from mastra_memory.exceptions import InvalidInput, Issue
from mastra_memory.options import MemoryOptions, SemanticRecall
from mastra_memory.recall import limits
from mastra_memory.search import engine
from mastra_memory.search.engine import SearchRequest, SearchType
from mastra_memory.search.scope import SearchScope
from mastra_memory.search.types import ScoredMessage
from mastra_memory.types import Include


@dataclass(frozen=True, slots=True)
class Hits:
    """What was found, best first, with the windows to read around it."""

    scored: Sequence[ScoredMessage] = ()
    windows: Sequence[Include] = ()
    usage_tokens: int = 0


def needs_search(options: MemoryOptions, query: str | None) -> bool:
    """Whether a recall with this query looks for hits."""
    return options.semantic_recall is not None and bool(query and query.strip())


def spans_threads(options: MemoryOptions) -> bool:
    """Whether hits come from all threads of a resource."""
    return options.semantic_recall is not None and options.semantic_recall.scope == "resource"


def find_matches(
    options: MemoryOptions, query: str, *, thread_id: str | None, resource_id: str | None
) -> Hits:
    """The `top_k` best messages of the thread or of all the resource's threads; see `limits`.

    Raises `InvalidInput` when the scope's id is not known.
    """
    chosen = limits.limit_matches(options.semantic_recall or SemanticRecall())
    search = SearchRequest(
        query=query,
        scope=build_scope(chosen, thread_id=thread_id, resource_id=resource_id),
        filter=chosen.filter,
        threshold=chosen.threshold,
        catch_up=not options.read_only,
        parse_operators=False,
    )
    kind: SearchType = "hybrid" if chosen.mode == "hybrid" else "semantic"
    found = engine.find_matches(search, kind, limit=chosen.top_k)
    windows = [
        Include(id=scored.id, before=chosen.before, after=chosen.after) for scored in found.scored
    ]
    return Hits(found.scored, windows, found.usage_tokens)


def build_scope(
    chosen: SemanticRecall, *, thread_id: str | None, resource_id: str | None
) -> SearchScope:
    """The scope of a recall. A thread's hits are never another resource's."""
    if chosen.scope == "thread":
        if thread_id is None:
            raise _missing_scope_id("threadId", "thread")
        return SearchScope(thread_id=thread_id, resource_id=resource_id)
    if resource_id is None:
        raise _missing_scope_id("resourceId", "resource")
    return SearchScope(resource_id=resource_id)


def _missing_scope_id(field: str, scope: str) -> InvalidInput:
    reason = f"is needed for semantic recall of a {scope}"
    return InvalidInput(f"{field} {reason}", [Issue(field, reason)])
