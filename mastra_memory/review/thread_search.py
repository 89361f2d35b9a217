"""Search threads for reviewers, and preview their newest messages."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import F, Func, QuerySet, Value

from mastra_memory import conf
from mastra_memory.content.redaction import MAX_MATCH_CHARS, Mask, keep_text, mask_beginning
from mastra_memory.db import json_text, times
from mastra_memory.models import Message, Thread
from mastra_memory.review import masked_search, queries
from mastra_memory.search import engine, query, snippet, tsvector
from mastra_memory.search.queries import has_all_words
from mastra_memory.search.scope import SearchScope
from mastra_memory.search.types import SearchRequest

MAX_MATCHES = 300
"""Matching messages that a search looks at, newest first."""
COMMON_WORD_THRESHOLD = 20_000
"""If more messages than this match, only the newest threads are searched."""
MAX_NEWEST_THREADS = 2_000
"""Threads that a search for common words looks at."""
MAX_TITLE_MATCHES = 200
"""Threads that a search finds by their titles."""
MAX_SIMILAR_MESSAGES = 25
"""Messages that a search by meaning finds."""
MAX_LISTED_MESSAGE_COUNT = 1_000
"""Messages of a thread are counted up to this number."""
PREVIEW_CHARACTERS = 200
PREVIEW_CHARACTERS_READ = PREVIEW_CHARACTERS + 2 * MAX_MATCH_CHARS
"""Characters that are read, so that a value at the end of a preview is masked as a whole."""
_MARKDOWN_SYNTAX = re.compile(r"[|`]+|-{3,}|(?m:^#{1,6} |^> )")


@dataclass(frozen=True, slots=True)
class ThreadMatches:
    """Threads that a search found."""

    messages: Mapping[str, str | None]
    """The best message of each thread, best thread first; None if only the title matches."""
    partial: bool
    """True if the words are so common that only the newest threads were searched."""


def find_threads_by_words(
    threads: QuerySet[Thread], words: str, mask: Mask = keep_text
) -> ThreadMatches:
    """Find threads with all the words in one message or in the title.

    A thread whose own id, or the id of one of its messages, was entered comes first, then threads
    found by title, then the others, newest message first. Texts count only if they still contain
    the words after `mask`.
    """
    is_common = _estimate_match_count(words) > COMMON_WORD_THRESHOLD
    if is_common:
        newest = threads.order_by("-updated_at", "-pk")[:MAX_NEWEST_THREADS]
        matches = queries.list_newest_matches(newest, words, limit=MAX_MATCHES)
    else:
        matches = _list_message_matches(threads, words)
    by_id = threads.filter(pk__in=[words.strip(), *_list_threads_of_message(words.strip())])
    first = [*by_id.values_list("pk", flat=True), *_list_title_matches(threads, words, mask)]
    by_thread: dict[str, str | None] = dict.fromkeys(first)
    for thread_id, message_id in _filter_readable(matches, words, mask):
        if by_thread.get(thread_id) is None:
            by_thread[thread_id] = message_id
    return ThreadMatches(by_thread, is_common)


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
    return ThreadMatches(by_thread, False)


def _list_threads_of_message(message_id: str) -> list[str]:
    thread_ids = Message.objects.filter(pk=message_id).values_list("thread_id", flat=True)
    return list(thread_ids)


def _list_title_matches(threads: QuerySet[Thread], words: str, mask: Mask) -> list[str]:
    vector = Func(Value("simple"), F("title"), function="mastra_memory_words")
    # Sorted in Python: with an ORDER BY, PostgreSQL would walk through all threads from the newest
    # and compute the words of each title, instead of using the index on these words.
    matching = threads.filter(has_all_words(vector, words, "simple")).order_by()
    rows = matching.values_list("updated_at", "pk", "title")[:MAX_TITLE_MATCHES]
    titles = {pk: title for _updated_at, pk, title in sorted(rows, reverse=True)}
    readable = masked_search.filter_readable_texts(titles, words, "simple", mask)
    return [pk for pk in titles if pk in readable]


def _filter_readable(
    matches: Sequence[tuple[str, str]], words: str, mask: Mask
) -> list[tuple[str, str]]:
    """Return the matches whose masked text contains the words as well."""
    language = conf.app_settings().SEARCH_LANGUAGE
    message_ids = [message_id for _thread_id, message_id in matches]
    readable = masked_search.filter_readable_messages(message_ids, words, language, mask)
    return [match for match in matches if match[1] in readable]


def _estimate_match_count(words: str) -> int:
    """Return how many messages PostgreSQL's planner expects to match, without reading them."""
    messages = tsvector.list_messages_with_words(words).order_by().values("pk")
    plan = json_text.loads(messages.explain(format="json"))
    root = plan[0] if isinstance(plan, list) else plan
    return int(root["Plan"]["Plan Rows"])


def _list_message_matches(threads: QuerySet[Thread], words: str) -> list[tuple[str, str]]:
    messages = tsvector.list_messages_with_words(words)
    if threads.query.where:
        messages = messages.filter(thread__in=threads.order_by().values("pk"))
    newest = messages.order_by("-created_at", "-sequence")
    return list(newest.values_list("thread_id", "pk")[:MAX_MATCHES])


def highlight_passages(message_ids: Sequence[str], words: str, mask: Mask) -> dict[str, str]:
    """Return the passage of each message that shows best why it matches, by message id.

    Passages are escaped HTML with `<mark>` around the words.
    """
    messages = Message.objects.filter(pk__in=message_ids).values_list("pk", "text")
    texts = {
        pk: _strip_markdown(mask_beginning(text, mask, snippet.MAX_CHARACTERS))
        for pk, text in messages
    }
    return snippet.highlight_snippets(texts, query.parse_query(words))


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
