"""Open Mastra's databases, PostgreSQL and LibSQL, behind one interface."""

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
    """A database of Mastra. Statements name its tables in braces, as `{mastra_threads}`."""

    insertion_order: str
    """The column that orders messages with the same time, in the way Mastra lists them."""

    def list_columns(self, table: str) -> frozenset[str]:
        """Return the columns of a table; a table that does not exist has none."""

    def time_expression(self, column: str, columns: frozenset[str]) -> str:
        """Return SQL for a time column as text; `column` may have the alias of its table."""

    def iter_rows(self, statement: str) -> Iterator[MastraRow]:
        """Yield the rows of a statement, `FETCH_ROWS` in memory at a time."""

    def decode_json(self, value: Any) -> Any:
        """Return the value of a JSON column, or raise `ValueError` if it is not JSON."""


class MastraPostgres:
    """A schema of a PostgreSQL database, read in one snapshot."""

    insertion_order = "id"

    def __init__(self, connection: psycopg.Connection[Any], schema: str) -> None:
        """Use an open connection."""
        self._connection = connection
        self._schema = schema

    def list_columns(self, table: str) -> frozenset[str]:
        """Return the columns of a table in the schema."""
        rows = self._connection.execute(
            """SELECT column_name FROM information_schema.columns
            WHERE table_schema = %s AND table_name = %s""",
            [self._schema, table],
        )
        return frozenset(name for (name,) in rows)

    def time_expression(self, column: str, columns: frozenset[str]) -> str:
        """Return SQL for the time as text.

        Mastra has two columns for each time. The newer one has a time zone and a name ending in
        `Z`; the older one has no time zone and is in UTC.
        """
        alias, _, name = column.rpartition(".")
        prefix = f"{alias}." if alias else ""
        plain = f"""{prefix}"{name}" AT TIME ZONE 'UTC'"""
        if f"{name}Z" not in columns:
            return f"({plain})::text"
        return f'coalesce({prefix}"{name}Z", {plain})::text'

    def iter_rows(self, statement: str) -> Iterator[MastraRow]:
        """Yield the rows through a server-side cursor."""
        tables = {name: sql.Identifier(self._schema, name) for name in TABLES}
        with self._connection.cursor("mastra_import", row_factory=psycopg.rows.dict_row) as cursor:
            cursor.itersize = FETCH_ROWS
            cursor.execute(sql.SQL(statement).format(**tables))
            yield from cursor

    def decode_json(self, value: Any) -> Any:
        """Return the value, which psycopg has decoded."""
        return value


class MastraLibsql:
    """A LibSQL file, which has the format of SQLite."""

    insertion_order = "rowid"

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Use an open connection."""
        self._connection = connection

    def list_columns(self, table: str) -> frozenset[str]:
        """Return the columns of a table."""
        rows = self._connection.execute("SELECT name FROM pragma_table_info(?)", [table])
        return frozenset(name for (name,) in rows)

    def time_expression(self, column: str, columns: frozenset[str]) -> str:
        """Return the quoted column; LibSQL stores times as text."""
        alias, _, name = column.rpartition(".")
        return f'{alias}."{name}"' if alias else f'"{name}"'

    def iter_rows(self, statement: str) -> Iterator[MastraRow]:
        """Yield the rows, some at a time."""
        cursor = self._connection.execute(statement.format(**{name: name for name in TABLES}))
        names = [column[0] for column in cursor.description]
        while rows := cursor.fetchmany(FETCH_ROWS):
            for row in rows:
                yield dict(zip(names, row, strict=True))

    def decode_json(self, value: Any) -> Any:
        """Return the value of JSON text or of SQLite's binary JSON."""
        return sqlite_jsonb.decode_json_column(value)


TABLES: Sequence[str] = (
    "mastra_threads",
    "mastra_messages",
    "mastra_resources",
    "mastra_observational_memory",
)


@contextmanager
def open_postgres(url: str, schema: str) -> Iterator[MastraPostgres]:
    """Open a PostgreSQL database in a read-only transaction, which sees one state of the data.

    Args:
        url: A `postgresql://` URL. Error messages leave it out, since it may contain a password.
        schema: The schema with Mastra's tables.

    Raises:
        InvalidInput: The database cannot be reached or read.
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
    """Open a LibSQL file read-only.

    Raises:
        InvalidInput: The file cannot be read.
    """
    # The rows are read in another thread, but never by two threads at the same time.
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


class InvalidRowError(MastraMemoryError):
    """A row of Mastra's tables cannot be imported; the message says why."""


def get_time(row: MastraRow, column: str) -> datetime:
    """Return the time in a column, or raise `InvalidRowError` if there is none."""
    try:
        return times.parse_time(row[column])
    except ValueError:
        raise InvalidRowError(f"{column} is not a valid time") from None


def get_time_or_none(row: MastraRow, column: str) -> datetime | None:
    """Return the time in a column, or None if it is empty.

    Raises:
        InvalidRowError: The column contains something else.
    """
    return None if row.get(column) in (None, "") else get_time(row, column)


def decode_json(database: MastraDatabase, value: Any) -> Any:
    """Return the value of a JSON column, or raise `ValueError` if it is not JSON.

    Mastra encodes some objects twice: the column then contains a JSON string with JSON in it.
    """
    decoded = database.decode_json(value)
    inner = coercion.parse_json(decoded) if isinstance(decoded, str) else None
    return decoded if inner is None else inner
