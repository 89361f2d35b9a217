"""What the rows of Mastra's tables have in common."""

from datetime import datetime
from typing import Any

from mastra_memory.db import times
from mastra_memory.exceptions import MastraMemoryError
from mastra_memory.importers import coercion
from mastra_memory.importers.formats.mastra_databases import Row, Store


class Refused(MastraMemoryError):
    """A row cannot be taken; the message says why."""


def moment_of(row: Row, column: str) -> datetime:
    """The moment in the column. Raises `Refused` when there is none."""
    try:
        return times.parse(row[column])
    except ValueError:
        raise Refused(f"{column} cannot be read") from None


def moment_or_none(row: Row, column: str) -> datetime | None:
    """The moment in the column, None where it is empty. Raises `Refused` for what is no moment."""
    return None if row.get(column) in (None, "") else moment_of(row, column)


def json_of(store: Store, value: Any) -> Any:
    """What a column of JSON says. Raises `ValueError` for what is none.

    Mastra writes some objects as the text of their JSON, inside of JSON.
    """
    found = store.json(value)
    inner = coercion.json_or_none(found) if isinstance(found, str) else None
    return found if inner is None else inner
