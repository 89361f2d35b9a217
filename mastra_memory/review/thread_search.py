"""Find threads by words, and what the list shows of each thread."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import F, Func, QuerySet, Value

from mastra_memory import conf
from mastra_memory.content.redaction import MAX_MATCH_CHARS, Mask, keep_text, mask_beginning
from mastra_memory.db import json_text, routing, sql
from mastra_memory.models import Message, Thread
from mastra_memory.review import masked_search
from mastra_memory.search import engine, queries, query, snippet, tsvector
from mastra_memory.search.scope import SearchScope
from mastra_memory.search.types import SearchRequest

MAX_MATCHES = 300
"""Hits that a search looks at, newest first."""
COMMON_WORD_THRESHOLD = 20_000
"""Words in more messages than this are looked for in the newest threads only."""
MAX_NEWEST_THREADS = 2_000
MAX_TITLE_MATCHES = 200
"""Threads that a search takes because of their title."""
MAX_SIMILAR_MESSAGES = 25
"""Messages that a search by meaning takes."""
_MARKDOWN_SYNTAX = re.compile(r"[|`]+|-{3,}|(?m:^#{1,6} |^> )")
MAX_COUNTED_MESSAGES = 1_000
"""Messages of a thread are counted up to here."""
PREVIEW_CHARACTERS = 200
PREVIEW_CHARACTERS_READ = PREVIEW_CHARACTERS + 2 * MAX_MATCH_CHARS
"""Characters that are read, so that a value at the end of the preview is masked as a whole."""


@dataclass(frozen=True, slots=True)
class ThreadMatches:
    """What a search found."""

    messages: Mapping[str, str | None]
    """By thread, best first: the message that holds the words; None where only the title does."""
    partial: bool
    """True when the words are so common that only the newest threads were looked through."""


def find_threads_by_words(
    threads: QuerySet[Thread], words: str, mask: Mask = keep_text
) -> ThreadMatches:
    """Return threads with all the words in a message or the title; one named by its id is first.

    Words are found only where `mask` leaves them readable.
    """
    common = _estimate_match_count(words) > COMMON_WORD_THRESHOLD
    hits = _search_newest_threads(threads, words) if common else _search_all_threads(threads, words)
    named = threads.filter(pk__in=[words.strip(), *_list_threads_of_message(words.strip())])
    first = [*named.values_list("pk", flat=True), *_list_title_matches(threads, words, mask)]
    hits = _filter_readable(hits, words, mask)
    by_thread: dict[str, str | None] = dict.fromkeys(first)
    for thread_id, message_id in hits:
        if by_thread.get(thread_id) is None:
            by_thread[thread_id] = message_id
    return ThreadMatches(by_thread, common)


def find_threads_by_meaning(threads: QuerySet[Thread], text: str) -> ThreadMatches:
    """Threads with the messages nearest in meaning, the nearest first.

    Raises `ProviderUnavailable` and the like where the embedder cannot say.
    """
    scope = SearchScope(within=threads if threads.query.where else None)
    search = SearchRequest(query=text, scope=scope, catch_up=False)
    found = engine.find_matches(search, "semantic", limit=MAX_SIMILAR_MESSAGES).scored
    owners = dict(
        Message.objects.filter(pk__in=[hit.id for hit in found]).values_list("pk", "thread_id")
    )
    by_thread: dict[str, str | None] = {}
    for hit in found:
        if hit.id in owners:
            by_thread.setdefault(owners[hit.id], hit.id)
    return ThreadMatches(by_thread, False)


def _list_threads_of_message(message_id: str) -> list[str]:
    found = Message.objects.filter(pk=message_id).values_list("thread_id", flat=True).first()
    return [found] if found else []


def _list_title_matches(threads: QuerySet[Thread], words: str, mask: Mask) -> list[str]:
    holds = Func(Value("simple"), F("title"), function="mastra_memory_words")
    # Without an order: with one, all titles would be read from the newest on.
    found = threads.filter(queries.has_all_words(holds, words, "simple")).order_by()
    newest = sorted(
        found.values_list("updated_at", "pk", "title")[:MAX_TITLE_MATCHES], reverse=True
    )
    titles = {pk: title for _moment, pk, title in newest}
    readable = masked_search.filter_readable_texts(titles, words, "simple", mask)
    return [pk for pk in titles if pk in readable]


def _filter_readable(
    hits: Sequence[tuple[str, str]], words: str, mask: Mask
) -> list[tuple[str, str]]:
    """Return the hits whose words are found in the masked text as well."""
    language = conf.app_settings().SEARCH_LANGUAGE
    readable = masked_search.filter_readable_messages(
        [message_id for _thread_id, message_id in hits], words, language, mask
    )
    return [hit for hit in hits if hit[1] in readable]


def _estimate_match_count(words: str) -> int:
    """How many messages the planner thinks hold the words; costs no look at them."""
    messages = tsvector.list_messages_with_words(words).order_by()
    statement, params = messages.values("pk").query.sql_with_params()
    with routing.get_connection().cursor() as cursor:
        cursor.execute(f"EXPLAIN (FORMAT JSON) {statement}", params)
        plan = cursor.fetchone()[0]
    plan = json_text.loads(plan) if isinstance(plan, str) else plan
    return int(plan[0]["Plan"]["Plan Rows"])


def _search_all_threads(threads: QuerySet[Thread], words: str) -> list[tuple[str, str]]:
    messages = tsvector.list_messages_with_words(words)
    if threads.query.where:
        messages = messages.filter(thread__in=threads.order_by().values("pk"))
    newest = messages.order_by("-created_at", "-sequence")
    return list(newest.values_list("thread_id", "pk")[:MAX_MATCHES])


def _search_newest_threads(threads: QuerySet[Thread], words: str) -> list[tuple[str, str]]:
    newest = threads.order_by("-updated_at", "-pk").values("pk")[:MAX_NEWEST_THREADS]
    statement, params = newest.query.sql_with_params()
    return sql.fetch_all(
        f"""SELECT t.id, m.id FROM ({statement}) AS t (id)
        CROSS JOIN LATERAL (SELECT id FROM mastra_memory_message WHERE thread_id = t.id
            AND search @@ {queries.ALL_WORDS_QUERY}
            ORDER BY created_at DESC, sequence DESC LIMIT 1) AS m LIMIT %s""",
        [*params, conf.app_settings().SEARCH_LANGUAGE, words, MAX_MATCHES],
    )


def highlight_passages(message_ids: Sequence[str], words: str, mask: Mask) -> dict[str, str]:
    """Of each message the part that holds the words: escaped HTML with `<mark>` around them."""
    messages = Message.objects.filter(pk__in=message_ids).values_list("pk", "text")
    texts = {
        pk: _strip_markdown(mask_beginning(text, mask, snippet.MAX_CHARACTERS))
        for pk, text in messages
    }
    return snippet.highlight_snippets(texts, query.parse_query(words))


def _strip_markdown(text: str) -> str:
    """Without the signs of Markdown that say nothing in a line of preview."""
    return re.sub(r"[ \t]{2,}", " ", _MARKDOWN_SYNTAX.sub(" ", text.replace("**", ""))).strip()


@dataclass(frozen=True, slots=True)
class ThreadPreview:
    """What the list shows of a thread's messages."""

    messages: int
    """At most `MAX_COUNTED_MESSAGES`."""
    role: str
    preview: str
    """The beginning of the newest message that says something."""


def load_previews(thread_ids: Sequence[str], mask: Mask = keep_text) -> dict[str, ThreadPreview]:
    """Return message count and newest words of each thread, masked, in one statement."""
    found = sql.fetch_all(
        """SELECT t.id, c.n, coalesce(p.role, ''), coalesce(p.text, '')
        FROM unnest(%s::text[]) AS t (id)
        CROSS JOIN LATERAL (SELECT count(*) AS n FROM (SELECT FROM mastra_memory_message
            WHERE thread_id = t.id LIMIT %s) AS few) AS c
        LEFT JOIN LATERAL (SELECT role, left(text, %s) AS text FROM mastra_memory_message
            WHERE thread_id = t.id AND text <> ''
            ORDER BY created_at DESC, sequence DESC LIMIT 1) AS p ON TRUE""",
        [list(thread_ids), MAX_COUNTED_MESSAGES, PREVIEW_CHARACTERS_READ],
    )
    return {
        pk: ThreadPreview(
            n,
            role,
            mask_beginning(
                _strip_markdown(text),
                mask,
                PREVIEW_CHARACTERS,
                is_cut=len(text) == PREVIEW_CHARACTERS_READ,
            ),
        )
        for pk, n, role, text in found
    }
