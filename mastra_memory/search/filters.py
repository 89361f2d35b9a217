"""Mastra's filter language as SQL: conditions on a thread's metadata as it is now."""

from collections.abc import Mapping, Sequence
from typing import Any

from mastra_memory import jsontext, sql
from mastra_memory.exceptions import InvalidInput, Issue

MAX_DEPTH = 10
MAX_CONDITIONS = 200

_OWN = {
    "message_id": "to_jsonb(m.id)",
    "thread_id": "to_jsonb(m.thread_id)",
    "resource_id": "to_jsonb(m.resource_id)",
    "role": "to_jsonb(m.role)",
    "content": "to_jsonb(m.text)",
    "created_at": """to_jsonb(to_char(m.created_at AT TIME ZONE 'UTC',
        'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))""",
}
"""Keys that mean the message itself; all others are keys of the thread's metadata, a dot in one
goes a level deeper."""

_COMPARISONS = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}


def condition(given: Mapping[str, Any]) -> sql.Where:
    """The filter as SQL on a message `m` and its thread `t`.

    Several keys in one object are joined by AND, at every level. Raises `InvalidInput` naming
    the place of what cannot be read.
    """
    reader = _Reader()
    where = sql.Where()
    where.add(reader.all_of(given, "filter", 0), *reader.params)
    return where


def for_message(given: Mapping[str, Any] | None) -> sql.Where:
    """The filter as SQL on a message `m` alone; everything fits no filter."""
    where = sql.Where()
    if given:
        inner = condition(given)
        where.add(
            f"""EXISTS (SELECT 1 FROM mastra_memory_thread t
            WHERE t.id = m.thread_id AND {inner})""",
            *inner.params,
        )
    return where


class _Reader:
    """Walks the filter and collects parameters in the order of their places."""

    def __init__(self) -> None:
        self.params: list[Any] = []
        self.conditions = 0

    def all_of(self, given: Any, path: str, depth: int) -> str:
        if not isinstance(given, Mapping):
            raise _fault(path, "expected an object")
        if depth > MAX_DEPTH:
            raise _fault(path, f"is nested more than {MAX_DEPTH} levels deep")
        parts = [self.entry(key, value, f"{path}.{key}", depth) for key, value in given.items()]
        return f"({' AND '.join(parts) or 'TRUE'})"

    def entry(self, key: str, value: Any, path: str, depth: int) -> str:
        match key:
            case "$and":
                return self.joined(value, " AND ", path, depth)
            case "$or":
                return self.joined(value, " OR ", path, depth)
            case "$nor":
                return f"NOT {self.joined(value, ' OR ', path, depth)}"
            case "$not":
                return f"NOT {self.all_of(value, path, depth + 1)}"
        if key.startswith("$"):
            raise _fault(path, "is no operator that stands outside of a key")
        is_operators = isinstance(value, Mapping) and any(k.startswith("$") for k in value)
        if not is_operators:
            return self.operator(key, "$eq", value, path, depth)
        parts = [self.operator(key, o, v, f"{path}.{o}", depth) for o, v in value.items()]
        return f"({' AND '.join(parts)})"

    def joined(self, value: Any, by: str, path: str, depth: int) -> str:
        if not isinstance(value, Sequence) or isinstance(value, str) or not value:
            raise _fault(path, "expected a list of at least one object")
        return f"({by.join(self.all_of(v, f'{path}.{i}', depth + 1) for i, v in enumerate(value))})"

    def operator(self, key: str, name: str, value: Any, path: str, depth: int) -> str:
        self.conditions += 1
        if self.conditions > MAX_CONDITIONS:
            raise _fault(path, f"is more than condition number {MAX_CONDITIONS}")
        if name in _COMPARISONS:
            return self.comparison(key, _COMPARISONS[name], value, path)
        match name:
            case "$eq":
                return self.equal(key, value)
            case "$ne":
                return f"NOT {self.equal(key, value)}"
            case "$in":
                return self.member(key, value, path)
            case "$nin":
                return f"NOT {self.member(key, value, path)}"
            case "$contains":
                return f"coalesce({self.field(key)} @> {self.json(value)}, FALSE)"
            case "$all":
                return f"coalesce({self.field(key)} @> {self.json(_listed(value, path))}, FALSE)"
            case "$exists":
                return f"({self.field(key)} IS NOT NULL) = {self.truth(value, path)}"
            case "$not":
                return f"NOT {self.entry(key, value, path, depth + 1)}"
        raise _fault(path, "is no operator")

    def equal(self, key: str, value: Any) -> str:
        """Equal in type and value; null also where the key is missing."""
        empty = "'null'::jsonb"
        return f"(coalesce({self.field(key)}, {empty}) = {self.json(value)})"

    def member(self, key: str, value: Any, path: str) -> str:
        found = self.field(key)
        items = [jsontext.dumps(item) for item in _listed(value, path)]
        self.params.append(items)
        return f"(coalesce({found}, 'null'::jsonb) = ANY(%s::jsonb[]))"

    def comparison(self, key: str, sign: str, value: Any, path: str) -> str:
        """Numbers with numbers and texts with texts; never one with the other."""
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise _fault(path, "expected a number or a text")
        kind = "string" if isinstance(value, str) else "number"
        typed = f"jsonb_typeof({self.field(key)}) = '{kind}'"
        return f"coalesce({typed} AND {self.field(key)} {sign} {self.json(value)}, FALSE)"

    def field(self, key: str) -> str:
        if key in _OWN:
            return _OWN[key]
        self.params.append([jsontext.clean_text(part) for part in key.split(".")])
        return "(t.metadata #> %s::text[])"

    def json(self, value: Any) -> str:
        self.params.append(jsontext.dumps(value))
        return "%s::jsonb"

    def truth(self, value: Any, path: str) -> str:
        if not isinstance(value, bool):
            raise _fault(path, "expected true or false")
        return "TRUE" if value else "FALSE"


def _listed(value: Any, path: str) -> Sequence[Any]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise _fault(path, "expected a list")
    return value


def _fault(path: str, reason: str) -> InvalidInput:
    return InvalidInput(f"{path} {reason}", [Issue(path, reason)])
