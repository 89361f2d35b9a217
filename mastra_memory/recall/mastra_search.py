"""Return the same messages for a semantic search as Mastra.

Mastra's search is a recall: it returns the matches together with the newest messages of the thread,
newest first, without scores. Clients for Mastra rely on this. With `searchType`, results are ranked
instead; see `search_service`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mastra_memory import threads
from mastra_memory.content import message_text
from mastra_memory.exceptions import ThreadNotFound
from mastra_memory.models import Thread
from mastra_memory.options import MemoryOptions, SemanticRecallOptions
from mastra_memory.recall import limits, queries, selection
from mastra_memory.search.hits import DEFAULT_CONTEXT
from mastra_memory.types import (
    ContextMessage,
    MessagePage,
    SearchContext,
    SearchHit,
    SearchResult,
    StoredMessage,
)

DEFAULT_TOP_K = 2
"""The number of matches for an agent with `semanticRecall: true`, as in Mastra's search."""


def search(
    options: MemoryOptions,
    agent_options: MemoryOptions,
    query: str,
    *,
    resource_id: str,
    thread_id: str | None,
    limit: int,
) -> SearchResult:
    """Return the matches and the newest messages of a thread, newest first.

    The thread is `thread_id`, or the thread of the resource with the latest activity. In the scope
    of a thread, the neighbours of the matches are results too.

    Args:
        options: The options of the agent and of the call.
        agent_options: The options of the agent alone. In each thread, only the newest
            `last_messages` messages have a `context`.
        query: The text to search for.
        resource_id: The owner of the threads.
        thread_id: The thread, or None.
        limit: The largest number of messages to return.

    Raises:
        AccessDenied: The thread belongs to another resource.
    """
    # Mastra does not interpret expressions of time.
    recall_options = replace(options.semantic_recall or SemanticRecallOptions(), time=None)
    thread_id = thread_id or _find_last_active_thread(resource_id)
    page = selection.EMPTY_PAGE
    if thread_id is not None:
        page = _recall(options, recall_options, query, resource_id, thread_id, limit)
    newest_first = sorted(page.messages, key=lambda message: message.sort_key, reverse=True)[:limit]
    return SearchResult(
        results=_build_hits(
            newest_first, agent_options.last_messages or 0, _get_context_size(options)
        ),
        query=query,
        search_scope=recall_options.scope,
        search_type="semantic",
    )


def _find_last_active_thread(resource_id: str) -> str | None:
    page = threads.list_threads(resource_id=resource_id, per_page=1, order_by="updated_at")
    return page.threads[0].id if page.threads else None


def _recall(
    options: MemoryOptions,
    recall_options: SemanticRecallOptions,
    query: str,
    resource_id: str,
    thread_id: str,
    limit: int,
) -> MessagePage:
    if not isinstance(options.raw.get("semantic_recall"), Mapping):
        recall_options = replace(recall_options, top_k=DEFAULT_TOP_K)
    if recall_options.scope == "resource":
        recall_options = replace(recall_options, before=0, after=0)
    try:
        return selection.recall(
            replace(options, semantic_recall=recall_options),
            thread_id,
            resource_id=resource_id,
            per_page=limits.limit_history(
                limit if options.last_messages is False else options.last_messages
            ),
            vector_search_string=query,
            include_total=False,
        )
    except ThreadNotFound:
        return selection.EMPTY_PAGE


def _get_context_size(options: MemoryOptions) -> tuple[int, int]:
    """Return how many neighbours the `context` of a result has before and after it."""
    semantic_recall = options.raw.get("semantic_recall")
    size = semantic_recall.get("message_range") if isinstance(semantic_recall, Mapping) else None
    if isinstance(size, Mapping):  # Like Mastra, treat 0 as not set.
        before, after = DEFAULT_CONTEXT
        return size.get("before") or before, size.get("after") or after
    return DEFAULT_CONTEXT if size is None else (size, size)


def _build_hits(
    messages: Sequence[StoredMessage], history_size: int, context_size: tuple[int, int]
) -> list[SearchHit]:
    thread_ids = list({message.thread_id for message in messages})
    titles = dict(Thread.objects.filter(pk__in=thread_ids).values_list("pk", "title"))
    allowed = limits.limit_window(*context_size, matches=len(messages))
    # A context of the default size is always allowed, because it is small.
    before, after = (
        max(limited, min(size, default))
        for limited, size, default in zip(allowed, context_size, DEFAULT_CONTEXT, strict=True)
    )
    contexts = _read_contexts(thread_ids, limits.limit_history(history_size), before, after)
    return [
        SearchHit(
            id=message.id,
            thread_id=message.thread_id,
            resource_id=message.resource_id,
            role=message.role,
            text=message_text.get_first_text(message.content),
            created_at=message.created_at,
            thread_title=titles.get(message.thread_id) or message.thread_id,
            context=contexts.get(message.id),
        )
        for message in messages
    ]


def _read_contexts(
    thread_ids: Sequence[str], history_size: int, before: int, after: int
) -> dict[str, SearchContext]:
    """Return the context of each message that is among the newest of its thread.

    Mastra takes it from the recalled history, so older matches have none.
    """
    threads_messages: dict[str, list[StoredMessage]] = {}
    for message in queries.list_newest_of_threads(thread_ids, history_size):
        threads_messages.setdefault(message.thread_id, []).append(message)
    return {
        message.id: SearchContext(
            [_to_context_message(m) for m in messages[max(0, index - before) : index]],
            [_to_context_message(m) for m in messages[index + 1 : index + 1 + after]],
        )
        for messages in threads_messages.values()
        for index, message in enumerate(messages)
    }


def _to_context_message(message: StoredMessage) -> ContextMessage:
    text = message_text.get_first_text(message.content)
    return ContextMessage(message.id, message.role, text, message.created_at)
