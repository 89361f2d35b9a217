"""JSON and text in the one form that the database can hold and every client can read.

PostgreSQL stores neither NUL nor lone surrogates. Wherever text enters, U+FFFD takes their place.
"""

import json
import math
from typing import Any

import orjson

from mastra_memory.exceptions import InvalidInput

MAX_DEPTH = 250
"""Levels of nesting that a stored JSON value may have; orjson writes at most 254."""

_REPLACEMENT = "\ufffd"
_UNSTORABLE = {0: _REPLACEMENT} | dict.fromkeys(range(0xD800, 0xE000), _REPLACEMENT)


def clean_text(text: str) -> str:
    """The text with U+FFFD in place of each NUL and each lone surrogate."""
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


def clean(value: Any) -> Any:
    """A JSON value whose texts and keys went through `clean_text`; numbers fit orjson."""
    return _clean(value, 0)


def _clean(value: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise InvalidInput(f"JSON is nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_text(str(k)): _clean(v, depth + 1) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item, depth + 1) for item in value]
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return _nearest_double(value)
    return value


def _nearest_double(number: int) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf  # written as null, as JavaScript does


def loads(data: bytes) -> Any:
    """Parse a JSON document, cleaned.

    Raises `InvalidInput` for what is no JSON, and for what is nested more than `MAX_DEPTH` deep.
    Whole numbers beyond 64 bits become the nearest double, as they do in JavaScript.
    """
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        return clean(_loads_leniently(data, error))
    if b"\\u0000" in data or _is_too_deep(data, value):
        return clean(value)
    return value


def _is_too_deep(data: bytes, value: Any) -> bool:
    """Whether orjson cannot write it again; most documents cannot even be suspected."""
    if data.count(b"[") + data.count(b"{") <= MAX_DEPTH:
        return False
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError:
        return True
    return False


def _loads_leniently(data: bytes, error: orjson.JSONDecodeError) -> Any:
    """The standard parser takes the lone surrogates that orjson refuses."""
    try:
        return json.loads(data.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise InvalidInput(f"Request body is not valid JSON: {error}") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def dumps(value: Any) -> str:
    """The value as compact JSON text that PostgreSQL takes; cleans it on the way if it must.

    Raises `InvalidInput` for what JSON cannot say or what is nested too deeply.
    """
    try:
        text = orjson.dumps(value)
    except orjson.JSONEncodeError:
        try:
            text = orjson.dumps(clean(value))
        except orjson.JSONEncodeError as error:
            raise InvalidInput(f"Not a JSON value: {error}") from None
    if b"\\u0000" in text:
        text = orjson.dumps(clean(value))
    return text.decode()
