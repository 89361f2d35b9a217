"""Parsing and formatting times."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from mastra_memory.db import times

FIRST = datetime(2024, 1, 1, 0, 0, 1, 123000, UTC)


@pytest.mark.parametrize(
    "value",
    [
        "2024-01-01T00:00:01.123Z",
        "2024-01-01T00:00:01.123999Z",
        "2024-01-01T02:00:01.123+02:00",
        "2024-01-01 00:00:01.123",
        "2024-01-01t00:00:01.123z",
        1704067201123,
        1704067201123.9,
        datetime(2024, 1, 1, 0, 0, 1, 123999),
        datetime(2024, 1, 1, 2, 0, 1, 123000, timezone(timedelta(hours=2))),
    ],
)
def test_parse_time__accepts_every_form_of_a_time(value: Any) -> None:
    assert times.parse_time(value) == FIRST
    assert times.format_time(times.parse_time(value)) == "2024-01-01T00:00:01.123Z"


@pytest.mark.parametrize(
    "value",
    [
        "",
        "not-a-date",
        "2024-02-30",
        "2024-13-01",
        "0000-01-01",
        "10000-01-01",
        "+020000-01-01T00:00:00Z",
        "1704067201123",
        "2024",
        "-2024-01-01",
        "2024-01-01T00:00:00\ufffd",
        "2024-01-01\ud800",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        True,
        None,
        [],
        {},
        float("nan"),
        float("inf"),
        10**400,
        -(10**400),
        1e300,
        253402300800000,
        -62135596800001,
    ],
)
def test_parse_time__refuses_everything_else(value: Any) -> None:
    with pytest.raises(ValueError):
        times.parse_time(value)


@pytest.mark.parametrize("value", ["0001-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"])
def test_format_time__the_first_and_last_times_are_read_back(value: str) -> None:
    assert times.format_time(times.parse_time(value)) == value


def test_now__has_whole_milliseconds() -> None:
    assert times.now().microsecond % 1000 == 0
