"""Read and write times as in the API: ISO 8601 in UTC with milliseconds and a `Z`."""

from datetime import UTC, datetime, tzinfo
from datetime import timezone as fixed_offset
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
from django.utils import timezone


def now() -> datetime:
    """Return the current time, truncated to milliseconds."""
    return truncate_to_milliseconds(datetime.now(UTC))


def truncate_to_milliseconds(moment: datetime) -> datetime:
    """Return the time in UTC, truncated to milliseconds. A naive time is taken as UTC."""
    moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def parse_time(value: Any) -> datetime:
    """Return the time from ISO 8601 text, milliseconds since 1970, or a datetime.

    Text without an offset is in UTC. A naive datetime is taken as UTC, or as
    `TIME_ZONE` if `USE_TZ` is False, as in Django.

    Raises:
        ValueError: It is something else, or its year is not between 1 and 9999.
    """
    try:
        if isinstance(value, datetime):
            return truncate_to_milliseconds(value if settings.USE_TZ else add_timezone(value))
        if isinstance(value, int | float) and not isinstance(value, bool):
            return truncate_to_milliseconds(datetime.fromtimestamp(value / 1000, UTC))
        if isinstance(value, str) and value[:4].isdigit() and "-" in value:
            return truncate_to_milliseconds(datetime.fromisoformat(value.upper()))
    except (OverflowError, OSError) as error:
        raise ValueError("out of range") from error
    raise ValueError("expected ISO 8601 text or epoch milliseconds")


def format_time(moment: datetime) -> str:
    """Return the time in UTC as text, like `2024-01-01T00:00:00.000Z`.

    A time without a time zone is taken as UTC.
    """
    if moment.tzinfo not in (None, UTC):
        moment = moment.astimezone(UTC)
    return moment.isoformat(timespec="milliseconds")[:23] + "Z"


def add_timezone(moment: datetime) -> datetime:
    """Return a time without a time zone as one in `TIME_ZONE`, and any other time as it is.

    On the night when the clocks are put back, the attribute `fold` distinguishes the two hours.
    """
    if moment.tzinfo is not None:
        return moment
    return moment.replace(tzinfo=timezone.get_default_timezone())


def fix_offset(moment: datetime) -> datetime:
    """Return the same time with the offset that its time zone has at that time.

    Python compares and subtracts two times of one zone by their clock times, which is wrong on
    nights when the clocks change. Times with fixed offsets are compared correctly.
    """
    offset = moment.utcoffset()
    return moment if offset is None else moment.replace(tzinfo=fixed_offset(offset))


def get_timezone(name: str) -> tzinfo:
    """Return the time zone with this IANA name, or UTC if there is none."""
    try:
        return ZoneInfo(name) if name else UTC
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC
