"""Statements that stay prepared, asked in one call of libpq."""

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import psycopg
import pytest
from django.db import DataError, OperationalError, close_old_connections, connection, transaction
from django.db.utils import ProgrammingError
from django.test.utils import CaptureQueriesContext

from mastra_memory import prepared, sql

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _prepared(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever these settings say, and with nothing kept from other tests."""
    connection.close()
    connection.ensure_connection()
    connection.connection.prepare_threshold = 3
    yield
    connection.close()


def kept() -> list[str]:
    """The statements of ours that the database keeps for this connection."""
    found = sql.rows(
        """SELECT statement FROM pg_prepared_statements
        WHERE name LIKE 'mastra_memory_%%' ORDER BY prepare_time"""
    )
    return [statement for (statement,) in found]


def test_rows__are_those_of_the_usual_cursor() -> None:
    statement = """SELECT %s::text, %s, %s::int, NULL, %b::text[], %s::jsonb, %s::timestamptz,
        1.5::float8, '10%%', t FROM unnest(%s::text[]) AS t"""
    values: list[Any] = ["ü", None, 7, sql.Texts(["a", "b"]), '{"a": [1]}', "2026-01-01Z"]
    params = [*values, ["x", "y"]]
    assert sql.hot_rows(statement, params) == sql.rows(statement, params)
    assert len(kept()) == 1


def test_statement__is_prepared_once_for_each_kind_of_parameters() -> None:
    for value in (1, 2, 3):
        assert sql.hot_rows("SELECT %s + 1", [value]) == [(value + 1,)]
    assert kept() == ["SELECT $1 + 1"]
    assert sql.hot_rows("SELECT %s + 1", [2.5]) == [(3.5,)]
    assert len(kept()) == 2


def test_statement__without_rows_or_parameters() -> None:
    assert sql.hot_rows("SELECT 1 WHERE false") == []


def test_statement__that_the_database_has_forgotten_is_prepared_again() -> None:
    assert sql.hot_rows("SELECT %s::text", ["a"]) == [("a",)]
    sql.execute("DEALLOCATE ALL")  # as psycopg does after a ROLLBACK, and a pool between users
    assert kept() == []
    assert sql.hot_rows("SELECT %s::text", ["b"]) == [("b",)]
    assert len(kept()) == 1


def test_statement__whose_table_has_changed_is_prepared_again() -> None:
    sql.execute("CREATE TEMPORARY TABLE changing (a int)")
    sql.execute("INSERT INTO changing VALUES (1)")
    assert sql.hot_rows("SELECT * FROM changing") == [(1,)]
    sql.execute("ALTER TABLE changing ALTER a TYPE text, ADD b text DEFAULT 'new'")
    assert sql.hot_rows("SELECT * FROM changing") == [("1", "new")]
    assert kept() == ["SELECT * FROM changing"]


def test_statements__beyond_the_most_push_the_oldest_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "MOST", 2)
    for number in (1, 2, 3):
        sql.hot_rows(f"SELECT {number}")
    assert kept() == ["SELECT 2", "SELECT 3"]
    assert sql.hot_rows("SELECT 1") == [(1,)]


def test_errors__are_those_of_the_usual_cursor() -> None:
    with pytest.raises(DataError) as caught:
        sql.hot_rows("SELECT 1 / %s", [0])
    assert getattr(caught.value.__cause__, "sqlstate", None) == "22012"
    with pytest.raises(ProgrammingError, match="no_such_table"):
        sql.hot_rows("SELECT * FROM no_such_table")
    assert sql.hot_rows("SELECT 1") == [(1,)]


def test_connection_that_is_lost__is_an_operational_error_and_then_made_anew() -> None:
    for statement in ("SELECT pg_terminate_backend(pg_backend_pid())", "SELECT 1"):
        with pytest.raises(OperationalError):
            sql.hot_rows(statement)
    close_old_connections()  # as at the end of every request
    assert sql.hot_rows("SELECT 1") == [(1,)]


def test_transaction__is_asked_with_the_usual_cursor() -> None:
    with transaction.atomic():
        assert sql.hot_rows("SELECT %s::text", ["a"]) == [("a",)]
        assert kept() == []


@pytest.mark.parametrize("library", ["gevent.monkey", "eventlet.patcher"])
def test_greenlets__are_not_stopped_all_together(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, ModuleType(library))
    assert sql.hot_rows("SELECT %s::text", ["a"]) == [("a",)]
    assert kept() == []


def test_connection__that_was_lost_while_nobody_asked_is_made_anew() -> None:
    wrapper: Any = connection
    pid = connection.connection.info.backend_pid
    wrapper.health_check_enabled = True
    wrapper.health_check_done = False  # as at the beginning of a request
    with psycopg.connect(**wrapper.get_connection_params() | {"cursor_factory": None}) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
    assert sql.hot_rows("SELECT 1") == [(1,)]
    assert connection.connection.info.backend_pid != pid


def test_connection_that_prepares_nothing__is_left_so() -> None:
    connection.connection.prepare_threshold = None
    assert sql.hot_rows("SELECT %s::text", ["a"]) == [("a",)]
    assert kept() == []


def test_statements__are_seen_by_those_who_watch() -> None:
    watched = []

    def watch(execute: Any, statement: str, params: Any, many: bool, context: Any) -> Any:
        watched.append((statement, params))
        return execute(statement, params, many, context)

    with connection.execute_wrapper(watch):
        sql.hot_rows("SELECT %s::text", ["a"])
    assert watched == [("SELECT %s::text", ["a"])]
    assert len(kept()) == 1
    with CaptureQueriesContext(connection) as captured:
        sql.hot_rows("SELECT %s::text", ["a"])
    assert len(captured) == 1
