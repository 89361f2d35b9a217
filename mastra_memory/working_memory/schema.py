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
_DEPTH = 32
_MOST_PARTS = 10_000
"""Parts that a schema may start with: references can ask for billions."""
_MOST_STEPS = 50_000
"""Steps that checking a value may take, which is about half a second."""
MAX_VALUES = 100_000
"""Names and values that a value which is checked may hold."""
_EMPTY: dict[str, Any] = {"string": "", "number": 0, "integer": 0, "boolean": False}
_RELAXED = ("required", "dependentRequired", "dependencies", "minProperties")
_FIELD = "workingMemory"
# The last five are what keywords of the wrong type come to where nothing has checked the schema:
# a reference may point to any part of it.
_BROKEN = (
    jsonschema.SchemaError,
    Unresolvable,
    RecursionError,
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)


def empty_value(schema: Any) -> Any:
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
        value = _empty(schema, _Root(schema), 0)
    except (TypeError, AttributeError, LookupError) as error:
        _log_broken_schema(error)
        return {}
    return {} if value is None else value


def _log_broken_schema(error: Exception) -> None:
    """Log the kind of error only: its text quotes the schema, which may come from a request."""
    logger.warning("The schema of a working memory is broken (%s)", type(error).__name__)


class _Root:
    """A whole schema, and how many of its parts were looked at."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema = schema
        self._parts = count(1)

    def count(self) -> None:
        """One more part; `LookupError` when there are too many."""
        if next(self._parts) > _MOST_PARTS:
            raise LookupError(f"more than {_MOST_PARTS} parts")


def _empty(schema: Any, root: _Root, depth: int) -> Any:
    if not isinstance(schema, Mapping) or depth > _DEPTH:
        return None
    root.count()
    if "default" in schema:
        return schema["default"]
    if "const" in schema:
        return schema["const"]
    if "$ref" in schema:
        return _empty(_referred(schema["$ref"], root.schema), root, depth + 1)
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return _empty_of_several(schema[several], root, depth)
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = None if "null" in kind else kind[0]
    if kind == "object" or (kind is None and "properties" in schema):
        properties = schema.get("properties") or {}
        return {name: _empty(part, root, depth + 1) for name, part in properties.items()}
    return [] if kind == "array" else _EMPTY.get(str(kind))


def _empty_of_several(choices: Iterable[Any], root: _Root, depth: int) -> Any:
    """Null where that is one of the choices, else what the first one starts with."""
    schemas = list(choices)
    if any(isinstance(one, Mapping) and one.get("type") == "null" for one in schemas):
        return None
    return _empty(schemas[0], root, depth + 1)


def _referred(reference: str, root: Mapping[str, Any]) -> Any:
    """The part of the schema that a local reference names."""
    value: Any = root
    for step in reference.removeprefix("#").strip("/").split("/"):
        value = value[step.replace("~1", "/").replace("~0", "~")] if step else value
    return value


def checked(schema: Mapping[str, Any], content: str, *, partial: bool = False) -> Any:
    """The JSON value in `content`. Raises `InvalidInput` with the path of whatever does not fit.

    `partial` is for an update: nothing is required of it, and null, which deletes, fits
    everywhere. A schema that is itself broken is logged and asks for nothing but JSON.
    """
    try:
        value = json_text.loads(content, max_values=MAX_VALUES)
    except InvalidJson as error:
        raise InvalidInput(
            f"{_FIELD} is not valid JSON, which the schema asks for",
            [Issue(_FIELD, "is not valid JSON")],
        ) from error
    except InvalidInput as error:
        raise InvalidInput(f"{_FIELD}: {error}", [Issue(_FIELD, str(error))]) from None
    issues = _issues(schema, _without_nulls(value) if partial else value, partial)
    if issues:
        told = f"{issues[0].field}: {issues[0].message}"
        raise InvalidInput(f"{_FIELD} does not fit its schema: {told}", issues)
    return value


def _issues(schema: Mapping[str, Any], value: Any, partial: bool) -> list[Issue]:
    named = schema if isinstance(schema.get("$schema"), str) else {}
    kind = validators.validator_for(named, default=jsonschema.Draft202012Validator)
    if partial:
        kind = validators.extend(kind, dict.fromkeys(_RELAXED, _fits))
    try:
        kind.check_schema(schema)
        # An empty registry: a schema may point into itself and nowhere else, least of all at a URL.
        checking = _limited(kind)(_of_one_dialect(schema), registry=Registry())
        found = checking.iter_errors(value)
        return [_issue(error) for error, _ in zip(found, range(MAX_ISSUES), strict=False)]
    except _TooMuch:
        reason = "takes too long to check against its schema"
        raise InvalidInput(f"{_FIELD} {reason}", [Issue(_FIELD, reason)]) from None
    except _BROKEN as error:
        _log_broken_schema(error)
        return []


class _TooMuch(Exception):
    """Checking takes more than `_MOST_STEPS`."""


def _limited(kind: Any) -> Any:
    """The validator, which gives up in time: references make a short schema work for hours."""
    taken = 0

    def counted(keyword: Callable[..., Any]) -> Callable[..., Any]:
        def check(validator: Any, wanted: Any, value: Any, schema: Any) -> Any:
            nonlocal taken
            taken += _steps(keyword, wanted, value)
            if taken > _MOST_STEPS:
                raise _TooMuch
            return keyword(validator, wanted, value, schema)

        return check

    known = {**kind.VALIDATORS, "uniqueItems": _unique_items}.items()
    return validators.extend(kind, {name: counted(keyword) for name, keyword in known})


def _steps(keyword: Callable[..., Any], wanted: Any, value: Any) -> int:
    """How many steps of others a keyword is worth."""
    if keyword is _unique_items:
        return 1 + _size(value) // 8
    if keyword.__name__ == "enum" and isinstance(wanted, list):
        return 1 + len(wanted) // 8
    return 1


def _size(value: Any) -> int:
    """How many values there are in a JSON value."""
    if isinstance(value, dict):
        return 1 + sum(map(_size, value.values()))
    return 1 + sum(map(_size, value)) if isinstance(value, list) else 1


def _unique_items(validator: Any, wanted: Any, value: Any, schema: Any) -> Any:
    """Check `uniqueItems` in linear time; the library compares each item with each other."""
    if wanted and validator.is_type(value, "array"):
        items = {orjson.dumps(_comparable(item), option=orjson.OPT_SORT_KEYS) for item in value}
        if len(items) < len(value):
            yield jsonschema.ValidationError("has items that are equal, which uniqueItems forbids")


def _comparable(value: Any) -> Any:
    """The value with 1.0 as 1, which are equal in a schema."""
    if isinstance(value, dict):
        return {key: _comparable(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_comparable(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _of_one_dialect(schema: Any) -> Any:
    """The schema without `$schema` inside, at which another validator would take over."""
    if isinstance(schema, Mapping):
        kept = {k: v for k, v in schema.items() if k != "$schema" or not isinstance(v, str)}
        return {key: _of_one_dialect(part) for key, part in kept.items()}
    return [_of_one_dialect(part) for part in schema] if isinstance(schema, list) else schema


def _fits(*_: Any) -> None:
    """A keyword that asks for nothing."""


def _issue(error: jsonschema.ValidationError) -> Issue:
    exact = best_match([error]) or error
    path = ".".join(str(step) for step in (_FIELD, *exact.absolute_path))
    return Issue(path, exact.message[:300])


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_nulls(part) for k, part in value.items() if part is not None}
    if isinstance(value, list):
        return [_without_nulls(part) for part in value]
    return value
