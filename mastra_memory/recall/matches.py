"""Semantic recall: find the messages that match a query."""

from collections.abc import Sequence

from mastra_memory.exceptions import InvalidInput, Issue
from mastra_memory.messages import tool_pairs
from mastra_memory.options import MemoryOptions, SemanticRecallOptions
from mastra_memory.recall import limits, window
from mastra_memory.search import engine
from mastra_memory.search.scope import SearchScope
from mastra_memory.search.types import Matches, SearchRequest, SearchType
from mastra_memory.types import Include, StoredMessage


def needs_search(options: MemoryOptions, query: str | None) -> bool:
    """Return whether a recall with this query searches for matches."""
    return options.semantic_recall is not None and bool(query and query.strip())


def spans_threads(options: MemoryOptions) -> bool:
    """Return whether matches come from all threads of a resource."""
    return options.semantic_recall is not None and options.semantic_recall.scope == "resource"


def find_matches(
    options: MemoryOptions, query: str, *, thread_id: str | None, resource_id: str | None
) -> Matches:
    """Return the `top_k` best matches in the thread, or in all threads of the resource.

    `limits.limit_matches` may lower `top_k`.

    Raises:
        InvalidInput: The id that the scope needs, `thread_id` or `resource_id`, is None.
        ProviderUnavailable, ProviderRefused, EmbedderMismatch: See `engine.find_matches`.
    """
    recall_options = limits.limit_matches(options.semantic_recall or SemanticRecallOptions())
    request = SearchRequest(
        query=query,
        scope=build_scope(recall_options, thread_id=thread_id, resource_id=resource_id),
        filter=recall_options.filter,
        threshold=recall_options.threshold,
        catch_up=not options.read_only,
        parse_operators=False,
        time=recall_options.time,
    )
    search_type: SearchType = "hybrid" if recall_options.mode == "hybrid" else "semantic"
    return engine.find_matches(request, search_type, limit=recall_options.top_k)


def read_windows(
    options: MemoryOptions,
    matches: Matches,
    *,
    resource_id: str,
    include: Sequence[Include] = (),
) -> list[StoredMessage]:
    """Read the matches and the messages of `include`, each with its neighbours.

    The option `message_range` is the number of neighbours of a match. If the windows contain only
    a tool call or only its result, the message with the other one is added.
    """
    recall_options = limits.limit_matches(options.semantic_recall or SemanticRecallOptions())
    windows = [
        *include,
        *(
            Include(id=m.id, before=recall_options.before, after=recall_options.after)
            for m in matches.scored
        ),
    ]
    messages = window.read_windows(windows, resource_id=resource_id)
    return tool_pairs.complete_tool_pairs(messages)


def build_scope(
    recall_options: SemanticRecallOptions, *, thread_id: str | None, resource_id: str | None
) -> SearchScope:
    """Return the scope of a recall. A thread of another resource has no matches.

    Raises:
        InvalidInput: The scope's id is None.
    """
    if recall_options.scope == "thread":
        if thread_id is None:
            raise _missing_scope_id("threadId", "thread")
        return SearchScope(thread_id=thread_id, resource_id=resource_id)
    if resource_id is None:
        raise _missing_scope_id("resourceId", "resource")
    return SearchScope(resource_id=resource_id)


def _missing_scope_id(field: str, scope: str) -> InvalidInput:
    reason = f"is required for semantic recall in the scope of a {scope}"
    return InvalidInput(f"{field} {reason}", [Issue(field, reason)])
