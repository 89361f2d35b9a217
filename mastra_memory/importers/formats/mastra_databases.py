"""Mastra's databases, PostgreSQL and LibSQL, read through one small port."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import psycopg
from psycopg import sql
from psycopg.types.json import set_json_loads

from mastra_memory.db import json_text
from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers.formats import sqlite_jsonb

FETCH = 500

Row = dict[str, Any]


class Store(Protocol):
    """A database of Mastra's. Statements name tables as `{mastra_threads}`."""

    insertion_order: str
    """The column that orders messages of one moment: as they came, or as Mastra lists them."""

    def columns(self, table: str) -> frozenset[str]:
        """The table's columns, nothing for a table that is not there."""

    def moment(self, column: str, columns: frozenset[str]) -> str:
        """SQL for the text of a moment; `column` may be qualified with an alias."""

    def read(self, statement: str) -> Iterator[Row]:
        """The rows, a few at a time."""

    def json(self, value: Any) -> Any:
        """What a column of JSON says. Raises `ValueError` for what is none."""


class PostgresStore:
    """A schema of a PostgreSQL database, as it was when the reading began."""

    insertion_order = "id"

    def __init__(self, connection: psycopg.Connection[Any], schema: str) -> None:
        self._connection = connection
        self._schema = schema

    def columns(self, table: str) -> frozenset[str]:
        found = self._connection.execute(
            """SELECT column_name FROM information_schema.columns
            WHERE table_schema = %s AND table_name = %s""",
            [self._schema, table],
        )
        return frozenset(name for (name,) in found)

    def moment(self, column: str, columns: frozenset[str]) -> str:
        """The column with a time zone where it is written, else the one without, read as UTC."""
        alias, _, name = column.rpartition(".")
        prefix = f"{alias}." if alias else ""
        plain = f"""{prefix}"{name}" AT TIME ZONE 'UTC'"""
        if f"{name}Z" not in columns:
            return f"({plain})::text"
        return f'coalesce({prefix}"{name}Z", {plain})::text'

    def read(self, statement: str) -> Iterator[Row]:
        tables = {name: sql.Identifier(self._schema, name) for name in TABLES}
        with self._connection.cursor("mastra_import", row_factory=psycopg.rows.dict_row) as cursor:
            cursor.itersize = FETCH
            cursor.execute(sql.SQL(statement).format(**tables))
            yield from cursor

    def json(self, value: Any) -> Any:
        return value


class SqliteStore:
    """A LibSQL file."""

    insertion_order = "rowid"

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def columns(self, table: str) -> frozenset[str]:
        found = self._connection.execute("SELECT name FROM pragma_table_info(?)", [table])
        return frozenset(name for (name,) in found)

    def moment(self, column: str, columns: frozenset[str]) -> str:
        alias, _, name = column.rpartition(".")
        return f'{alias}."{name}"' if alias else f'"{name}"'

    def read(self, statement: str) -> Iterator[Row]:
        cursor = self._connection.execute(statement.format(**{name: name for name in TABLES}))
        names = [column[0] for column in cursor.description]
        while rows := cursor.fetchmany(FETCH):
            for row in rows:
                yield dict(zip(names, row, strict=True))

    def json(self, value: Any) -> Any:
        return sqlite_jsonb.decode_column(value)


TABLES: Sequence[str] = (
    "mastra_threads",
    "mastra_messages",
    "mastra_resources",
    "mastra_observational_memory",
)


@contextmanager
def open_postgres(url: str, schema: str) -> Iterator[PostgresStore]:
    """The store at the address, read only and at one moment.

    Raises `InvalidInput` when nobody answers there. The address, which may hold a password, is in
    no message.
    """
    try:
        connection = psycopg.connect(url, connect_timeout=10)
    except psycopg.Error as error:
        raise InvalidInput(f"The database cannot be reached: {_first_line(error)}") from None
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    connection.read_only = True
    try:
        with connection:
            set_json_loads(_loads, connection)
            connection.execute("SET TIME ZONE 'UTC'")
            connection.execute("SET datestyle = 'ISO'")
            yield PostgresStore(connection, schema)
    except psycopg.Error as error:
        raise InvalidInput(f"The database cannot be read: {_first_line(error)}") from None


def _loads(data: str | bytes) -> Any:
    return json_text.loads(data if isinstance(data, str) else bytes(data))


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


@contextmanager
def open_sqlite(path: Path) -> Iterator[SqliteStore]:
    """The store in the file, read only. Raises `InvalidInput` when it is no such file."""
    # Read in one thread at a time, which need not be the one that opens it.
    connection = sqlite3.connect(
        f"{path.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False
    )
    connection.text_factory = lambda data: data.decode(errors="replace")
    try:
        connection.execute("SELECT count(*) FROM sqlite_master")
        connection.execute("BEGIN")
        yield SqliteStore(connection)
    except sqlite3.DatabaseError as error:
        raise InvalidInput(f"{path} cannot be read: {error}") from None
    finally:
        connection.close()
