"""Durations in options: milliseconds, or a number with a unit."""

import math
import re
from typing import Any

from mastra_memory.exceptions import InvalidInput

_DURATION = re.compile(r"(\d+(?:\.\d+)?) ?([a-z]+)")
_UNITS = {
    "ms": 1,
    "s": 1_000,
    "m": 60_000,
    "h": 3_600_000,
}
_UNIT_NAMES = {
    "ms": ("ms", "msec", "msecs", "millisecond", "milliseconds"),
    "s": ("s", "sec", "secs", "second", "seconds"),
    "m": ("m", "min", "mins", "minute", "minutes"),
    "h": ("h", "hr", "hrs", "hour", "hours"),
}
DURATION_ERROR = "must be a number of milliseconds, or a number with a unit such as `5m` or `1hr`"


def parse_duration(value: Any) -> float:
    """Return a duration in milliseconds.

    Raises:
        InvalidInput: The value is neither a non-negative number nor a number with a unit.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        if math.isfinite(value) and value >= 0:
            return float(value)
    elif isinstance(value, str) and (match := _DURATION.fullmatch(value.strip().lower())):
        for unit, names in _UNIT_NAMES.items():
            if match[2] in names:
                return float(match[1]) * _UNITS[unit]
    raise InvalidInput(f"A duration {DURATION_ERROR}, not {value!r}")
