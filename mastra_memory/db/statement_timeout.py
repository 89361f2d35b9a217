"""Limit how long the statements of a request or a task may run.

The connection belongs to the host project. A limit therefore applies to one block of code, and the
old value of PostgreSQL's `statement_timeout` is restored after the block.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from django.db import DatabaseError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import Connection, errors
from psycopg.pq import TransactionStatus

from mastra_memory.db import routing

_milliseconds: WeakKeyDictionary[Connection[Any], int] = WeakKeyDictionary()
"""The value of each connection. It is read once per connection and updated with every change, so
that a session which already has the right value costs no statement."""


@contextmanager
def limit_statements(seconds: float | None) -> Iterator[None]:
    """Cancel each statement of the block that runs for more than `seconds`; 0 means no limit.

    The statement then fails with an `OperationalError`; see `is_statement_timeout`. None leaves
    the session as it is, and so does a connection with `DISABLE_SERVER_SIDE_CURSORS`: behind a
    transaction pooler a session's setting would reach other clients. Set the limit on the
    database role there.
    """
    connection = routing.get_connection()
    if seconds is None or connection.settings_dict.get("DISABLE_SERVER_SIDE_CURSORS"):
        yield
        return
    connection.close_if_health_check_failed()
    connection.ensure_connection()
    raw = connection.connection
    # In an aborted transaction nothing can be set, and no statement will run either.
    if _is_aborted(connection) or (
        (before := _get_milliseconds(connection)) == (wanted := round(seconds * 1000))
    ):
        yield
        return
    _set_milliseconds(connection, wanted)
    try:
        yield
    finally:
        _restore(connection, raw, before)


def is_statement_timeout(error: BaseException) -> bool:
    """Return True if the database cancelled the statement, which is what a time-out does."""
    return isinstance(error, OperationalError) and isinstance(error.__cause__, errors.QueryCanceled)


def _restore(connection: BaseDatabaseWrapper, raw: Connection[Any], before: int) -> None:
    if connection.connection is not raw or raw.closed:
        return
    if _is_aborted(connection):
        # The transaction began before the block, so that its rollback restores the value.
        _milliseconds[raw] = before
        return
    try:
        _set_milliseconds(connection, before)
    except DatabaseError:
        connection.close()  # The next user of this connection must not inherit the limit.


def _is_aborted(connection: BaseDatabaseWrapper) -> bool:
    """Return True if the surrounding transaction can only be rolled back."""
    if connection.in_atomic_block and connection.get_rollback():
        return True
    return bool(connection.connection.info.transaction_status == TransactionStatus.INERROR)


def _get_milliseconds(connection: BaseDatabaseWrapper) -> int:
    raw = connection.connection
    if raw not in _milliseconds:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT setting::integer FROM pg_settings WHERE name = 'statement_timeout'"
            )
            (_milliseconds[raw],) = cursor.fetchone()
    return _milliseconds[raw]


def _set_milliseconds(connection: BaseDatabaseWrapper, value: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('statement_timeout', %s, FALSE)", [str(value)])
    _milliseconds[connection.connection] = value
