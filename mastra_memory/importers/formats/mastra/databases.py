"""Mastra's databases, PostgreSQL and LibSQL, read through one small port."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import psycopg
from psycopg import sql
from psycopg.types.json import set_json_loads

from mastra_memory.db import json_text, times
from mastra_memory.exceptions import InvalidInput, MastraMemoryError
from mastra_memory.importers import coercion
from mastra_memory.importers.formats.mastra import sqlite_jsonb

FETCH_ROWS = 500

MastraRow = dict[str, Any]


class MastraDatabase(Protocol):
    """A database of Mastra's. Statements name tables as `{mastra_threads}`."""

    insertion_order: str
    """The column that orders messages of one moment: as they came, or as Mastra lists them."""

    def list_columns(self, table: str) -> frozenset[str]:
        """The table's columns, nothing for a table that is not there."""

    def time_expression(self, column: str, columns: frozenset[str]) -> str:
        """SQL for the text of a moment; `column` may be qualified with an alias."""

    def iter_rows(self, statement: str) -> Iterator[MastraRow]:
        """The rows, a few at a time."""

    def decode_json(self, value: Any) -> Any:
        """What a column of JSON says. Raises `ValueError` for what is none."""


class MastraPostgres:
    """A schema of a PostgreSQL database, as it was when the reading began."""

    insertion_order = "id"

    def __init__(self, connection: psycopg.Connection[Any], schema: str) -> None:
        self._connection = connection
        self._schema = schema

    def list_columns(self, table: str) -> frozenset[str]:
        found = self._connection.execute(
            """SELECT column_name FROM information_schema.columns
            WHERE table_schema = %s AND table_name = %s""",
            [self._schema, table],
        )
        return frozenset(name for (name,) in found)

    def time_expression(self, column: str, columns: frozenset[str]) -> str:
        """The column with a time zone where it is written, else the one without, read as UTC."""
        alias, _, name = column.rpartition(".")
        prefix = f"{alias}." if alias else ""
        plain = f"""{prefix}"{name}" AT TIME ZONE 'UTC'"""
        if f"{name}Z" not in columns:
            return f"({plain})::text"
        return f'coalesce({prefix}"{name}Z", {plain})::text'

    def iter_rows(self, statement: str) -> Iterator[MastraRow]:
        tables = {name: sql.Identifier(self._schema, name) for name in TABLES}
        with self._connection.cursor("mastra_import", row_factory=psycopg.rows.dict_row) as cursor:
            cursor.itersize = FETCH_ROWS
            cursor.execute(sql.SQL(statement).format(**tables))
            yield from cursor

    def decode_json(self, value: Any) -> Any:
        return value


class MastraLibsql:
    """A LibSQL file."""

    insertion_order = "rowid"

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def list_columns(self, table: str) -> frozenset[str]:
        found = self._connection.execute("SELECT name FROM pragma_table_info(?)", [table])
        return frozenset(name for (name,) in found)

    def time_expression(self, column: str, columns: frozenset[str]) -> str:
        alias, _, name = column.rpartition(".")
        return f'{alias}."{name}"' if alias else f'"{name}"'

    def iter_rows(self, statement: str) -> Iterator[MastraRow]:
        cursor = self._connection.execute(statement.format(**{name: name for name in TABLES}))
        names = [column[0] for column in cursor.description]
        while rows := cursor.fetchmany(FETCH_ROWS):
            for row in rows:
                yield dict(zip(names, row, strict=True))

    def decode_json(self, value: Any) -> Any:
        return sqlite_jsonb.decode_json_column(value)


TABLES: Sequence[str] = (
    "mastra_threads",
    "mastra_messages",
    "mastra_resources",
    "mastra_observational_memory",
)


@contextmanager
def open_postgres(url: str, schema: str) -> Iterator[MastraPostgres]:
    """The store at the address, read only and at one moment.

    Raises `InvalidInput` when nobody answers there. The address, which may hold a password, is in
    no message.
    """
    try:
        connection = psycopg.connect(url, connect_timeout=10)
    except psycopg.Error as error:
        raise InvalidInput(f"The database cannot be reached: {_get_first_line(error)}") from None
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    connection.read_only = True
    try:
        with connection:
            set_json_loads(_parse_json, connection)
            connection.execute("SET TIME ZONE 'UTC'")
            connection.execute("SET datestyle = 'ISO'")
            yield MastraPostgres(connection, schema)
    except psycopg.Error as error:
        raise InvalidInput(f"The database cannot be read: {_get_first_line(error)}") from None


def _parse_json(data: str | bytes) -> Any:
    return json_text.loads(data if isinstance(data, str) else bytes(data))


def _get_first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


@contextmanager
def open_libsql(path: Path) -> Iterator[MastraLibsql]:
    """The store in the file, read only. Raises `InvalidInput` when it is no such file."""
    # Read in one thread at a time, which need not be the one that opens it.
    connection = sqlite3.connect(
        f"{path.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False
    )
    connection.text_factory = lambda data: data.decode(errors="replace")
    try:
        connection.execute("SELECT count(*) FROM sqlite_master")
        connection.execute("BEGIN")
        yield MastraLibsql(connection)
    except sqlite3.DatabaseError as error:
        raise InvalidInput(f"{path} cannot be read: {error}") from None
    finally:
        connection.close()


class InvalidRow(MastraMemoryError):
    """A row cannot be taken; the message says why."""


def get_time(row: MastraRow, column: str) -> datetime:
    """The moment in the column. Raises `Refused` when there is none."""
    try:
        return times.parse_time(row[column])
    except ValueError:
        raise InvalidRow(f"{column} cannot be read") from None


def get_time_or_none(row: MastraRow, column: str) -> datetime | None:
    """The moment in the column, None where it is empty. Raises `Refused` for what is no moment."""
    return None if row.get(column) in (None, "") else get_time(row, column)


def decode_json(store: MastraDatabase, value: Any) -> Any:
    """What a column of JSON says. Raises `ValueError` for what is none.

    Mastra writes some objects as the text of their JSON, inside of JSON.
    """
    found = store.decode_json(value)
    inner = coercion.parse_json(found) if isinstance(found, str) else None
    return found if inner is None else inner
