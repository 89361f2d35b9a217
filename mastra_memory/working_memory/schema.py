"""The JSON schema of a working memory: its empty value, and validation."""

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
"""The limit of subschemas for an empty value. References can expand to billions of them."""
_MAX_STEPS = 50_000
"""The limit of steps of one validation. They take about half a second."""
MAX_VALUES = 100_000
"""The largest number of names and values in the JSON that is validated."""
_EMPTY_VALUES: dict[str, Any] = {"string": "", "number": 0, "integer": 0, "boolean": False}
_KEYWORDS_NOT_FOR_UPDATES = ("required", "dependentRequired", "dependencies", "minProperties")
_FIELD_NAME = "workingMemory"
# The last five are raised for keywords with values of the wrong type. `check_schema` does not check
# all parts of a schema to which references can point.
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
    """Return the initial value of a schema: defaults, otherwise an empty value of each type.

    The schema may be JSON text. For an invalid one, a warning is logged and `{}` is returned.
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
    """Log only the type of the error, because its text contains the schema of a request."""
    logger.warning("The schema of a working memory is broken (%s)", type(error).__name__)


class _PartCounter:
    """A schema, and the number of its parts that have been read."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema = schema
        self._parts = count(1)

    def count(self) -> None:
        """Count one more part. Raise `LookupError` if there are too many."""
        if next(self._parts) > _MAX_PARTS:
            raise LookupError(f"more than {_MAX_PARTS} parts")


def _build_empty(schema: Any, counter: _PartCounter, depth: int) -> Any:
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
        return None
    counter.count()
    if "default" in schema:
        return schema["default"]
    if "const" in schema:
        return schema["const"]
    if "$ref" in schema:
        return _build_empty(_resolve_reference(schema["$ref"], counter.schema), counter, depth + 1)
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            return _build_empty_choice(schema[keyword], counter, depth)
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = None if "null" in kind else kind[0]
    if kind == "object" or (kind is None and "properties" in schema):
        properties = schema.get("properties") or {}
        return {name: _build_empty(part, counter, depth + 1) for name, part in properties.items()}
    return [] if kind == "array" else _EMPTY_VALUES.get(str(kind))


def _build_empty_choice(choices: Iterable[Any], counter: _PartCounter, depth: int) -> Any:
    """Return None if null is one of the choices, otherwise the empty value of the first."""
    schemas = list(choices)
    if any(isinstance(one, Mapping) and one.get("type") == "null" for one in schemas):
        return None
    return _build_empty(schemas[0], counter, depth + 1)


def _resolve_reference(reference: str, root: Mapping[str, Any]) -> Any:
    """Return the part of the schema that a local `$ref` names."""
    value: Any = root
    for step in reference.removeprefix("#").strip("/").split("/"):
        value = value[step.replace("~1", "/").replace("~0", "~")] if step else value
    return value


def validate_content(schema: Mapping[str, Any], content: str, *, partial: bool = False) -> Any:
    """Return the JSON value in `content` after validating it.

    An invalid schema is logged, and any JSON value is accepted.

    Args:
        schema: A JSON schema.
        content: JSON text.
        partial: Validate an update: nothing is required, and null, which deletes, is accepted
            everywhere.

    Raises:
        InvalidInput: The value does not match the schema; the issues name the paths.
    """
    try:
        value = json_text.loads(content, max_values=MAX_VALUES)
    except InvalidJson as error:
        raise InvalidInput(
            f"{_FIELD_NAME} is not valid JSON, which its schema requires",
            [Issue(_FIELD_NAME, "is not valid JSON")],
        ) from error
    except InvalidInput as error:
        raise InvalidInput(f"{_FIELD_NAME}: {error}", [Issue(_FIELD_NAME, str(error))]) from None
    issues = _find_issues(schema, _drop_nulls(value) if partial else value, partial)
    if issues:
        first = f"{issues[0].field}: {issues[0].message}"
        raise InvalidInput(f"{_FIELD_NAME} does not match its schema: {first}", issues)
    return value


def _find_issues(schema: Mapping[str, Any], value: Any, partial: bool) -> list[Issue]:
    has_dialect = isinstance(schema.get("$schema"), str)  # a value of another type is ignored
    default = jsonschema.Draft202012Validator
    kind = validators.validator_for(schema if has_dialect else {}, default=default)
    if partial:
        kind = validators.extend(kind, dict.fromkeys(_KEYWORDS_NOT_FOR_UPDATES, _accept_anything))
    try:
        kind.check_schema(schema)
        # With an empty registry, references outside the schema, such as URLs, are not resolved.
        checking = _limit_steps(kind)(_drop_inner_dialects(schema), registry=Registry())
        found = checking.iter_errors(value)
        return [_build_issue(error) for error, _ in zip(found, range(MAX_ISSUES), strict=False)]
    except _TooManySteps:
        reason = "takes too long to validate against its schema"
        raise InvalidInput(f"{_FIELD_NAME} {reason}", [Issue(_FIELD_NAME, reason)]) from None
    except _BROKEN_SCHEMA_ERRORS as error:
        _log_broken_schema(error)
        return []


class _TooManySteps(Exception):
    """Validation takes more than `_MAX_STEPS` steps."""


def _limit_steps(kind: Any) -> Any:
    """Return a validator that stops after `_MAX_STEPS`.

    With references, the validation of a short schema could take hours.
    """
    steps = 0

    def counted(keyword: Callable[..., Any]) -> Callable[..., Any]:
        def check(validator: Any, keyword_value: Any, value: Any, schema: Any) -> Any:
            nonlocal steps
            steps += _count_steps(keyword, keyword_value, value)
            if steps > _MAX_STEPS:
                raise _TooManySteps
            return keyword(validator, keyword_value, value, schema)

        return check

    keywords = {**kind.VALIDATORS, "uniqueItems": _check_unique_items}.items()
    return validators.extend(kind, {name: counted(keyword) for name, keyword in keywords})


def _count_steps(keyword: Callable[..., Any], keyword_value: Any, value: Any) -> int:
    """Return the cost of a keyword in steps, which depends on the time that it takes."""
    if keyword is _check_unique_items:
        return 1 + _count_values(value) // 8
    if keyword.__name__ == "enum" and isinstance(keyword_value, list):
        return 1 + len(keyword_value) // 8
    return 1


def _count_values(value: Any) -> int:
    """Count the values in a JSON value."""
    if isinstance(value, dict):
        return 1 + sum(map(_count_values, value.values()))
    return 1 + sum(map(_count_values, value)) if isinstance(value, list) else 1


def _check_unique_items(validator: Any, keyword_value: Any, value: Any, schema: Any) -> Any:
    """Check `uniqueItems` in linear time. The library compares all pairs of items."""
    if keyword_value and validator.is_type(value, "array"):
        items = {
            orjson.dumps(_normalize_numbers(item), option=orjson.OPT_SORT_KEYS) for item in value
        }
        if len(items) < len(value):
            yield jsonschema.ValidationError("has equal items, which uniqueItems does not allow")


def _normalize_numbers(value: Any) -> Any:
    """Return the value with 1.0 replaced by 1: a schema treats them as equal."""
    if isinstance(value, dict):
        return {key: _normalize_numbers(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_normalize_numbers(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _drop_inner_dialects(schema: Any) -> Any:
    """Return the schema without `$schema` keywords, which would select another validator."""
    if isinstance(schema, Mapping):
        kept = {k: v for k, v in schema.items() if k != "$schema" or not isinstance(v, str)}
        return {key: _drop_inner_dialects(part) for key, part in kept.items()}
    return [_drop_inner_dialects(part) for part in schema] if isinstance(schema, list) else schema


def _accept_anything(*_: Any) -> None:
    """Accept any value, for keywords that are not checked in updates."""


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
