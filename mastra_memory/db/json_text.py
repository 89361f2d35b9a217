"""Read and write JSON and text in a form that the database can store and every client can read.

PostgreSQL cannot store NUL and lone surrogates. They are replaced by U+FFFD in all input.
"""

import json
import math
import re
from collections.abc import Collection, Mapping
from typing import Any

import orjson

from mastra_memory.exceptions import InvalidInput, InvalidJson

MAX_DEPTH = 250
"""The nesting of JSON values that is always accepted. Error messages name this limit."""

_WRITABLE_DEPTH = 254
"""The nesting that orjson can write. Deeper values are refused."""
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{,:]', re.DOTALL)
"""A complete string, or a byte that comes before a value or a name."""

_REPLACEMENT = "\ufffd"
_UNSTORABLE = {0: _REPLACEMENT} | dict.fromkeys(range(0xD800, 0xE000), _REPLACEMENT)


def clean_text(text: str) -> str:
    """Return the text with U+FFFD instead of each NUL and each lone surrogate."""
    if "\x00" not in text:
        if text.isascii():
            return text
        try:
            text.encode()
        except UnicodeEncodeError:
            pass
        else:
            return text
    return text.translate(_UNSTORABLE)


def clean_json(value: Any) -> Any:
    """Return a JSON value with cleaned texts and keys, and with numbers that orjson can write."""
    return _clean(value, 0)


def _clean(value: Any, depth: int) -> Any:
    if depth > _WRITABLE_DEPTH:
        raise InvalidInput(f"JSON is nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_text(str(k)): _clean(v, depth + 1) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item, depth + 1) for item in value]
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return _convert_large_integer(value)
    return value


def _convert_large_integer(number: int) -> float:
    try:
        return float(number)
    except OverflowError:
        # JSON has no infinity: it is written as null, as in JavaScript.
        return math.inf if number > 0 else -math.inf


def loads(data: bytes | str, *, max_values: int | None = None) -> Any:
    """Parse a JSON document and clean it. Use this function for all JSON in `mastra_memory`.

    `max_values` limits the names and values in the document; it is checked before parsing, because
    a few bytes of JSON can become a hundred times as many bytes of Python objects. Integers beyond
    64 bits become the nearest double, as they do in JavaScript.

    Raises:
        InvalidInput: The text is not JSON, is nested more than `MAX_DEPTH` levels deep, or has more
            than `max_values` names and values.
    """
    if isinstance(data, str):
        data = clean_text(data).encode()
    if max_values is not None and has_more_values(data, max_values):
        raise InvalidInput(f"JSON may hold at most {max_values} names and values")
    try:
        value = _parse(data)
    except orjson.JSONDecodeError as error:
        return clean_json(_loads_leniently(data, error))
    if b"\\u0000" in data or _is_too_deep(data, value):
        return clean_json(value)
    return value


def loads_deep(data: bytes) -> Any:
    """Parse a JSON document of up to 1,024 levels, which is more than `loads` accepts.

    The caller must reduce the depth, and clean the result with `clean_json`.

    Raises:
        InvalidInput: The text is not JSON, or is nested still deeper.
    """
    try:
        return _parse(data)
    except orjson.JSONDecodeError as error:
        raise InvalidJson(error.msg, error.lineno, error.colno) from None


def _parse(data: bytes) -> Any:
    return orjson.loads(data)  # refuses more than 1,024 levels while it parses


def has_more_values(data: bytes, limit: int) -> bool:
    """Return whether a JSON document holds more than `limit` names and values.

    Each name or value follows a comma, a colon or an opening bracket. Counting these bytes takes a
    few milliseconds per megabyte, and is enough for most documents. Only if the count reaches the
    limit, count again without the bytes inside strings.
    """
    if sum(map(data.count, (b",", b":", b"[", b"{"))) < limit:
        return False
    values = strings = 0
    for token in _TOKEN.finditer(data):
        if data[token.start()] == _QUOTE:
            strings += 1
        else:
            values += 1
        if values >= limit:
            return True
        if strings > values + 1:  # Two strings without a comma: the parser refuses this.
            return False
    return False


_QUOTE = ord('"')


def _is_too_deep(data: bytes, value: Any) -> bool:
    """Return whether orjson cannot write the value again.

    Most documents have few brackets and need no attempt.
    """
    if data.count(b"[") + data.count(b"{") <= MAX_DEPTH:
        return False
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError:
        return True
    return False


def _loads_leniently(data: bytes, error: orjson.JSONDecodeError) -> Any:
    """Parse with the standard library, which accepts the lone surrogates that orjson refuses."""
    try:
        return json.loads(data.decode(), parse_constant=_refuse_constant)
    except RecursionError:
        raise InvalidInput(f"JSON is nested more than {MAX_DEPTH} levels deep") from None
    except ValueError:
        raise InvalidJson(error.msg, error.lineno, error.colno) from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def dumps(value: Any) -> str:
    """Return the value as compact JSON text that PostgreSQL accepts, cleaned if necessary.

    Raises:
        InvalidInput: It is not a JSON value, or it is nested too deeply.
    """
    try:
        text = orjson.dumps(value)
    except orjson.JSONEncodeError:
        try:
            text = orjson.dumps(clean_json(value))
        except orjson.JSONEncodeError as error:
            raise InvalidInput(f"Not a JSON value: {error}") from None
    if b"\\u0000" in text:
        text = orjson.dumps(clean_json(value))
    return text.decode()


def merge_objects(
    base: Mapping[str, Any],
    override: Mapping[str, Any],
    *,
    delete_nulls: bool = False,
    atomic_keys: Collection[str] = (),
) -> dict[str, Any]:
    """Return a new object with `override` merged into `base` at every level.

    Objects are merged key by key; every other value, lists too, replaces the old one.

    Args:
        base: The object to start from. It is not changed.
        override: The values that replace those of `base`.
        delete_nulls: Remove keys that are null in `override` (RFC 7396) instead of storing null.
        atomic_keys: Keys whose objects replace the old ones as a whole, at every level.
    """
    merged = dict(base)
    for key, value in override.items():
        if value is None and delete_nulls:
            merged.pop(key, None)
        elif isinstance(value, Mapping) and key not in atomic_keys:
            old = merged.get(key)
            merged[key] = merge_objects(
                old if isinstance(old, Mapping) else {},
                value,
                delete_nulls=delete_nulls,
                atomic_keys=atomic_keys,
            )
        else:
            merged[key] = value
    return merged
