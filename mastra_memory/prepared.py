"""A cursor for statements that are sent again and again, and stay prepared in the database.

psycopg's cursor waits for an answer in small steps, and takes Python's lock anew after each. Where
threads share that lock every step may lose it: so the whole question is one call of libpq here.
"""

import re
import secrets
import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

from psycopg import Connection, OperationalError, errors
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import ConnStatus, DiagnosticField, ExecStatus, Format, TransactionStatus
from psycopg.pq.abc import PGresult

MOST = 100
"""Statements kept on one connection; then the oldest goes."""

_LOST = {b"26000", b"0A000"}
"""SQLSTATE of a statement that is gone (ROLLBACK, DISCARD) or whose tables have changed."""

_Key = tuple[bytes, tuple[int, ...]]
_names: WeakKeyDictionary[Connection[Any], dict[_Key, bytes]] = WeakKeyDictionary()


def can_ask(connection: Connection[Any]) -> bool:
    """Tell whether `PreparedCursor` may be used.

    Not where the connection prepares nothing, for the sake of a pooler; and not within a
    transaction, where a statement that is found lost could not be tried again; and not where
    greenlets share the thread, which one call would stop all together.
    """
    return (
        connection.prepare_threshold is not None
        and connection.autocommit
        and connection.pgconn.transaction_status == TransactionStatus.IDLE
        and "gevent.monkey" not in sys.modules
        and "eventlet.patcher" not in sys.modules
    )


class PreparedCursor:
    """What Django's wrapper of cursors needs, to ask one question. Check `can_ask` first."""

    def __init__(self, connection: Connection[Any]) -> None:
        self.connection = connection
        self.rows: list[tuple[Any, ...]] = []

    def execute(self, statement: str, params: Sequence[Any] = ()) -> None:
        """Run the statement and keep its rows in `rows`; `%s` or `%b` stands for each parameter.

        Raises psycopg's errors, as its own cursor does. Not to be interrupted before the answer.
        """
        text, formats = _numbered(statement)
        adapted = Transformer(self.connection)
        values = adapted.dump_sequence(params, formats)
        key = text, adapted.types or ()
        result = self._ask(key, values, adapted.formats)
        if result.error_field(DiagnosticField.SQLSTATE) in _LOST:
            lost = _names[self.connection].pop(key)
            self.connection.pgconn.exec_(b"DEALLOCATE " + lost)  # or else it is gone already
            result = self._ask(key, values, adapted.formats)
        self._check(result, ExecStatus.TUPLES_OK)
        adapted.set_pgresult(result)
        self.rows = adapted.load_rows(0, result.ntuples, tuple)

    def _ask(self, key: _Key, values: Any, formats: Any) -> PGresult:
        names = _names.setdefault(self.connection, {})
        name = names.get(key) or self._prepare(names, key)
        return self.connection.pgconn.exec_prepared(name, values, formats, Format.TEXT)

    def _prepare(self, names: dict[_Key, bytes], key: _Key) -> bytes:
        if len(names) >= MOST:
            oldest = names.pop(next(iter(names)))
            self.connection.pgconn.exec_(b"DEALLOCATE " + oldest)
        # No other name is the same, even where a pooler mixes up the connections of processes.
        name = b"mastra_memory_" + secrets.token_hex(8).encode()
        self._check(self.connection.pgconn.prepare(name, *key), ExecStatus.COMMAND_OK)
        names[key] = name
        return name

    def _check(self, result: PGresult, expected: ExecStatus) -> None:
        if result.status == expected:
            return
        if self.connection.pgconn.status == ConnStatus.BAD:
            raise OperationalError(result.get_error_message())
        raise errors.error_from_result(result)


@lru_cache(maxsize=1000)
def _numbered(statement: str) -> tuple[bytes, list[PyFormat]]:
    """The statement with `$1` for the first `%s` or `%b`, and the format each asks for."""
    formats: list[PyFormat] = []

    def number(mark: re.Match[str]) -> str:
        if mark[0] == "%%":
            return "%"
        formats.append(PyFormat.BINARY if mark[0] == "%b" else PyFormat.AUTO)
        return f"${len(formats)}"

    return re.sub("%[sb%]", number, statement).encode(), formats
