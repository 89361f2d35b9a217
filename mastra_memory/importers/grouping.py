"""Group records by conversation, on disk. In a file of messages a thread may be anywhere."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import groupby
from typing import Any, TypeVar

from mastra_memory.db import json_text

K = TypeVar("K")

MAX_GROUP_BYTES = 64 << 20
"""Longer groups are cut, so that memory stays bounded."""

_CREATE = """CREATE TABLE groups (id INTEGER PRIMARY KEY, key TEXT UNIQUE, bytes INTEGER);
    CREATE TABLE records (place INTEGER PRIMARY KEY, group_id INTEGER, data BLOB)"""
# The first record of a key creates its group, so the ids of groups are in the order of the source.
_ADD_GROUP = """INSERT INTO groups (key, bytes) VALUES (?, ?)
    ON CONFLICT (key) DO UPDATE SET bytes = bytes + excluded.bytes RETURNING id, bytes"""
_ADD_RECORD = "INSERT INTO records (group_id, data) VALUES (?, ?)"
_READ = """SELECT key, data FROM records JOIN groups ON id = group_id ORDER BY group_id, place"""


class RecordGroups:
    """JSON values in groups. They are kept in a temporary file, which is deleted at the end."""

    def __init__(self) -> None:
        """Create the file."""
        # SQLite deletes a database without a name when it is closed. The generator that uses it may
        # be closed by another thread.
        self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._database.executescript(f"PRAGMA synchronous = OFF; {_CREATE}")

    def add(self, key: str, value: Any) -> bool:
        """Add a value to the group of a key. Return False if the group is full."""
        data = json_text.dumps(value).encode()
        group_id, size = self._database.execute(_ADD_GROUP, (key, len(data))).fetchone()
        if size > MAX_GROUP_BYTES:
            return False
        self._database.execute(_ADD_RECORD, (group_id, data))
        return True

    def iter_groups(self) -> Iterator[tuple[str, list[Any]]]:
        """Yield each key with its values, both in the order in which they were added."""
        with closing(self._database.execute(_READ)) as rows:
            for key, group in groupby(rows, key=lambda row: row[0]):
                yield key, [json_text.loads(data) for _, data in group]

    def close(self) -> None:
        """Delete the file."""
        self._database.close()


def sort_by_time(items: Iterable[tuple[K | None, Any]]) -> list[Any]:
    """Return the values of pairs of a time and a value, sorted by time.

    A value without a time keeps its place after the preceding value.
    """
    times: list[tuple[K | None, Any]] = []
    last: K | None = None
    for time, value in items:
        last = last if time is None else time
        times.append((last, value))
    untimed = [value for time, value in times if time is None]
    timed = [(time, value) for time, value in times if time is not None]
    return untimed + [value for _, value in sorted(timed, key=lambda pair: pair[0])]  # type: ignore[arg-type, return-value]
