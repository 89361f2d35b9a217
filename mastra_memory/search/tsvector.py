"""Index words: those of messages in `Message.search`, of titles and of notes, as `tsvector`.

`words` splits the texts and PostgreSQL reduces the words to stems. A save of a few messages indexes
their words at once. After a large save, a task does it; it also indexes titles and notes. Before a
search, what is pending in its scope is indexed.
"""

from collections.abc import Iterator, Sequence

from mastra_memory import conf
from mastra_memory.db import routing
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.models import ReviewNote
from mastra_memory.search import fields, index_queries, words
from mastra_memory.search.scope import SearchScope

MAX_MESSAGES_ON_SAVE = 10
"""If a save has more messages than this, a task indexes their words."""
MAX_MESSAGES_BEFORE_SEARCH = 1_000
"""How many pending messages are indexed before a search, the newest first."""
MAX_BATCH_BYTES = 16 * 1024 * 1024
"""How much content one transaction reads, except for a single larger message."""
EVERYWHERE = SearchScope()

TITLE_WORDS = "to_tsvector(%s::regconfig, %s)"
"""SQL for the words of a title; `split_title` returns its parameters. A statement that writes a
title without its words leaves them pending."""


def split_title(title: str) -> list[str]:
    """Return the parameters of `TITLE_WORDS`."""
    return [conf.app_settings().SEARCH_LANGUAGE, words.normalize_words(title)]


def index_pending_words(
    scope: SearchScope = EVERYWHERE, *, limit: int = MAX_MESSAGES_BEFORE_SEARCH
) -> int:
    """Index pending words of up to `limit` messages, titles and notes, and return how many.

    Several workers may run this at once: each skips the rows that another one has locked.
    """
    pending = index_queries.list_pending(scope, limit)
    count = 0
    for batch in split_batches([(pk, size) for kind, pk, size in pending if kind == "message"]):
        count += write_message_words(batch, pending=True)
    if thread_ids := [pk for kind, pk, _ in pending if kind == "thread"]:
        count += write_title_words(thread_ids, pending=True)
    if note_ids := [int(pk) for kind, pk, _ in pending if kind == "note"]:
        count += write_note_words(note_ids)
    return count


def split_batches(messages: Sequence[tuple[str, int]]) -> Iterator[list[str]]:
    """Yield ids of messages whose content has at most `MAX_BATCH_BYTES` together."""
    batch: list[str] = []
    batch_bytes = 0
    for message_id, size in messages:
        if batch and batch_bytes + size > MAX_BATCH_BYTES:
            yield batch
            batch, batch_bytes = [], 0
        batch.append(message_id)
        batch_bytes += size
    if batch:
        yield batch


@retry_conflicts
def write_message_words(message_ids: Sequence[str], *, pending: bool = False) -> int:
    """Write the words of these messages, or of those that have none, and return how many."""
    with routing.atomic():
        rows = index_queries.lock_messages(message_ids, pending=pending)
        if not rows:
            return 0
        split = [fields.split_message(text, content) for _, text, content in rows]
        language = conf.app_settings().SEARCH_LANGUAGE
        return index_queries.update_message_words([row[0] for row in rows], split, language)


@retry_conflicts
def write_title_words(thread_ids: Sequence[str], *, pending: bool = False) -> int:
    """Write the words of the titles of these threads, and return how many."""
    with routing.atomic():
        rows = index_queries.lock_titles(thread_ids, pending=pending)
        split = [words.normalize_words(title) for _, title in rows]
        language = conf.app_settings().SEARCH_LANGUAGE
        return index_queries.update_title_words([pk for pk, _ in rows], split, language)


def write_note_words(note_ids: Sequence[int]) -> int:
    """Write the words of these notes, and return how many. The text of a note never changes."""
    rows = list(ReviewNote.objects.filter(pk__in=note_ids).values_list("pk", "text"))
    split = [words.normalize_words(text) for _, text in rows]
    language = conf.app_settings().SEARCH_LANGUAGE
    return index_queries.update_note_words([pk for pk, _ in rows], split, language)
