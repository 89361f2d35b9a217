"""Points in time as the wire knows them: UTC, milliseconds, ISO 8601 with a `Z`."""

from datetime import UTC, datetime
from typing import Any


def now() -> datetime:
    """This moment, in whole milliseconds."""
    return truncate_to_milliseconds(datetime.now(UTC))


def truncate_to_milliseconds(moment: datetime) -> datetime:
    """The moment in UTC, finer digits cut off; a naive one is taken as UTC."""
    moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def parse_time(value: Any) -> datetime:
    """A moment from ISO 8601 text, epoch milliseconds, or a datetime.

    Raises `ValueError` for anything else and for years outside 1 to 9999.
    """
    try:
        if isinstance(value, datetime):
            return truncate_to_milliseconds(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return truncate_to_milliseconds(datetime.fromtimestamp(value / 1000, UTC))
        if isinstance(value, str) and value[:4].isdigit() and "-" in value:
            return truncate_to_milliseconds(datetime.fromisoformat(value.upper()))
    except (OverflowError, OSError) as error:
        raise ValueError("out of range") from error
    raise ValueError("expected ISO 8601 text or epoch milliseconds")


def format_time(moment: datetime) -> str:
    """`2024-01-01T00:00:00.000Z`; the moment must be in UTC, as the database answers it."""
    return moment.isoformat(timespec="milliseconds")[:23] + "Z"
