"""Find the messages, titles and notes of threads that contain the words of a query.

Users with a mask get only what their masked texts match: see `masked_search`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import IntegerField, QuerySet, Value
from django.db.models.functions import Cast

from mastra_memory.content.redaction import Mask, keep_text
from mastra_memory.db import json_text
from mastra_memory.models import Message, ReviewNote, Tag, Thread, ThreadTag
from mastra_memory.review import masked_search, queries
from mastra_memory.search import lists
from mastra_memory.search.query import ThreadField, WordQuery

MAX_MATCHES = 300
"""Matching messages that a search looks at, newest first."""
COMMON_WORD_THRESHOLD = 20_000
"""If more messages than this match, only the newest threads are searched."""
MAX_NEWEST_THREADS = 2_000
"""Threads that a search for common words looks at."""
MAX_TEXT_MATCHES = 200
"""Titles and notes that a search looks at."""
MAX_CHECKED_WORDS = 10
"""Words of a query of which the search tells whether they occur at all."""
MAX_CHECKED_MATCHES = 20
"""Messages that are masked to see whether one of them contains a word."""


class WordSearch:
    """The search for a query in some threads, for a user with a mask."""

    def __init__(self, threads: QuerySet[Thread], query: WordQuery, mask: Mask) -> None:
        """Take the query; nothing is searched yet."""
        self._threads = threads
        self._query = query
        self._mask = mask
        # An excluded word may be masked, so whether it occurs is decided after masking.
        self._candidates = query if mask is keep_text else query.without_exclusions()
        self.is_partial = False
        """Whether words were so common that only the newest threads were searched."""

    def list_messages(self) -> list[tuple[str, str]]:
        """Return thread id and id of the messages that meet the query, newest first."""
        condition = self._candidates.all_words_filter
        messages = lists.list_messages(self._query, condition)
        if self._is_common(condition):
            newest = self._list_newest_threads()
            rows = queries.list_newest_matches(newest, messages, limit=MAX_MATCHES)
        else:
            messages = self._limit_to_threads(messages).order_by("-created_at", "-sequence")
            rows = list(messages.values_list("thread_id", "pk")[:MAX_MATCHES])
        readable = masked_search.filter_readable_messages(
            [pk for _, pk in rows], self._query.all_words_filter, self._mask
        )
        return [row for row in rows if row[1] in readable]

    def list_titles(self) -> list[str]:
        """Return the ids of the threads whose titles meet the query, newest activity first."""
        condition = self._query.all_words_filter
        titles = self._load_titles(self._candidates.all_words_filter)
        if condition is None or not titles:
            return []
        readable = masked_search.filter_readable_texts(titles, condition, self._mask)
        return [thread_id for thread_id in titles if thread_id in readable]

    def list_notes(self) -> list[str]:
        """Return the ids of the threads with a note that meets the query, newest note first."""
        condition = self._query.all_words_filter
        notes = self._load_notes(self._candidates.all_words_filter)
        if condition is None or not notes:
            return []
        texts = {key: text for key, (_, text) in notes.items()}
        readable = masked_search.filter_readable_texts(texts, condition, self._mask)
        return [thread_id for key, (thread_id, _) in notes.items() if key in readable]

    def rank_by_words(self) -> dict[str, str | None]:
        """Return the threads with some of the words, those with the most words first.

        The value is the best message of the thread; None for a title or note.
        """
        condition = self._candidates.any_word_filter
        counts: list[tuple[int, str, str | None]] = [
            (count, thread_id, message_id)
            for thread_id, message_id, count in self._count_words_of_messages(condition)
        ]
        titles = self._load_titles(condition)
        counts += [(n, pk, None) for pk, n in self._count_words_of_texts(titles).items()]
        notes = self._load_notes(condition)
        texts = {key: text for key, (_, text) in notes.items()}
        counts += [(n, notes[key][0], None) for key, n in self._count_words_of_texts(texts).items()]
        best: dict[str, str | None] = {}
        # Sorting is stable: messages come before titles and notes with as many words.
        for _count, thread_id, message_id in sorted(counts, key=lambda row: -row[0]):
            best.setdefault(thread_id, message_id)
        return best

    def list_missing_words(self) -> list[str]:
        """Return the words of the query that no message, title or note contains."""
        checked = self._query.words[:MAX_CHECKED_WORDS]
        conditions = [word.condition for word in checked]
        each = 1 if self._mask is keep_text else MAX_CHECKED_MATCHES
        branches = []
        for position, condition in enumerate(conditions):
            messages = self._limit_to_threads(Message.objects.order_by())
            matching = messages.filter(lists.WordMatch("search", condition))
            branches.append(matching.values_list("pk", Value(position))[:each])
        rows = list(branches[0].union(*branches[1:], all=True))
        occurring = {position for _, position in rows}
        if self._mask is not keep_text:
            ids = list(dict.fromkeys(pk for pk, _ in rows))
            matches = masked_search.find_readable_matches(ids, conditions, self._mask)
            occurring = {position for position, keys in enumerate(matches) if keys}
        texts = self._load_titles(self._candidates.any_word_filter)
        texts |= {k: t for k, (_, t) in self._load_notes(self._candidates.any_word_filter).items()}
        matches = masked_search.match_texts(texts, conditions, self._mask)
        occurring |= {position for position, keys in enumerate(matches) if keys}
        return [word.text for position, word in enumerate(checked) if position not in occurring]

    def _count_words_of_messages(self, condition: str | None) -> list[tuple[str, str, int]]:
        """Return thread id, message id and number of words of the best messages."""
        messages = lists.list_messages(self._query, condition)
        if self._is_common(condition):
            newest = list(self._list_newest_threads().values_list("pk", flat=True))
            messages = messages.filter(thread__in=newest)
        counts: Any = Value(0)
        for word in self._query.words:
            counts += Cast(lists.WordMatch("search", word.condition), IntegerField())
        messages = self._limit_to_threads(messages).annotate(word_count=counts)
        best = messages.order_by("-word_count", "-created_at", "-sequence")
        rows = list(best.values_list("thread_id", "pk", "word_count")[:MAX_MATCHES])
        if self._mask is keep_text:
            return rows
        conditions = [self._query.any_word_filter or "", *(w.condition for w in self._query.words)]
        allowed, *matches = masked_search.find_readable_matches(
            [pk for _, pk, _ in rows], conditions, self._mask
        )
        return [(thread, pk, _count(pk, matches)) for thread, pk, _ in rows if pk in allowed]

    def _count_words_of_texts(self, texts: Mapping[str, str]) -> dict[str, int]:
        """Return by key how many of the words the matching texts contain."""
        if not texts:
            return {}
        conditions = [self._query.any_word_filter or "", *(w.condition for w in self._query.words)]
        allowed, *matches = masked_search.match_texts(texts, conditions, self._mask)
        return {key: _count(key, matches) for key in texts if key in allowed}

    def _load_titles(self, condition: str | None) -> dict[str, str]:
        """Return titles by thread id, newest activity first. A title has no role and no time."""
        if condition is None or self._query.message_filter:
            return {}
        # Sorted in Python: with an ORDER BY, PostgreSQL would walk through all threads from the
        # newest, instead of using the index on the words.
        threads = self._threads.filter(lists.WordMatch("title_search", condition)).order_by()
        rows = threads.values_list("updated_at", "pk", "title")[:MAX_TEXT_MATCHES]
        return {pk: title for _, pk, title in sorted(rows, reverse=True)}

    def _load_notes(self, condition: str | None) -> dict[str, tuple[str, str]]:
        """Return thread id and text of notes by their key, the newest first."""
        if condition is None or self._query.message_filter:
            return {}
        return load_notes(self._limit_to_threads(ReviewNote.objects.all()), condition)

    def _limit_to_threads(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        if not self._threads.query.where:
            return rows
        return rows.filter(thread__in=self._threads.order_by().values("pk"))

    def _list_newest_threads(self) -> QuerySet[Thread]:
        return self._threads.order_by("-updated_at", "-pk")[:MAX_NEWEST_THREADS]

    def _is_common(self, condition: str | None) -> bool:
        """Return whether PostgreSQL's planner expects many matches, without reading them."""
        if condition is not None:
            messages = Message.objects.filter(lists.WordMatch("search", condition))
            plan = json_text.loads(messages.order_by().values("pk").explain(format="json"))
            root = plan[0] if isinstance(plan, list) else plan
            if int(root["Plan"]["Plan Rows"]) <= COMMON_WORD_THRESHOLD:
                return False
        self.is_partial = True
        return True


def _count(key: str, matches: Sequence[set[str]]) -> int:
    return sum(key in keys for keys in matches)


def load_notes(notes: QuerySet[ReviewNote], condition: str) -> dict[str, tuple[str, str]]:
    """Return thread id and text of the notes that meet a condition, by key, the newest first."""
    matching = notes.filter(lists.WordMatch("search", condition)).order_by("-pk")
    rows = matching.values_list("pk", "thread_id", "text")[:MAX_TEXT_MATCHES]
    return {str(pk): (thread_id, text) for pk, thread_id, text in rows}


def filter_threads_by_fields(
    threads: QuerySet[Thread], fields: Sequence[ThreadField], mask: Mask
) -> QuerySet[Thread]:
    """Return the threads that meet conditions such as `tag:vip`."""
    for condition in fields:
        matching: Any
        if condition.name == "resource":
            matching = Thread.objects.filter(resource_id=condition.value).values("pk")
        elif condition.name == "tag":
            tags = Tag.objects.filter(name__iexact=condition.value).values("pk")
            matching = ThreadTag.objects.filter(tag_id__in=tags).values("thread_id")
        else:
            matching = _find_threads_by_note(condition.condition, mask)
        if condition.excluded:
            threads = threads.exclude(pk__in=matching)
        else:
            threads = threads.filter(pk__in=matching)
    return threads


def _find_threads_by_note(condition: str, mask: Mask) -> list[str]:
    if not condition:
        return []
    notes = load_notes(ReviewNote.objects.all(), condition)
    texts = {key: text for key, (_, text) in notes.items()}
    readable = masked_search.filter_readable_texts(texts, condition, mask)
    return [thread_id for key, (thread_id, _) in notes.items() if key in readable]
