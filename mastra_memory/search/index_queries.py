"""The SQL that writes the words of messages, titles and notes; see `tsvector`.

Values are always passed as parameters.
"""

from collections.abc import Sequence

from mastra_memory.db import sql
from mastra_memory.search import words
from mastra_memory.search.fields import MessageWords
from mastra_memory.search.scope import SearchScope


def list_pending(scope: SearchScope, limit: int) -> list[tuple[str, str, int]]:
    """Return a kind, an id and a size in bytes of what has no words yet, at most `limit` of each.

    The kinds are `message`, newest first, `thread` for titles, and `note`. Notes are listed only
    in a scope without a resource or thread, because only the admin searches them. One statement,
    because nothing is pending in most cases.
    """
    messages, threads = scope.condition("m"), scope.thread_condition("t")
    notes = "FALSE" if scope.is_named else "TRUE"
    return sql.fetch_all(
        f"""(SELECT 'message', m.id, m.content_bytes FROM mastra_memory_message m
            WHERE m.search IS NULL AND {messages} ORDER BY m.created_at DESC LIMIT %s)
        UNION ALL (SELECT 'thread', t.id, 0 FROM mastra_memory_thread t
            WHERE t.title_search IS NULL AND {threads} LIMIT %s)
        UNION ALL (SELECT 'note', n.id::text, 0 FROM mastra_memory_reviewnote n
            WHERE n.search IS NULL AND {notes} LIMIT %s)""",
        [*messages.params, limit, *threads.params, limit, limit],
    )


_READ_MESSAGES = """SELECT m.id, left(m.text, %s), m.content::text FROM mastra_memory_message m
    WHERE m.id = ANY(%s) AND {condition} ORDER BY m.id FOR NO KEY UPDATE {wait}"""
_READ_TITLES = """SELECT t.id, t.title FROM mastra_memory_thread t
    WHERE t.id = ANY(%s) AND {condition} ORDER BY t.id FOR NO KEY UPDATE {wait}"""


def lock_messages(message_ids: Sequence[str], *, pending: bool) -> list[tuple[str, str, str]]:
    """Lock the messages and return id, beginning of the text and content of each.

    With `pending`, only messages without words are returned, and those that another transaction
    has locked are left out: it writes their words. The ORM cannot cut a text while it locks rows.
    """
    statement = _READ_MESSAGES.format(
        condition="m.search IS NULL" if pending else "TRUE", wait="SKIP LOCKED" if pending else ""
    )
    return sql.fetch_all(statement, [words.MAX_CHARACTERS, list(message_ids)])


def lock_titles(thread_ids: Sequence[str], *, pending: bool) -> list[tuple[str, str]]:
    """Lock the threads and return id and title of each; see `lock_messages` for `pending`."""
    statement = _READ_TITLES.format(
        condition="t.title_search IS NULL" if pending else "TRUE",
        wait="SKIP LOCKED" if pending else "",
    )
    return sql.fetch_all(statement, [list(thread_ids)])


def update_message_words(ids: Sequence[str], split: Sequence[MessageWords], language: str) -> int:
    """Store the words of messages. The ORM's `bulk_update` would need a CASE for each column."""
    columns = [list(column) for column in zip(*split, strict=True)]
    return sql.execute(
        """UPDATE mastra_memory_message m
        SET search = mastra_memory_vector(%s::regconfig, i.words, i.errors, i.fields)
        FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[]) AS i(id, words, errors, fields)
        WHERE m.id = i.id""",
        [language, list(ids), *columns],
    )


def update_title_words(ids: Sequence[str], titles: Sequence[str], language: str) -> int:
    """Store the words of titles, for the same reason in SQL."""
    return sql.execute(
        """UPDATE mastra_memory_thread t SET title_search = to_tsvector(%s::regconfig, i.words)
        FROM unnest(%s::text[], %s::text[]) AS i(id, words) WHERE t.id = i.id""",
        [language, list(ids), list(titles)],
    )


def update_note_words(ids: Sequence[int], texts: Sequence[str], language: str) -> int:
    """Store the words of notes, for the same reason in SQL."""
    return sql.execute(
        """UPDATE mastra_memory_reviewnote n SET search = to_tsvector(%s::regconfig, i.words)
        FROM unnest(%s::bigint[], %s::text[]) AS i(id, words) WHERE n.id = i.id""",
        [language, list(ids), list(texts)],
    )
