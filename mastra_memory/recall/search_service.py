"""Implement `Memory.search`: ranked results, or results like those of Mastra."""

from collections.abc import Sequence
from dataclasses import replace

from mastra_memory import threads
from mastra_memory.exceptions import FeatureDisabled, InvalidInput, Issue
from mastra_memory.options import MemoryOptions, SemanticRecallOptions
from mastra_memory.recall import mastra_search
from mastra_memory.search import engine, hits
from mastra_memory.search.query import PROBLEMS
from mastra_memory.search.scope import SearchScope
from mastra_memory.search.types import Matches, SearchRequest, SearchType
from mastra_memory.types import SearchHit, SearchResult

SEARCH_TYPES: Sequence[SearchType] = ("semantic", "text", "hybrid")
MAX_LIMIT = 1_000
"""The largest number of results. A larger `limit` is reduced to it."""


def search(
    options: MemoryOptions,
    query: str,
    *,
    resource_id: str,
    thread_id: str | None = None,
    limit: int = 20,
    search_type: SearchType | None = None,
    agent_options: MemoryOptions | None = None,
) -> SearchResult:
    """Search the messages of a resource, or of one thread.

    With `search_type`, the best results come first, each with a score, a snippet and neighbours.
    Messages of a time that the query names, such as `last week`, are preferred.
    Without it, results are like Mastra's: newest first, without scores and snippets. The search is
    then semantic if semantic recall is on, and otherwise a search for words.

    Args:
        options: The options of the agent and of the call.
        query: Words or a sentence. Unless the search is semantic, it may have operators such as
            `"phrases"` and `-words`; see docs/search.md.
        resource_id: The owner of the threads.
        thread_id: Search only this thread.
        limit: How many results to return.
        search_type: `text`, `semantic` or `hybrid`.
        agent_options: The agent's own options, without those of the call.

    Raises:
        InvalidInput: The query is empty, or another argument is invalid.
        ThreadNotFound: The thread does not exist.
        AccessDenied: The thread belongs to another resource.
        FeatureDisabled: The search type needs semantic recall, which is off for the agent.
        ProviderUnavailable, ProviderRefused, EmbedderMismatch: See `engine.find_matches`.
    """
    _check_arguments(query, limit, search_type)
    limit = min(limit, MAX_LIMIT)
    if search_type is None and options.semantic_recall is not None:
        return mastra_search.search(
            options,
            agent_options or options,
            query,
            resource_id=resource_id,
            thread_id=thread_id,
            limit=limit,
        )
    if search_type in ("semantic", "hybrid") and options.semantic_recall is None:
        raise FeatureDisabled("Semantic recall is not enabled for this agent")
    if thread_id is not None:
        threads.get_thread(thread_id, resource_id=resource_id)
    recall_options = options.semantic_recall or SemanticRecallOptions()
    request = SearchRequest(
        query=query,
        scope=SearchScope(resource_id=resource_id, thread_id=thread_id),
        filter=recall_options.filter,
        threshold=recall_options.threshold,
        catch_up=not options.read_only,
        time=recall_options.time if search_type else None,
    )
    matches = engine.find_matches(request, search_type or "text", limit=limit)
    return SearchResult(
        results=_read_ranked_hits(matches) if search_type else _read_newest_hits(matches),
        query=query,
        search_scope="thread" if thread_id is not None else "resource",
        search_type=search_type or "text",
        usage_tokens=matches.usage_tokens,
        interpreted_time=matches.interpreted_time,
        notice=_build_notice(matches),
    )


def _check_arguments(query: str, limit: int, search_type: str | None) -> None:
    if not query:
        # Mastra's message, which clients may compare.
        raise InvalidInput('Argument "searchQuery" is required', [Issue("searchQuery", "is empty")])
    if limit < 0:
        raise InvalidInput("limit must be at least 0", [Issue("limit", "must be at least 0")])
    if search_type is not None and search_type not in SEARCH_TYPES:
        reason = f"must be one of {', '.join(SEARCH_TYPES)}"
        raise InvalidInput(f"searchType {reason}", [Issue("searchType", reason)])


def _build_notice(matches: Matches) -> str | None:
    if matches.words is None or not matches.words.problem:
        return None
    return f"The query {PROBLEMS[matches.words.problem]}."


def _read_ranked_hits(matches: Matches) -> list[SearchHit]:
    """Read the matches, best first, with scores and snippets."""
    scores = {match.id: match.score for match in matches.scored}
    found = [replace(hit, score=scores[hit.id]) for hit in hits.read_hits(list(scores))]
    return hits.add_snippets(found, matches.words)


def _read_newest_hits(matches: Matches) -> list[SearchHit]:
    """Read the matches, newest first, without scores and snippets."""
    found = hits.read_hits([match.id for match in matches.scored])
    return sorted(found, key=lambda hit: hit.created_at, reverse=True)
