"""Compile Mastra's metadata filters to SQL.

Mastra's vector stores copy metadata to each vector. Here, a filter applies to the current metadata
of the thread, or to some fields of the message. Values are always passed as parameters.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import DataError

from mastra_memory.db import json_text, routing, sql
from mastra_memory.exceptions import InvalidInput, Issue
from mastra_memory.search import regex

MAX_DEPTH = 10
"""Levels of nested operators."""
MAX_CONDITIONS = 200
"""Conditions in one filter."""

_MESSAGE_KEYS = {
    "message_id": "to_jsonb(m.id)",
    "thread_id": "to_jsonb(m.thread_id)",
    "resource_id": "to_jsonb(m.resource_id)",
    "role": "to_jsonb(m.role)",
    "content": "to_jsonb(m.text)",
    "created_at": """to_jsonb(to_char(m.created_at AT TIME ZONE 'UTC',
        'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))""",
}
"""Keys of the message itself. All others are keys of the thread's metadata, where a dot separates
levels: `user.plan` is the key `plan` in the object `user`."""

_LOGICAL_OPERATORS = ("$and", "$or", "$nor", "$not")
_COMPARISON_OPERATORS = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}


def build_condition(metadata_filter: Mapping[str, Any]) -> sql.Where:
    """Return the filter as SQL on a message `m` and its thread `t`.

    Several keys of one object are joined by AND, at every level.

    Raises:
        InvalidInput: The filter is invalid; the issue names the path, such as `filter.n.$gt`.
    """
    compiler = _FilterCompiler()
    where = sql.Where()
    where.add(compiler.compile_object(metadata_filter, "filter", 0), *compiler.params)
    return where


def build_message_condition(metadata_filter: Mapping[str, Any] | None) -> sql.Where:
    """Return the filter as SQL on a message `m` alone. Without a filter, everything matches."""
    where = sql.Where()
    if metadata_filter:
        condition = build_condition(metadata_filter)
        where.add(
            # A fragment of a statement; the condition's values are parameters.
            f"""EXISTS (SELECT 1 FROM mastra_memory_thread t
            WHERE t.id = m.thread_id AND {condition})""",  # noqa: S608
            *condition.params,
        )
    return where


def build_vector_condition(metadata_filter: Mapping[str, Any] | None) -> sql.Where:
    """Return the filter as SQL on a vector `e`. Without a filter, everything matches."""
    where = sql.Where()
    if metadata_filter:
        condition = build_condition(metadata_filter)
        where.add(
            # A fragment of a statement; the condition's values are parameters.
            f"""EXISTS (SELECT 1 FROM mastra_memory_message m
            JOIN mastra_memory_thread t ON t.id = m.thread_id
            WHERE m.id = e.message_id AND {condition})""",  # noqa: S608
            *condition.params,
        )
    return where


class _FilterCompiler:
    """Compile a filter to SQL and collect the parameters in the order of the placeholders.

    Each method returns a condition that is true or false but never null. In SQL, NOT null is null,
    so `$not` and `$ne` would omit messages without the key.
    """

    def __init__(self) -> None:
        self.params: list[Any] = []
        self.conditions = 0
        self.patterns = 0
        self.element: str | None = None
        """Inside `$elemMatch`, the SQL of the list element to which keys refer."""

    def compile_object(self, conditions: Any, path: str, depth: int) -> str:
        if not isinstance(conditions, Mapping):
            raise _invalid(path, "expected an object")
        if depth > MAX_DEPTH:
            raise _invalid(path, f"is nested more than {MAX_DEPTH} levels deep")
        parts = [
            self.compile_entry(key, value, f"{path}.{key}", depth)
            for key, value in conditions.items()
        ]
        return f"({' AND '.join(parts) or 'TRUE'})"

    def compile_entry(self, key: str, value: Any, path: str, depth: int) -> str:
        match key:
            case "$and":
                return self.compile_list(value, " AND ", path, depth)
            case "$or":
                return self.compile_list(value, " OR ", path, depth)
            case "$nor":
                return f"NOT {self.compile_list(value, ' OR ', path, depth)}"
            case "$not":
                return f"NOT {self.compile_object(value, path, depth + 1)}"
        if key.startswith("$"):
            raise _invalid(path, "is not an operator that can be used without a key")
        if not _has_operators(value):
            return self.compile_operator(key, "$eq", value, path, depth)
        parts = [self.compile_operator(key, o, v, f"{path}.{o}", depth) for o, v in value.items()]
        return f"({' AND '.join(parts)})"

    def compile_list(self, value: Any, by: str, path: str, depth: int) -> str:
        if not isinstance(value, Sequence) or isinstance(value, str) or not value:
            raise _invalid(path, "expected a list of at least one object")
        parts = [
            self.compile_object(item, f"{path}.{index}", depth + 1)
            for index, item in enumerate(value)
        ]
        return f"({by.join(parts)})"

    def compile_operator(self, key: str, name: str, value: Any, path: str, depth: int) -> str:
        self.conditions += 1
        if self.conditions > MAX_CONDITIONS:
            raise _invalid(path, f"exceeds the limit of {MAX_CONDITIONS} conditions")
        if name in _COMPARISON_OPERATORS:
            return self.compile_comparison(key, _COMPARISON_OPERATORS[name], value, path)
        match name:
            case "$eq":
                return self.compile_equal(key, value)
            case "$ne":
                return f"NOT {self.compile_equal(key, value)}"
            case "$in":
                return self.compile_in(key, value, path)
            case "$nin":
                return f"NOT {self.compile_in(key, value, path)}"
            case "$contains":
                return self.compile_contains(key, value)
            case "$all":
                return self.compile_contains(key, _require_list(value, path)) if value else "FALSE"
            case "$size":
                return self.compile_size(key, value, path)
            case "$elemMatch":
                return self.compile_elem_match(key, value, path, depth + 1)
            case "$regex":
                return self.compile_regex(key, value, path)
            case "$exists":
                return f"({self.field_sql(key)} IS NOT NULL) = {self.boolean_sql(value, path)}"
            case "$not":
                return f"NOT {self.compile_entry(key, value, path, depth + 1)}"
        raise _invalid(path, "is not a supported operator")

    def compile_equal(self, key: str, value: Any) -> str:
        """Compare type and value. A missing key equals null."""
        empty = "'null'::jsonb"
        return f"(coalesce({self.field_sql(key)}, {empty}) = {self.add_json_param(value)})"

    def compile_in(self, key: str, value: Any, path: str) -> str:
        """Match a field that is one of the values, or a list that contains one of them."""
        items = [json_text.dumps(item) for item in _require_list(value, path)]
        equal = f"coalesce({self.field_sql(key)}, 'null'::jsonb) = ANY(%s::jsonb[])"
        self.params.append(items)
        is_list = f"jsonb_typeof({self.field_sql(key)}) = 'array'"
        contained = f"{is_list} AND {self.field_sql(key)} @> ANY(%s::jsonb[])"
        self.params.append(items)
        return f"({equal} OR coalesce({contained}, FALSE))"

    def compile_contains(self, key: str, value: Any) -> str:
        """Match a list that contains the value or values, or a string that contains the string."""
        contained = f"{self.field_sql(key)} @> {self.add_json_param(value)}"
        if not isinstance(value, str):
            return f"coalesce({contained}, FALSE)"
        is_text = f"jsonb_typeof({self.field_sql(key)}) = 'string'"
        like = f"{is_text} AND {self.field_sql(key)} #>> '{{}}' ILIKE"
        self.params.append("%" + re.sub(r"([%_\\])", r"\\\1", json_text.clean_text(value)) + "%")
        return f"coalesce({contained} OR ({like} %s), FALSE)"

    def compile_size(self, key: str, value: Any, path: str) -> str:
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
            raise _invalid(path, "expected an integer of at least 0")
        is_list = f"jsonb_typeof({self.field_sql(key)}) = 'array'"
        length = f"jsonb_array_length({self.field_sql(key)})"
        return f"(CASE WHEN {is_list} THEN {length} = {value} ELSE FALSE END)"

    def compile_elem_match(self, key: str, value: Any, path: str, depth: int) -> str:
        """Match a list if one of its elements meets all the conditions.

        A condition without a key applies to the element itself: `{"$gt": 1}`. A condition with a
        key applies to that key of the element: `{"name": "tea"}`.
        """
        if not isinstance(value, Mapping):
            raise _invalid(path, "expected an object")
        if depth > MAX_DEPTH:
            raise _invalid(path, f"is nested more than {MAX_DEPTH} levels deep")
        is_list = f"jsonb_typeof({self.field_sql(key)}) = 'array'"
        items = f"CASE WHEN {is_list} THEN {self.field_sql(key)} END"
        outer, self.element = self.element, f"e{depth}.value"
        parts = [
            self.compile_operator("", name, given, f"{path}.{name}", depth)
            if name.startswith("$")
            and (name not in _LOGICAL_OPERATORS or (name == "$not" and _has_operators(given)))
            else self.compile_entry(name, given, f"{path}.{name}", depth)
            for name, given in value.items()
        ]
        self.element = outer
        return f"""EXISTS (SELECT 1 FROM jsonb_array_elements({items}) AS e{depth}(value)
            WHERE {" AND ".join(parts) or "TRUE"})"""  # noqa: S608 -- only names

    def compile_regex(self, key: str, value: Any, path: str) -> str:
        """Match a string against a regular expression of PostgreSQL."""
        self.patterns += 1
        if self.patterns > regex.MAX_PATTERNS:
            raise _invalid(path, f"exceeds the limit of {regex.MAX_PATTERNS} regular expressions")
        if not isinstance(value, str):
            raise _invalid(path, "expected a string")
        pattern = json_text.clean_text(value)
        if problem := regex.find_problem(pattern):
            raise _invalid(path, problem)
        try:
            with routing.atomic():
                sql.fetch_one("SELECT '' ~ %s", [pattern])
        except DataError:
            raise _invalid(path, "is not a valid regular expression of PostgreSQL") from None
        is_text = f"jsonb_typeof({self.field_sql(key)}) = 'string'"
        text = f"left({self.field_sql(key)} #>> '{{}}', {regex.MAX_TEXT_CHARACTERS})"
        matches = f"{is_text} AND {text} ~ %s"
        self.params.append(pattern)
        return f"coalesce({matches}, FALSE)"

    def compile_comparison(self, key: str, sign: str, value: Any, path: str) -> str:
        """Compare numbers with numbers, and strings with strings. Other types never match."""
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise _invalid(path, "expected a number or a string")
        kind = "string" if isinstance(value, str) else "number"
        typed = f"jsonb_typeof({self.field_sql(key)}) = '{kind}'"
        compared = f"{self.field_sql(key)} {sign} {self.add_json_param(value)}"
        return f"coalesce({typed} AND {compared}, FALSE)"

    def field_sql(self, key: str) -> str:
        if self.element is None and key in _MESSAGE_KEYS:
            return _MESSAGE_KEYS[key]
        if self.element is not None and not key:
            return self.element
        self.params.append([json_text.clean_text(part) for part in key.split(".")])
        return f"({self.element or 't.metadata'} #> %s::text[])"

    def add_json_param(self, value: Any) -> str:
        self.params.append(json_text.dumps(value))
        return "%s::jsonb"

    def boolean_sql(self, value: Any, path: str) -> str:
        if not isinstance(value, bool):
            raise _invalid(path, "expected true or false")
        return "TRUE" if value else "FALSE"


def _has_operators(value: Any) -> bool:
    return isinstance(value, Mapping) and any(key.startswith("$") for key in value)


def _require_list(value: Any, path: str) -> Sequence[Any]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise _invalid(path, "expected a list")
    return value


def _invalid(path: str, reason: str) -> InvalidInput:
    return InvalidInput(f"{path} {reason}", [Issue(path, reason)])
