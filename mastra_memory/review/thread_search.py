"""Search threads for reviewers, and preview their newest messages."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Q, QuerySet

from mastra_memory.content.redaction import MAX_MATCH_CHARS, Mask, keep_text, mask_beginning
from mastra_memory.db import times
from mastra_memory.models import Message, Thread
from mastra_memory.review import queries, word_search
from mastra_memory.search import engine, query, snippet
from mastra_memory.search.query import WordQuery
from mastra_memory.search.scope import SearchScope
from mastra_memory.search.types import SearchRequest
from mastra_memory.search.words import MAX_CHARACTERS

MAX_ID_MATCHES = 2_000
"""Threads that a search for the id of a resource finds, newest activity first."""
MAX_SIMILAR_MESSAGES = 25
"""Messages that a search by meaning finds."""
MAX_LISTED_MESSAGE_COUNT = 1_000
"""Messages of a thread are counted up to this number."""
PREVIEW_CHARACTERS = 200
PREVIEW_CHARACTERS_READ = PREVIEW_CHARACTERS + 2 * MAX_MATCH_CHARS
"""Characters that are read, so that a value at the end of a preview is masked as a whole."""
_MARKDOWN_SYNTAX = re.compile(r"[|`]+|-{3,}|(?m:^#{1,6} |^> )")


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadMatches:
    """Threads that a search found."""

    messages: Mapping[str, str | None] = field(default_factory=dict)
    """The best message of each thread, best thread first; None if no message matches."""
    threads: QuerySet[Thread] | None = None
    """All matching threads, if the query has only fields of threads such as `tag:vip`."""
    is_partial: bool = False
    """True if the words are so common that only the newest threads were searched."""
    missing_words: Sequence[str] = ()
    """Words of the query that occur nowhere. Threads with the most of the others come first."""
    query: WordQuery | None = None
    """The parsed query."""

    @property
    def problem(self) -> str:
        """Why the query cannot find anything; empty if it can."""
        return self.query.problem if self.query else ""


def find_threads_by_words(
    threads: QuerySet[Thread], text: str, mask: Mask = keep_text
) -> ThreadMatches:
    """Find threads with all the words in one message, in the title or in a note.

    Threads whose own id, or the id of whose resource or messages, was entered come first, then
    threads found by title, by messages (the newest first) and by notes. If a word occurs nowhere,
    the threads with the most of the other words are returned.

    A text counts only if it still meets the query after `mask`.

    Raises:
        InvalidInput: A role or date in the query is invalid.
    """
    parsed = query.parse_query(text, thread_fields=True)
    by_id = _list_threads_by_id(threads, text.strip())
    if parsed.problem:
        return ThreadMatches(messages=dict.fromkeys(by_id), query=parsed)
    threads = word_search.filter_threads_by_fields(threads, parsed.thread_fields, mask)
    if not parsed.has_message_conditions:
        return ThreadMatches(threads=threads, query=parsed)
    matching = word_search.WordSearch(threads, parsed, mask)
    by_message = matching.list_messages()
    by_thread: dict[str, str | None] = dict.fromkeys([*by_id, *matching.list_titles()])
    for thread_id, message_id in by_message:
        if by_thread.get(thread_id) is None:
            by_thread[thread_id] = message_id
    for thread_id in matching.list_notes():
        by_thread.setdefault(thread_id, None)
    missing = [] if by_thread or len(parsed.words) < 2 else matching.list_missing_words()
    return ThreadMatches(
        messages=matching.rank_by_words() if missing else by_thread,
        is_partial=matching.is_partial,
        missing_words=missing,
        query=parsed,
    )


def find_threads_by_meaning(threads: QuerySet[Thread], text: str) -> ThreadMatches:
    """Find threads with the messages most similar in meaning, the most similar first.

    Raises:
        ProviderUnavailable: The embedder cannot be reached.
        ProviderRefused: The embedder rejected the text.
    """
    scope = SearchScope(within=threads if threads.query.where else None)
    request = SearchRequest(query=text, scope=scope, catch_up=False)
    matches = engine.find_matches(request, "semantic", limit=MAX_SIMILAR_MESSAGES).scored
    thread_ids = dict(
        Message.objects.filter(pk__in=[match.id for match in matches]).values_list(
            "pk", "thread_id"
        )
    )
    by_thread: dict[str, str | None] = {}
    for match in matches:
        if match.id in thread_ids:
            by_thread.setdefault(thread_ids[match.id], match.id)
    words = query.parse_query(text, parse_operators=False)
    return ThreadMatches(messages=by_thread, query=words)


def _list_threads_by_id(threads: QuerySet[Thread], entered: str) -> list[str]:
    """Return the threads with this id, of this resource, or with a message of this id."""
    of_message = Message.objects.filter(pk=entered).values("thread_id")
    named = threads.filter(Q(pk=entered) | Q(resource_id=entered) | Q(pk__in=of_message))
    newest = named.order_by("-updated_at", "-pk").values_list("pk", flat=True)
    return list(newest[:MAX_ID_MATCHES])


def highlight_passages(
    message_ids: Sequence[str], words: WordQuery | None, mask: Mask
) -> dict[str, str]:
    """Return the passage of each message that shows best why it matches, by message id.

    Passages are escaped HTML with `<mark>` around the words.
    """
    messages = Message.objects.filter(pk__in=message_ids).values_list("pk", "text")
    texts = {
        pk: _strip_markdown(mask_beginning(text, mask, MAX_CHARACTERS)) for pk, text in messages
    }
    return snippet.highlight_snippets(texts, words)


def _strip_markdown(text: str) -> str:
    """Remove Markdown syntax, so that a preview of one line is readable."""
    return re.sub(r"[ \t]{2,}", " ", _MARKDOWN_SYNTAX.sub(" ", text.replace("**", ""))).strip()


@dataclass(frozen=True, slots=True)
class ThreadPreview:
    """What the list shows of a thread's messages."""

    messages: int
    """Number of messages, at most `MAX_LISTED_MESSAGE_COUNT`."""
    role: str
    preview: str
    """The beginning of the newest message with text, masked and without Markdown."""
    written_at: datetime | None
    """The time of that message; None without one."""


def load_previews(thread_ids: Sequence[str], mask: Mask = keep_text) -> dict[str, ThreadPreview]:
    """Return a preview of each thread by thread id, in one query."""
    rows = queries.list_previews(
        thread_ids, max_messages=MAX_LISTED_MESSAGE_COUNT, characters=PREVIEW_CHARACTERS_READ
    )
    return {
        thread_id: ThreadPreview(
            count,
            role,
            _build_preview(text, mask),
            written_at and times.truncate_to_milliseconds(written_at),
        )
        for thread_id, count, role, text, written_at in rows
    }


def _build_preview(text: str, mask: Mask) -> str:
    is_cut = len(text) == PREVIEW_CHARACTERS_READ
    return mask_beginning(_strip_markdown(text), mask, PREVIEW_CHARACTERS, is_cut=is_cut)
