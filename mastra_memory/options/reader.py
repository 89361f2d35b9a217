"""Read values from merged options, and collect all errors to report them together."""

import math
from collections.abc import Mapping
from datetime import datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from mastra_memory.exceptions import InvalidInput, Issue

MAX_SAFE_INTEGER = 2**53 - 1
"""JavaScript's largest safe integer. Clients send it for "all". Larger numbers are reduced to
it."""


class OptionsReader:
    """Merged options in snake_case, read by dotted path."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw
        self.issues: list[Issue] = []

    def raise_issues(self) -> None:
        """Raise `InvalidInput` if an option is invalid. The error lists all errors."""
        if self.issues:
            detail = "; ".join(f"{issue.field} {issue.message}" for issue in self.issues)
            raise InvalidInput(f"Invalid memory options: {detail}", self.issues)

    def add_error(self, path: str, reason: str) -> None:
        """Record an error. All errors are raised together."""
        self.issues.append(Issue(path, reason))

    def get(self, path: str, default: Any) -> Any:
        """Return the value at the dotted path, or `default` if it is absent."""
        value: Any = self.raw
        for key in path.split("."):
            if not isinstance(value, Mapping) or key not in value:
                return default
            value = value[key]
        return value

    def is_enabled(self, name: str) -> bool:
        """Return whether a feature is on. Its option is a bool or an object."""
        value = self.get(name, False)
        if isinstance(value, Mapping):
            return value.get("enabled", True) is not False
        return self.read_choice(name, (False, True, None)) is True

    def read_choice(self, path: str, allowed: tuple[Any, ...]) -> Any:
        """Return the value at `path`, or the first of `allowed` if it is absent."""
        value = self.get(path, allowed[0])
        for choice in allowed:  # In Python 0 == False, but 0 is not a valid flag.
            if value == choice and isinstance(value, bool) == isinstance(choice, bool):
                return value
        self.add_error(path, f"must be one of {', '.join(map(str, allowed))}")
        return allowed[0]

    def read_whole_number(self, path: str, default: int, minimum: int = 0) -> int:
        """Return a whole number of at least `minimum`."""
        value = self.get(path, default)
        if isinstance(value, int) and not isinstance(value, bool) and value >= minimum:
            return min(value, MAX_SAFE_INTEGER)
        self.add_error(path, f"must be a whole number of at least {minimum}")
        return default

    def read_number(self, path: str) -> float | None:
        """Return a finite number, or None if it is absent."""
        value = self.get(path, None)
        if value is None:
            return None
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
        self.add_error(path, "must be a number")
        return None

    def read_time(self, path: str) -> datetime | None:
        """Return a time, which is a `datetime` or text in ISO 8601, or None if it is absent."""
        value = self.get(path, None)
        if value is None or isinstance(value, datetime):
            return value
        try:
            return datetime.fromisoformat(value)
        except (TypeError, ValueError):
            self.add_error(path, "must be a time such as 2024-05-01T12:00:00Z")
            return None

    def read_time_zone(self, path: str) -> tzinfo | None:
        """Return the time zone with a name such as `Europe/Paris`, or None if it is absent."""
        value = self.get(path, None)
        if value is None or isinstance(value, tzinfo):
            return value
        try:
            return ZoneInfo(value)
        except (TypeError, ValueError, OSError, ZoneInfoNotFoundError):
            self.add_error(path, "must be the name of a time zone such as Europe/Paris")
            return None

    def read_text(self, path: str) -> str | None:
        """Return a text, or None if it is absent."""
        value = self.get(path, None)
        if value is None or isinstance(value, str):
            return value
        self.add_error(path, "must be text")
        return None
