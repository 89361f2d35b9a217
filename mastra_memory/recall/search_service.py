"""The answer to `Memory.search`: by words, by meaning, or as Mastra answers."""

from collections.abc import Sequence
from dataclasses import replace

from mastra_memory import threads
from mastra_memory.exceptions import FeatureDisabled, InvalidInput, Issue
from mastra_memory.options import MemoryOptions, SemanticRecall
from mastra_memory.recall import mastra_search
from mastra_memory.search import engine, hits
from mastra_memory.search.engine import Matches, SearchRequest, SearchType
from mastra_memory.search.scope import SearchScope
from mastra_memory.types import SearchHit, SearchResult

SEARCH_TYPES: Sequence[SearchType] = ("semantic", "text", "hybrid")
MAX_LIMIT = 1_000


def search(
    options: MemoryOptions,
    query: str,
    *,
    resource_id: str,
    thread_id: str | None = None,
    limit: int = 20,
    search_type: SearchType | None = None,
    own: MemoryOptions | None = None,
) -> SearchResult:
    """Search the resource, or the thread if one is named.

    With `search_type` the best come first, each with score, snippet and neighbours. Without it
    the answer is Mastra's: newest first, its keys only; by meaning where semantic recall is on
    (`own` are the agent's options before those of this call), else by words.
    Raises `InvalidInput`, `ThreadNotFound`, `AccessDenied`, and `FeatureDisabled` for a search by
    meaning through an agent without semantic recall.
    """
    _check_arguments(query, limit, search_type)
    limit = min(limit, MAX_LIMIT)
    if search_type is None and options.semantic_recall is not None:
        return mastra_search.search(
            options,
            own or options,
            query,
            resource_id=resource_id,
            thread_id=thread_id,
            limit=limit,
        )
    if search_type in ("semantic", "hybrid") and options.semantic_recall is None:
        raise FeatureDisabled("Semantic recall is not enabled for this agent")
    if thread_id is not None:
        threads.get_thread(thread_id, resource_id=resource_id)
    chosen = options.semantic_recall or SemanticRecall()
    wanted = SearchRequest(
        query=query,
        scope=SearchScope(resource_id=resource_id, thread_id=thread_id),
        filter=chosen.filter,
        threshold=chosen.threshold,
        catch_up=not options.read_only,
    )
    kind = search_type or "text"
    found = engine.find_matches(wanted, kind, limit=limit)
    return SearchResult(
        results=_build_hits(found, whole=search_type is not None),
        query=query,
        search_scope="thread" if thread_id is not None else "resource",
        search_type=kind,
        usage_tokens=found.usage_tokens,
    )


def _check_arguments(query: str, limit: int, search_type: str | None) -> None:
    if not query:
        raise InvalidInput('Argument "searchQuery" is required', [Issue("searchQuery", "is empty")])
    if limit < 0:
        raise InvalidInput("limit must be at least 0", [Issue("limit", "must be at least 0")])
    if search_type is not None and search_type not in SEARCH_TYPES:
        reason = f"must be one of {', '.join(SEARCH_TYPES)}"
        raise InvalidInput(f"searchType {reason}", [Issue("searchType", reason)])


def _build_hits(found: Matches, *, whole: bool) -> list[SearchHit]:
    """The found messages with their neighbours; `whole`: best first, with score and snippet."""
    scores = {scored.id: scored.score for scored in found.scored}
    read = hits.read_hits(list(scores))
    if not whole:
        return sorted(read, key=lambda hit: hit.created_at, reverse=True)
    return hits.add_snippets([replace(hit, score=scores[hit.id]) for hit in read], found.words)
