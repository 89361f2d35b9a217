"""The JSON schema of a working memory: the value it starts with, and what does not fit it."""

import logging
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Any

import jsonschema
import orjson
from jsonschema import validators
from jsonschema.exceptions import best_match
from referencing import Registry
from referencing.exceptions import Unresolvable

from mastra_memory.db import json_text
from mastra_memory.exceptions import InvalidInput, InvalidJson, Issue

logger = logging.getLogger(__name__)

MAX_ISSUES = 20
_MAX_DEPTH = 32
_MAX_PARTS = 10_000
"""Parts that a schema may start with: references can ask for billions."""
_MAX_STEPS = 50_000
"""Steps that checking a value may take, which is about half a second."""
MAX_VALUES = 100_000
"""Names and values that a value which is checked may hold."""
_EMPTY_VALUES: dict[str, Any] = {"string": "", "number": 0, "integer": 0, "boolean": False}
_KEYWORDS_NOT_FOR_UPDATES = ("required", "dependentRequired", "dependencies", "minProperties")
_FIELD_NAME = "workingMemory"
# The last five are what keywords of the wrong type come to where nothing has checked the schema:
# a reference may point to any part of it.
_BROKEN_SCHEMA_ERRORS = (
    jsonschema.SchemaError,
    Unresolvable,
    RecursionError,
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)


def build_empty_value(schema: Any) -> Any:
    """The value that a schema starts with: defaults, else an empty value of each type.

    The schema may be JSON text. A broken one gives `{}` and a line in the log.
    """
    if isinstance(schema, str):
        try:
            schema = json_text.loads(schema)
        except InvalidInput as error:
            logger.warning("The schema of a working memory is not JSON (%s)", type(error).__name__)
    if not isinstance(schema, Mapping):
        return {}
    try:
        value = _build_empty(schema, _PartCounter(schema), 0)
    except (TypeError, AttributeError, LookupError) as error:
        _log_broken_schema(error)
        return {}
    return {} if value is None else value


def _log_broken_schema(error: Exception) -> None:
    """Log the kind of error only: its text quotes the schema, which may come from a request."""
    logger.warning("The schema of a working memory is broken (%s)", type(error).__name__)


class _PartCounter:
    """A whole schema, and how many of its parts were looked at."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema = schema
        self._parts = count(1)

    def count(self) -> None:
        """One more part; `LookupError` when there are too many."""
        if next(self._parts) > _MAX_PARTS:
            raise LookupError(f"more than {_MAX_PARTS} parts")


def _build_empty(schema: Any, root: _PartCounter, depth: int) -> Any:
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
        return None
    root.count()
    if "default" in schema:
        return schema["default"]
    if "const" in schema:
        return schema["const"]
    if "$ref" in schema:
        return _build_empty(_resolve_reference(schema["$ref"], root.schema), root, depth + 1)
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return _build_empty_choice(schema[several], root, depth)
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = None if "null" in kind else kind[0]
    if kind == "object" or (kind is None and "properties" in schema):
        properties = schema.get("properties") or {}
        return {name: _build_empty(part, root, depth + 1) for name, part in properties.items()}
    return [] if kind == "array" else _EMPTY_VALUES.get(str(kind))


def _build_empty_choice(choices: Iterable[Any], root: _PartCounter, depth: int) -> Any:
    """Null where that is one of the choices, else what the first one starts with."""
    schemas = list(choices)
    if any(isinstance(one, Mapping) and one.get("type") == "null" for one in schemas):
        return None
    return _build_empty(schemas[0], root, depth + 1)


def _resolve_reference(reference: str, root: Mapping[str, Any]) -> Any:
    """The part of the schema that a local reference names."""
    value: Any = root
    for step in reference.removeprefix("#").strip("/").split("/"):
        value = value[step.replace("~1", "/").replace("~0", "~")] if step else value
    return value


def validate_content(schema: Mapping[str, Any], content: str, *, partial: bool = False) -> Any:
    """The JSON value in `content`. Raises `InvalidInput` with the path of whatever does not fit.

    `partial` is for an update: nothing is required of it, and null, which deletes, fits
    everywhere. A schema that is itself broken is logged and asks for nothing but JSON.
    """
    try:
        value = json_text.loads(content, max_values=MAX_VALUES)
    except InvalidJson as error:
        raise InvalidInput(
            f"{_FIELD_NAME} is not valid JSON, which the schema asks for",
            [Issue(_FIELD_NAME, "is not valid JSON")],
        ) from error
    except InvalidInput as error:
        raise InvalidInput(f"{_FIELD_NAME}: {error}", [Issue(_FIELD_NAME, str(error))]) from None
    issues = _find_issues(schema, _drop_nulls(value) if partial else value, partial)
    if issues:
        told = f"{issues[0].field}: {issues[0].message}"
        raise InvalidInput(f"{_FIELD_NAME} does not fit its schema: {told}", issues)
    return value


def _find_issues(schema: Mapping[str, Any], value: Any, partial: bool) -> list[Issue]:
    named = schema if isinstance(schema.get("$schema"), str) else {}
    kind = validators.validator_for(named, default=jsonschema.Draft202012Validator)
    if partial:
        kind = validators.extend(kind, dict.fromkeys(_KEYWORDS_NOT_FOR_UPDATES, _accept_anything))
    try:
        kind.check_schema(schema)
        # An empty registry: a schema may point into itself and nowhere else, least of all at a URL.
        checking = _limit_steps(kind)(_drop_inner_dialects(schema), registry=Registry())
        found = checking.iter_errors(value)
        return [_build_issue(error) for error, _ in zip(found, range(MAX_ISSUES), strict=False)]
    except _TooManySteps:
        reason = "takes too long to check against its schema"
        raise InvalidInput(f"{_FIELD_NAME} {reason}", [Issue(_FIELD_NAME, reason)]) from None
    except _BROKEN_SCHEMA_ERRORS as error:
        _log_broken_schema(error)
        return []


class _TooManySteps(Exception):
    """Checking takes more than `_MAX_STEPS`."""


def _limit_steps(kind: Any) -> Any:
    """The validator, which gives up in time: references make a short schema work for hours."""
    taken = 0

    def counted(keyword: Callable[..., Any]) -> Callable[..., Any]:
        def check(validator: Any, wanted: Any, value: Any, schema: Any) -> Any:
            nonlocal taken
            taken += _count_steps(keyword, wanted, value)
            if taken > _MAX_STEPS:
                raise _TooManySteps
            return keyword(validator, wanted, value, schema)

        return check

    known = {**kind.VALIDATORS, "uniqueItems": _check_unique_items}.items()
    return validators.extend(kind, {name: counted(keyword) for name, keyword in known})


def _count_steps(keyword: Callable[..., Any], wanted: Any, value: Any) -> int:
    """How many steps of others a keyword is worth."""
    if keyword is _check_unique_items:
        return 1 + _count_values(value) // 8
    if keyword.__name__ == "enum" and isinstance(wanted, list):
        return 1 + len(wanted) // 8
    return 1


def _count_values(value: Any) -> int:
    """How many values there are in a JSON value."""
    if isinstance(value, dict):
        return 1 + sum(map(_count_values, value.values()))
    return 1 + sum(map(_count_values, value)) if isinstance(value, list) else 1


def _check_unique_items(validator: Any, wanted: Any, value: Any, schema: Any) -> Any:
    """Check `uniqueItems` in linear time; the library compares each item with each other."""
    if wanted and validator.is_type(value, "array"):
        items = {
            orjson.dumps(_normalize_numbers(item), option=orjson.OPT_SORT_KEYS) for item in value
        }
        if len(items) < len(value):
            yield jsonschema.ValidationError("has items that are equal, which uniqueItems forbids")


def _normalize_numbers(value: Any) -> Any:
    """The value with 1.0 as 1, which are equal in a schema."""
    if isinstance(value, dict):
        return {key: _normalize_numbers(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_normalize_numbers(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _drop_inner_dialects(schema: Any) -> Any:
    """The schema without `$schema` inside, at which another validator would take over."""
    if isinstance(schema, Mapping):
        kept = {k: v for k, v in schema.items() if k != "$schema" or not isinstance(v, str)}
        return {key: _drop_inner_dialects(part) for key, part in kept.items()}
    return [_drop_inner_dialects(part) for part in schema] if isinstance(schema, list) else schema


def _accept_anything(*_: Any) -> None:
    """A keyword that asks for nothing."""


def _build_issue(error: jsonschema.ValidationError) -> Issue:
    exact = best_match([error]) or error
    path = ".".join(str(step) for step in (_FIELD_NAME, *exact.absolute_path))
    return Issue(path, exact.message[:300])


def _drop_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _drop_nulls(part) for k, part in value.items() if part is not None}
    if isinstance(value, list):
        return [_drop_nulls(part) for part in value]
    return value
