"""Read and write times as in the API: ISO 8601 in UTC with milliseconds and a `Z`."""

from datetime import UTC, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


def now() -> datetime:
    """Return the current time, truncated to milliseconds."""
    return truncate_to_milliseconds(datetime.now(UTC))


def truncate_to_milliseconds(moment: datetime) -> datetime:
    """Return the time in UTC, truncated to milliseconds. A naive time is taken as UTC."""
    moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def parse_time(value: Any) -> datetime:
    """Return the time from ISO 8601 text, milliseconds since 1970, or a datetime.

    Raises:
        ValueError: It is something else, or its year is not between 1 and 9999.
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
    """Return the time in UTC as text, like `2024-01-01T00:00:00.000Z`."""
    return moment.isoformat(timespec="milliseconds")[:23] + "Z"


def get_timezone(name: str) -> tzinfo:
    """Return the time zone with this IANA name, or UTC if there is none."""
    try:
        return ZoneInfo(name) if name else UTC
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC
