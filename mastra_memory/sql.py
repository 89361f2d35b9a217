"""Statements where the ORM would be slower or could not say it: run one, get its rows."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.db import connection, transaction

LATER = "greatest(clock_timestamp()::timestamptz(3), updated_at + interval '1 millisecond')"
"""A thread's new `updated_at`, always later than the old one."""


def instant(column: str) -> str:
    """A time column as the wire shows it: text is read several times faster than a datetime."""
    return f"""to_char({column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')"""


Params = Sequence[Any]
Row = tuple[Any, ...]


def rows(statement: str, params: Params = ()) -> list[Row]:
    """Run one statement and return all its rows."""
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        return cursor.fetchall()


def row(statement: str, params: Params = ()) -> Row | None:
    """Run one statement and return its first row, None without one."""
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        return cursor.fetchone()


def execute(statement: str, params: Params = ()) -> int:
    """Run one statement and return how many rows it touched."""
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        return cursor.rowcount


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
def streamed(statement: str, params: Params = (), *, batch: int = 500) -> Iterator[Iterable[Row]]:
    """Rows read in batches through a server-side cursor, so that memory stays small."""
    with transaction.atomic(), connection.chunked_cursor() as cursor:
        cursor.itersize = batch
        cursor.execute(statement, params)
        yield cursor
