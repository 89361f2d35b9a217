"""Searches of the review pages use their indexes."""

import pytest
from django.db import connection

from mastra_memory.models import Message, ReviewNote, Thread
from mastra_memory.review.filters import HasFailedToolCall
from mastra_memory.search import lists

pytestmark = pytest.mark.django_db


def explain(rows: object) -> str:
    """Return the plan of a queryset, with sequential scans disabled."""
    statement, params = rows.query.sql_with_params()  # type: ignore[attr-defined]
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {statement}", params)
        return "\n".join(line for (line,) in cursor.fetchall())


def test_has_failed_tool_call__uses_its_index() -> None:
    failed = Message.objects.filter(HasFailedToolCall()).order_by().values("thread_id")
    assert "mastra_message_tool_error" in explain(failed)


def test_word_match__uses_the_indexes_on_titles_and_notes() -> None:
    titles = Thread.objects.filter(lists.WordMatch("title_search", "'tent'")).order_by()
    assert "mastra_thread_words" in explain(titles.values("pk"))
    notes = ReviewNote.objects.filter(lists.WordMatch("search", "'tent'")).order_by()
    assert "mastra_note_words" in explain(notes.values("pk"))


def test_search_messages__uses_its_index() -> None:
    assert "mastra_message_search" in explain(lists.search_messages("tent").order_by().values("pk"))
