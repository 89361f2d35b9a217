"""Run SQL statements that are slower with the ORM or that it cannot express."""

import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

from psycopg import Cursor, adapters, postgres
from psycopg.adapt import Dumper
from psycopg.pq import Format

from mastra_memory.db import routing
from mastra_memory.exceptions import InvalidInput, Issue

NEXT_UPDATED_AT = (
    "greatest(clock_timestamp()::timestamptz(3), updated_at + interval '1 millisecond')"
)
"""The new `updated_at` of a thread: always later than the old one, even within a millisecond."""

DUE_TIME = "clock_timestamp() + interval '1 ms'"
"""The time up to which work is due. The stored times may be rounded up to the next millisecond."""


def format_time(column: str) -> str:
    """Return SQL that formats a time column as the API shows it: `2024-01-01T00:00:00.000Z`.

    PostgreSQL formats a time several times faster than Python parses and formats it.
    """
    return f"""to_char({column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')"""


def in_utc(column: str) -> str:
    """Return SQL for a time column in UTC, without a time zone.

    Python reads the same value from every connection, whatever its time zone and `USE_TZ` are.
    """
    return f"({column} AT TIME ZONE 'UTC')"


MESSAGE_COLUMNS = f"""m.id, m.thread_id, m.resource_id, m.role, m.type, m.content::text,
    {format_time("m.created_at")} AS created, m.sequence, m.signal"""
"""The columns of a `StoredMessage`, in its order. JSON and times stay text: they are passed on to
clients unparsed."""


class TextArray(list[str]):
    """A list of texts that is sent as one `text[]` parameter, in the binary format.

    The database reads it in half the time that a JSON document or an array
    in the text format takes.
    """


class _TextArrayDumper(Dumper):
    """Write the binary format of arrays (`array_recv` in PostgreSQL's arrayfuncs.c)."""

    format = Format.BINARY
    oid = postgres.types["text"].array_oid

    _head = struct.Struct("!iiIii")
    _length = struct.Struct("!i")

    def dump(self, obj: TextArray) -> bytes:
        """Return the array as bytes.

        The header says: one dimension, no nulls, the type and number of the elements, the first
        index. Then each text follows after its length in bytes.
        """
        pieces = [self._head.pack(1, 0, postgres.types["text"].oid, len(obj), 1)]
        for text in obj:
            data = text.encode()
            pieces += self._length.pack(len(data)), data
        return b"".join(pieces)


adapters.register_dumper(TextArray, _TextArrayDumper)

SqlParams = Sequence[Any]
SqlRow = tuple[Any, ...]


class Extension(NamedTuple):
    """Table expressions that extend a statement, to do more in the same round trip."""

    expressions: str
    """Separated by commas."""
    columns: str
    """Further columns of the result."""
    params: SqlParams
    """The parameters of the expressions."""


MAX_PAGE = 2**53 - 1
"""The largest OFFSET: JavaScript's largest safe integer, and within PostgreSQL's `bigint`."""


def get_limit_offset(page: int, per_page: int | Literal[False]) -> tuple[int | None, int]:
    """Return LIMIT and OFFSET of a page. `per_page=False` means all rows.

    Raises:
        InvalidInput: `page` or `per_page` is not a whole number of at least 0, or is too large.
    """
    for name, value in (("page", page), ("perPage", 0 if per_page is False else per_page)):
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or not 0 <= value <= MAX_PAGE:
            reason = "must be a whole number of at least 0"
            raise InvalidInput(f"{name} {reason}", [Issue(name, reason)])
    if per_page is False:
        if page:
            raise InvalidInput("page must be 0 when perPage is false", [Issue("page", "must be 0")])
        return None, 0
    return per_page, min(page * per_page, MAX_PAGE)


def fetch_all(statement: str, params: SqlParams = ()) -> list[SqlRow]:
    """Run a statement and return all its rows."""
    with routing.get_connection().cursor() as cursor:
        cursor.execute(statement, params)
        rows: list[SqlRow] = cursor.fetchall()
        return rows


def fetch_one(statement: str, params: SqlParams = ()) -> SqlRow | None:
    """Run a statement and return its first row, or None if it has none."""
    with routing.get_connection().cursor() as cursor:
        cursor.execute(statement, params)
        row: SqlRow | None = cursor.fetchone()
        return row


def fetch_all_prepared(statement: str, params: SqlParams = ()) -> list[SqlRow]:
    """Run a statement that is sent very often with the same text, and return all its rows.

    Django's cursor inserts the parameters into the text, so the server plans each statement again.
    psycopg's own cursor sends them separately: the server plans the statement once per connection,
    if the database settings allow prepared statements (`OPTIONS: {"prepare_threshold": n}`).
    Django's default does not allow them, because not every connection pooler supports them.
    """
    connection = routing.get_connection()
    connection.close_if_health_check_failed()
    connection.ensure_connection()
    wrap = connection.make_debug_cursor if connection.queries_logged else connection.make_cursor
    # Django can bind all parameters on the server (OPTIONS: {"server_side_binding": True}). That
    # would change how the ORM's statements are typed, in the host project's own apps too.
    unwrapped: Any = Cursor(connection.connection)
    with wrap(unwrapped) as cursor:
        cursor.execute(statement, params)
        rows: list[SqlRow] = cursor.fetchall()
        return rows


def execute(statement: str, params: SqlParams = ()) -> int:
    """Run a statement and return the number of rows that it inserted, changed or deleted."""
    with routing.get_connection().cursor() as cursor:
        cursor.execute(statement, params)
        count: int = cursor.rowcount
        return count


def clear_query_log() -> None:
    """Clear the list of statements that Django keeps while DEBUG is on.

    A long job would fill the memory with them.
    """
    connection = routing.get_connection()
    if not connection.force_debug_cursor:  # Set while a test counts statements.
        connection.queries_log.clear()


class Where:
    """Conditions joined by AND, with their parameters in order."""

    def __init__(self) -> None:
        self.conditions: list[str] = []
        self.params: list[Any] = []

    def add(self, condition: str, *params: Any) -> None:
        """Add a condition, with a `%s` for each parameter."""
        self.conditions.append(condition)
        self.params.extend(params)

    def __str__(self) -> str:
        return " AND ".join(self.conditions) or "TRUE"


@contextmanager
def stream(
    statement: str, params: SqlParams = (), *, batch: int = 500
) -> Iterator[Iterable[SqlRow]]:
    """Read rows through a server-side cursor in batches, so that memory holds only one batch.

    Args:
        statement: The SQL to run.
        params: Its parameters.
        batch: How many rows are read at once.
    """
    with routing.atomic(), routing.get_connection().chunked_cursor() as cursor:
        cursor.cursor.itersize = batch
        cursor.execute(statement, params)
        yield cursor
