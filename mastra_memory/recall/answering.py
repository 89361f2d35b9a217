"""The answer to `Memory.search`: by words, by meaning, or as Mastra answers."""

from dataclasses import replace

from mastra_memory.exceptions import FeatureDisabled, InvalidInput, Issue
from mastra_memory.options import MemoryOptions
from mastra_memory.search import searching
from mastra_memory.search.scope import SearchScope
from mastra_memory.threads import get_thread
from mastra_memory.values import SearchHit, SearchResult

SEARCH_TYPES = ("semantic", "text", "hybrid")
MAX_LIMIT = 1_000


def search(
    options: MemoryOptions,
    query: str,
    *,
    resource_id: str,
    thread_id: str | None = None,
    limit: int = 20,
    search_type: str | None = None,
) -> SearchResult:
    """Search the resource, or the thread if one is named.

    With `search_type` the best come first, each with score, snippet and neighbours. Without it
    the answer is Mastra's: newest first, its keys only.
    Raises `InvalidInput`, `ThreadNotFound`, `AccessDenied`, and `FeatureDisabled` for a search by
    meaning through an agent without semantic recall.
    """
    _check(query, limit, search_type)
    if search_type in ("semantic", "hybrid"):
        raise FeatureDisabled("Semantic recall is not enabled for this agent")
    if thread_id is not None:
        get_thread(thread_id, resource_id=resource_id)
    scope = SearchScope(resource_id=resource_id, thread_id=thread_id)
    found = searching.search_words(query, scope, limit=min(limit, MAX_LIMIT))
    return SearchResult(
        results=found if search_type else _as_mastra(found),
        query=query,
        search_scope="thread" if thread_id is not None else "resource",
        search_type="text",
    )


def _check(query: str, limit: int, search_type: str | None) -> None:
    if not query:
        raise InvalidInput('Argument "searchQuery" is required', [Issue("searchQuery", "is empty")])
    if limit < 0:
        raise InvalidInput("limit must be at least 0", [Issue("limit", "must be at least 0")])
    if search_type is not None and search_type not in SEARCH_TYPES:
        reason = f"must be one of {', '.join(SEARCH_TYPES)}"
        raise InvalidInput(f"searchType {reason}", [Issue("searchType", reason)])


def _as_mastra(found: list[SearchHit]) -> list[SearchHit]:
    """Newest first, without what Mastra does not tell."""
    plain = [replace(hit, score=None, snippet=None) for hit in found]
    return sorted(plain, key=lambda hit: hit.created_at, reverse=True)
