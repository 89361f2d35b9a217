"""Statements where the ORM would be slower or could not say it: run one, get its rows."""

import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction
from psycopg import Cursor, adapters, postgres
from psycopg.adapt import Dumper
from psycopg.pq import Format

from mastra_memory.exceptions import InvalidInput, Issue

NEXT_UPDATED_AT = (
    "greatest(clock_timestamp()::timestamptz(3), updated_at + interval '1 millisecond')"
)
"""A thread's new `updated_at`, always later than the old one."""

DUE_TIME = "clock_timestamp() + interval '1 ms'"
"""What is due by then is due now: times are kept to the millisecond, and rounded up or down."""


def format_time(column: str) -> str:
    """A time column as the wire shows it: text is read several times faster than a datetime."""
    return f"""to_char({column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')"""


class TextArray(list[str]):
    """A list of texts as a parameter that goes to the server as `text[]`, at little cost."""


class _TextsDumper(Dumper):
    """Texts in the binary form of arrays (PostgreSQL's `array_recv`)."""

    format = Format.BINARY
    oid = postgres.types["text"].array_oid

    _head = struct.Struct("!iiIii")
    _length = struct.Struct("!i")

    def dump(self, obj: TextArray) -> bytes:
        """One dimension, counted from 1, without nulls; each text after its length in bytes."""
        pieces = [self._head.pack(1, 0, postgres.types["text"].oid, len(obj), 1)]
        for text in obj:
            data = text.encode()
            pieces += self._length.pack(len(data)), data
        return b"".join(pieces)


adapters.register_dumper(TextArray, _TextsDumper)

SqlParams = Sequence[Any]
SqlRow = tuple[Any, ...]

MAX_PAGE = 2**53 - 1
"""JavaScript's largest whole number; pages beyond it are nobody's intention."""


def get_limit_offset(page: int, per_page: int | Literal[False]) -> tuple[int | None, int]:
    """LIMIT and OFFSET of a page; `per_page` False means everything.

    Raises `InvalidInput` for a page that cannot be.
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
    """Run one statement and return all its rows."""
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        return cursor.fetchall()


def fetch_one(statement: str, params: SqlParams = ()) -> SqlRow | None:
    """Run one statement and return its first row, None without one."""
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        return cursor.fetchone()


def fetch_all_prepared(statement: str, params: SqlParams = ()) -> list[SqlRow]:
    """Run a statement whose text is sent again and again, and return all its rows.

    Unlike Django's default cursor, psycopg's own one lets the server bind the parameters, so that
    a connection plans the statement once. It does so where the database settings allow prepared
    statements (`OPTIONS: {"prepare_threshold": n}`); Django's default does not allow them, because
    not every connection pooler supports them.
    """
    database = connections[DEFAULT_DB_ALIAS]  # looked up once: it is slow on this hot path
    database.close_if_health_check_failed()
    database.ensure_connection()
    wrap = database.make_debug_cursor if database.queries_logged else database.make_cursor
    # Binding on the server for all of Django (OPTIONS: {"server_side_binding": True}) would change
    # how the ORM's statements are typed, in a host project's own apps too.
    own_cursor: Any = Cursor(database.connection)
    with wrap(own_cursor) as cursor:
        cursor.execute(statement, params)
        return cursor.fetchall()


def execute(statement: str, params: SqlParams = ()) -> int:
    """Run one statement and return how many rows it touched."""
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        return cursor.rowcount


def clear_query_log() -> None:
    """Drop the statements that Django remembers while DEBUG is on: a long job has too many."""
    if not connection.force_debug_cursor:  # else somebody is looking at them
        connection.queries_log.clear()


class Where:
    """Conditions joined by AND, with their parameters in order."""

    def __init__(self) -> None:
        self.conditions: list[str] = []
        self.params: list[Any] = []

    def add(self, condition: str, *params: Any) -> None:
        """One more condition; `%s` stands for each parameter."""
        self.conditions.append(condition)
        self.params.extend(params)

    def __str__(self) -> str:
        return " AND ".join(self.conditions) or "TRUE"


@contextmanager
def stream(
    statement: str, params: SqlParams = (), *, batch: int = 500
) -> Iterator[Iterable[SqlRow]]:
    """Rows read in batches through a server-side cursor, so that memory stays small."""
    with transaction.atomic(), connection.chunked_cursor() as cursor:
        cursor.cursor.itersize = batch
        cursor.execute(statement, params)
        yield cursor
