"""Change rows in another connection at a chosen moment of a write."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import psycopg
from django.db import connection

Moment = Literal["before", "during"]
"""Commit the change before the statement begins, or while the statement waits for it."""
LOCK_TIMEOUT = "20ms"
"""If the change waits at all, it waits for the write, which waits for the change: give it up."""
POLL_SECONDS = 0.002


def connect_to_test_database(database: str | None = None, **options: Any) -> psycopg.Connection:
    """Connect to the database of this test, or to another one of its server, without Django."""
    parameters = connection.get_connection_params()
    names = ("host", "port", "user", "password")
    chosen = {name: parameters[name] for name in names if parameters.get(name)}
    return psycopg.connect(**chosen, dbname=database or parameters["dbname"], **options)


class Interruption:
    """Run `change` in another connection at one of the statements of a block.

    Attributes:
        was_reached: The block had as many statements.
        was_blocked: The change did not happen, because the block had locked its rows.
    """

    def __init__(self, change: str, params: list[Any], position: int, moment: Moment) -> None:
        self.change, self.params = change, params
        self.position, self.moment = position, moment
        self.count = 0
        self.was_reached = self.was_blocked = False

    @contextmanager
    def install(self) -> Iterator[None]:
        """Interrupt the statements of the block."""
        with connection.execute_wrapper(self._execute):
            yield

    def _execute(self, execute: Any, statement: str, params: Any, many: bool, context: Any) -> Any:
        self.count += 1
        if self.count - 1 != self.position:
            return execute(statement, params, many, context)
        self.was_reached = True
        with connect_to_test_database() as other:
            other.execute(f"SET lock_timeout = '{LOCK_TIMEOUT}'")
            other.commit()
            try:
                other.execute(self.change, self.params)
            except psycopg.errors.LockNotAvailable:
                self.was_blocked = True
                other.rollback()
            if self.moment == "before" or self.was_blocked:
                other.commit()
                return execute(statement, params, many, context)
            ended = threading.Event()
            pid = connection.connection.info.backend_pid
            thread = threading.Thread(target=_commit_when_blocking, args=(other, pid, ended))
            thread.start()
            try:
                return execute(statement, params, many, context)
            finally:
                ended.set()
                thread.join()


def _commit_when_blocking(other: psycopg.Connection, pid: int, ended: threading.Event) -> None:
    """Commit as soon as the backend `pid` waits for this connection, or when it has ended."""
    while not ended.is_set():
        row = other.execute("SELECT cardinality(pg_blocking_pids(%s)) > 0", [pid]).fetchone()
        if row is not None and row[0]:
            break
        time.sleep(POLL_SECONDS)
    other.commit()
