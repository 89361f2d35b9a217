"""Query parameters in every form that Mastra's clients, old and new, send them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, TypeVar

from django.http import QueryDict

from mastra_memory.db import json_text, times
from mastra_memory.db.sql import MAX_PAGE
from mastra_memory.exceptions import InvalidInput, Issue
from mastra_memory.types import Include, MessageFilter

MAX_INCLUDES = 1_000
"""Entries that one `include` may have."""

T = TypeVar("T", bound=str)

_ABSENT: Any = object()


def fault(field: str, message: str) -> InvalidInput:
    """A refusal of one query parameter."""
    return InvalidInput(f"Invalid query parameters: {field}: {message}", [Issue(field, message)])


class Params:
    """Reads a query string; every reader raises `InvalidInput` naming the parameter."""

    def __init__(self, query: QueryDict) -> None:
        self.query = query

    def text(self, name: str) -> str | None:
        """The text, None when it is absent or empty."""
        given = self.query.getlist(name)
        if len(given) > 1:
            raise fault(name, "expected one value, received several")
        return json_text.clean_text(given[0]) if given and given[0] else None

    def required(self, name: str) -> str:
        """The text; refused when it is absent or empty."""
        value = self.text(name)
        if value is None:
            raise fault(name, f"is required; add ?{name}=…")
        return value

    def whole(self, name: str, default: int, *, minimum: int = 0) -> int:
        """A whole number of at least `minimum`."""
        given = self.text(name)
        if given is None:
            return default
        try:
            # Python alone reads 1_000 as a number, and digits of other scripts
            number = float(given.replace("_", "?").encode("ascii", "replace"))
            whole = int(number)
        except (ValueError, OverflowError):
            raise fault(name, "expected a whole number") from None
        if whole != number or not minimum <= whole <= MAX_PAGE:
            raise fault(name, f"expected a whole number of at least {minimum}")
        return whole

    def flag(self, name: str) -> bool:
        """`true` or `false`; false when absent."""
        given = self.text(name)
        if given not in (None, "true", "false"):
            raise fault(name, "expected true or false")
        return given == "true"

    def choice(self, name: str, allowed: tuple[T, ...]) -> T:
        """One of these words; the first when absent."""
        given = self.text(name)
        for word in allowed:
            if given == word or (given is None and word is allowed[0]):
                return word
        raise fault(name, f"expected one of {', '.join(allowed)}")

    def moment(self, name: str) -> datetime | None:
        """A point in time, None when absent."""
        return _moment(self.text(name), name)

    def json(self, name: str) -> Any:
        """A parameter sent as JSON text; what is no JSON comes back as the text it is."""
        given = self.query.getlist(name)
        if not given:
            return _ABSENT
        if len(given) > 1:
            raise fault(name, "expected one value, received several")
        try:
            return json_text.loads(str(given[0]))
        except InvalidInput:
            return json_text.clean_text(str(given[0]))

    def bracketed(self, name: str) -> dict[str, str]:
        """`name[key]=value` pairs, values as text; deeper brackets are ignored."""
        start = f"{name}["
        found: dict[str, str] = {}
        for key, values in self.query.lists():
            if key.startswith(start) and key.endswith("]") and "[" not in key[len(start) :]:
                if len(values) > 1:
                    raise fault(key, "expected one value, received several")
                found[key[len(start) : -1]] = json_text.clean_text(str(values[0]))
        return found

    def json_object(self, name: str) -> dict[str, Any] | None:
        """A JSON object, None when absent."""
        value = self.json(name)
        return None if value is _ABSENT else _object(value, name)

    def json_list(self, name: str) -> list[Any]:
        """A JSON list, empty when absent."""
        value = self.json(name)
        if value is _ABSENT:
            return []
        if not isinstance(value, list):
            raise fault(name, "expected a list")
        return value

    def metadata(self) -> dict[str, Any] | None:
        """The metadata filter of a thread list: JSON, or brackets with text values."""
        given = self.json_object("metadata")
        return given if given is not None else (self.bracketed("metadata") or None)

    def order(
        self, allowed: tuple[str, ...], *, legacy: bool = False
    ) -> tuple[str, Literal["ASC", "DESC"] | None] | None:
        """Field and direction of `orderBy`; None when no order was asked for.

        JSON, brackets, or where `legacy` the field's name with `sortDirection` beside it. Broken
        JSON is ignored, as Mastra ignores it, and elsewhere all text. The direction is None where
        only the field is named.
        """
        value = self.json("orderBy")
        if isinstance(value, str):
            value = self._legacy_order(value) if legacy else _ABSENT
        if value is _ABSENT:
            value = self.bracketed("orderBy") or _ABSENT
        if value is _ABSENT:
            return None
        value = _object(value, "orderBy")
        field = value.get("field", allowed[0])
        if field not in allowed:
            raise fault("orderBy.field", f"expected one of {', '.join(allowed)}")
        direction = value.get("direction")
        if direction not in (None, "ASC", "DESC"):
            raise fault("orderBy.direction", "expected ASC or DESC")
        return field, direction

    def _legacy_order(self, field: str) -> Any:
        if not field or field.lstrip().startswith(("{", "[")):
            return _ABSENT
        direction = self.text("sortDirection")
        return {"field": field} | ({"direction": direction} if direction else {})

    def message_filter(self) -> MessageFilter | None:
        """The `filter` of a message list."""
        given = self.json_object("filter")
        if given is None:
            return None
        span = _object(given.get("dateRange", {}), "filter.dateRange")
        roles = given.get("roles")
        if not (roles is None or (isinstance(roles, list) and all(map(_is_text, roles)))):
            raise fault("filter.roles", "expected a list of roles")
        return MessageFilter(
            start=_moment(span.get("start"), "filter.dateRange.start"),
            end=_moment(span.get("end"), "filter.dateRange.end"),
            start_exclusive=_flag(span.get("startExclusive"), "filter.dateRange.startExclusive"),
            end_exclusive=_flag(span.get("endExclusive"), "filter.dateRange.endExclusive"),
            metadata=_object(given.get("metadata", {}), "filter.metadata"),
            roles=roles,
        )

    def includes(self, largest: int) -> list[Include]:
        """The `include` of a message list, no side of a window larger than `largest`."""
        given = self.json("include")
        if given is _ABSENT:
            return []
        if not isinstance(given, list):
            raise fault("include", "expected a list")
        if len(given) > MAX_INCLUDES:
            raise fault("include", f"expected at most {MAX_INCLUDES} entries")
        return [_include(entry, f"include.{i}", largest) for i, entry in enumerate(given)]


def _include(entry: Any, path: str, largest: int) -> Include:
    entry = _object(entry, path)
    if not _is_text(entry.get("id")):
        raise fault(f"{path}.id", "expected text")
    sizes = {}
    for side, name in (("before", "withPreviousMessages"), ("after", "withNextMessages")):
        size = entry.get(name) or 0
        is_number = isinstance(size, int | float) and not isinstance(size, bool)
        if not (is_number and -MAX_PAGE <= size <= MAX_PAGE and size == int(size)):
            raise fault(f"{path}.{name}", "expected a whole number")
        sizes[side] = min(int(size), largest)
    return Include(id=entry["id"], **sizes)


def _object(value: Any, path: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise fault(path, "expected an object")
    return dict(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _flag(value: Any, path: str) -> bool:
    if not isinstance(value, bool | None):
        raise fault(path, "expected true or false")
    return bool(value)


def _moment(value: Any, path: str) -> datetime | None:
    if value is None:
        return None
    try:
        return times.parse_time(value)
    except ValueError as error:
        raise fault(path, f"expected a date: {error}") from None
