"""Searches of the review pages use their indexes."""

import pytest
from django.db import connection
from django.db.models import F, Func, Value

from mastra_memory.models import Message, Thread
from mastra_memory.review.filters import HasFailedToolCall
from mastra_memory.search import queries, tsvector

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


def test_has_all_words__uses_the_index_on_titles() -> None:
    words = Func(Value("simple"), F("title"), function="mastra_memory_words")
    found = (
        Thread.objects.filter(queries.has_all_words(words, "tent", "simple"))
        .order_by()
        .values("pk")
    )
    assert "mastra_thread_title_words" in explain(found)


def test_list_messages_with_words__uses_its_index() -> None:
    assert "mastra_message_search" in explain(
        tsvector.list_messages_with_words("tent").order_by().values("pk")
    )
