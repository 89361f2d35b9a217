"""Parameters of SQL statements."""

import pytest

from mastra_memory.db import sql


@pytest.mark.django_db
@pytest.mark.parametrize(
    "texts", [[], [""], ["a", "", "ü", "日本語 🎒", 'say "hi", {x}\\', "NULL", "x" * 70_000]]
)
@pytest.mark.parametrize("read", [sql.fetch_all, sql.fetch_all_prepared])
def test_text_array__texts_arrive_unchanged(texts: list[str], read: object) -> None:
    assert callable(read)
    assert read("SELECT %b::text[]", [sql.TextArray(texts)]) == [(texts,)]
