"""Finding: that the indexes are used, however the tables look."""

import pytest
from django.db import connection
from django.db.models import F, Func, Value

from mastra_memory.models import Message, Thread
from mastra_memory.review.filters import HasFailedToolCall
from mastra_memory.search import queries, tsvector

pytestmark = pytest.mark.django_db


def plan_of(rows: object) -> str:
    """The plan of a queryset where reading whole tables costs too much."""
    statement, params = rows.query.sql_with_params()  # type: ignore[attr-defined]
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {statement}", params)
        return "\n".join(line for (line,) in cursor.fetchall())


def test_failed_tools__are_found_through_their_index() -> None:
    failed = Message.objects.filter(HasFailedToolCall()).order_by().values("thread_id")
    assert "mastra_message_tool_error" in plan_of(failed)


def test_titles__are_found_through_their_index() -> None:
    words = Func(Value("simple"), F("title"), function="mastra_memory_words")
    found = (
        Thread.objects.filter(queries.has_all_words(words, "tent", "simple"))
        .order_by()
        .values("pk")
    )
    assert "mastra_thread_title_words" in plan_of(found)


def test_words__are_found_through_their_index() -> None:
    assert "mastra_message_search" in plan_of(
        tsvector.list_messages_with_words("tent").order_by().values("pk")
    )
