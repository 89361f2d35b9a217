"""The answer to a search by meaning exactly as Mastra gives it.

It is a recall shown as a list: the hits, and the newest messages of the thread, newest first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mastra_memory import threads
from mastra_memory.content import part_types
from mastra_memory.db import sql
from mastra_memory.exceptions import ThreadNotFound
from mastra_memory.messages import MESSAGE_COLUMNS
from mastra_memory.options import MemoryOptions, SemanticRecall
from mastra_memory.recall import limits, selection
from mastra_memory.search.hits import DEFAULT_CONTEXT
from mastra_memory.search.scope import VISIBLE
from mastra_memory.types import (
    ContextMessage,
    MessagePage,
    SearchContext,
    SearchHit,
    SearchResult,
    StoredMessage,
)

DEFAULT_TOP_K = 2
"""How many hits a search looks for through an agent with `semanticRecall: true`."""


def search(
    options: MemoryOptions,
    own: MemoryOptions,
    query: str,
    *,
    resource_id: str,
    thread_id: str | None,
    limit: int,
) -> SearchResult:
    """Hits and the newest messages of the thread, at most `limit`, newest first.

    The thread is the one named, else the one last active. In thread scope hits come with their
    windows, in resource scope they stand alone. Neighbours are shown for what is among the newest
    messages of its thread, as many as `own`, the options of the agent itself, would recall.
    Raises `AccessDenied` for a thread of another resource.
    """
    chosen = options.semantic_recall or SemanticRecall()
    page = selection.EMPTY_PAGE
    thread_id = thread_id or _find_last_active_thread(resource_id)
    if thread_id is not None:
        page = _recall(options, chosen, query, resource_id, thread_id, limit)
    newest_first = sorted(page.messages, key=lambda message: message.sort_key, reverse=True)[:limit]
    return SearchResult(
        results=_build_hits(newest_first, own.last_messages or 0, _get_context_size(options)),
        query=query,
        search_scope=chosen.scope,
        search_type="semantic",
    )


def _find_last_active_thread(resource_id: str) -> str | None:
    page = threads.list_threads(resource_id=resource_id, per_page=1, order_by="updated_at")
    return page.threads[0].id if page.threads else None


def _recall(
    options: MemoryOptions,
    chosen: SemanticRecall,
    query: str,
    resource_id: str,
    thread_id: str,
    limit: int,
) -> MessagePage:
    if not isinstance(options.raw.get("semantic_recall"), Mapping):
        chosen = replace(chosen, top_k=DEFAULT_TOP_K)
    if chosen.scope == "resource":
        chosen = replace(chosen, before=0, after=0)
    options = replace(options, semantic_recall=chosen)
    try:
        return selection.recall(
            options,
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
    """How many neighbours are shown on each side."""
    given = options.raw.get("semantic_recall")
    span = given.get("message_range") if isinstance(given, Mapping) else None
    if isinstance(span, Mapping):  # where 0 counts as nothing said
        return span.get("before") or DEFAULT_CONTEXT[0], span.get("after") or DEFAULT_CONTEXT[1]
    return DEFAULT_CONTEXT if span is None else (span, span)


def _build_hits(
    messages: Sequence[StoredMessage], recalled: int, span: tuple[int, int]
) -> list[SearchHit]:
    thread_ids = list({message.thread_id for message in messages})
    titled = "SELECT id, title FROM mastra_memory_thread WHERE id = ANY(%s)"
    titles = {cells[0]: cells[1] for cells in sql.fetch_all(titled, [thread_ids])}
    recalled = limits.limit_history(recalled)
    allowed = limits.limit_window(*span, matches=len(messages))
    span = (
        max(allowed[0], min(span[0], DEFAULT_CONTEXT[0])),
        max(allowed[1], min(span[1], DEFAULT_CONTEXT[1])),
    )
    around = _read_contexts(thread_ids, recalled, span)
    return [
        SearchHit(
            id=message.id,
            thread_id=message.thread_id,
            resource_id=message.resource_id,
            role=message.role,
            text=_get_first_text(message),
            created_at=message.created_at,
            thread_title=titles.get(message.thread_id) or message.thread_id,
            context=around.get(message.id),
        )
        for message in messages
    ]


def _read_contexts(
    thread_ids: Sequence[str], recalled: int, span: tuple[int, int]
) -> dict[str, SearchContext]:
    """The neighbours of every message among the newest of its thread."""
    found = sql.fetch_all(
        f"""SELECT {MESSAGE_COLUMNS} FROM unnest(%s::text[]) AS t(id) CROSS JOIN LATERAL (
            SELECT * FROM mastra_memory_message m WHERE m.thread_id = t.id
            ORDER BY m.created_at DESC, m.sequence DESC LIMIT %s) m
        WHERE {VISIBLE} ORDER BY m.thread_id, m.created_at, m.sequence""",
        [list(thread_ids), recalled],
    )
    of_thread: dict[str, list[StoredMessage]] = {}
    for message in (StoredMessage(*cells) for cells in found):
        of_thread.setdefault(message.thread_id, []).append(message)
    before, after = span
    return {
        message.id: SearchContext(
            [_to_context_message(m) for m in newest[max(0, at - before) : at]],
            [_to_context_message(m) for m in newest[at + 1 : at + 1 + after]],
        )
        for newest in of_thread.values()
        for at, message in enumerate(newest)
    }


def _to_context_message(message: StoredMessage) -> ContextMessage:
    return ContextMessage(message.id, message.role, _get_first_text(message), message.created_at)


def _get_first_text(message: StoredMessage) -> str:
    """The first text of the message."""
    texts = (
        piece
        for piece in part_types.read_parts(message.content)
        if isinstance(piece, part_types.TextPart)
    )
    first = next(texts, None)
    return first.text.strip() if first else ""
