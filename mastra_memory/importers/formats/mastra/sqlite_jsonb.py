"""Decode JSONB, the binary JSON of SQLite, which LibSQL uses for metadata.

The format is described at https://sqlite.org/jsonb.html: each element has a header with its type
(the lower four bits of the first byte) and its size, followed by its payload.
"""

import re
from typing import Any

from mastra_memory.db import json_text
from mastra_memory.exceptions import InvalidInput

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(\r\n|.))", re.DOTALL)
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0"}
_LINE_BREAKS = frozenset({"\n", "\r\n", "\r", "\u2028", "\u2029"})
_SIZE_BYTES = {12: 1, 13: 2, 14: 4, 15: 8}


def decode_jsonb(blob: bytes) -> Any:
    """Return the JSON value, or raise `ValueError` if the bytes are not JSONB."""
    value, end = _decode_element(blob, 0, len(blob), 0)
    if end != len(blob):
        raise ValueError("bytes after the value")
    return value


def _decode_element(blob: bytes, start: int, limit: int, depth: int) -> tuple[Any, int]:
    kind, payload, end = _decode_header(blob, start, limit)
    if depth > json_text.MAX_DEPTH:
        raise ValueError("nested too deeply")
    if kind == 11:
        return _decode_array(blob, payload, end, depth), end
    if kind == 12:
        return _decode_object(blob, payload, end, depth), end
    return _decode_scalar(kind, blob[payload:end].decode(errors="replace")), end


def _decode_header(blob: bytes, start: int, limit: int) -> tuple[int, int, int]:
    """Return the type of an element, and the start and the end of its payload."""
    if start >= limit:
        raise ValueError("the data ends too early")
    code = blob[start] >> 4
    payload = start + 1 + _SIZE_BYTES.get(code, 0)
    size = int.from_bytes(blob[start + 1 : payload], "big") if code > 11 else code
    if payload + size > limit:
        raise ValueError("the data ends too early")
    return blob[start] & 15, payload, payload + size


def _decode_array(blob: bytes, start: int, end: int, depth: int) -> list[Any]:
    items = []
    while start < end:
        item, start = _decode_element(blob, start, end, depth + 1)
        items.append(item)
    return items


def _decode_object(blob: bytes, start: int, end: int, depth: int) -> dict[str, Any]:
    members: dict[str, Any] = {}
    while start < end:
        key, start = _decode_element(blob, start, end, depth + 1)
        if not isinstance(key, str):
            raise ValueError("a key that is not a string")
        members[key], start = _decode_element(blob, start, end, depth + 1)
    return members


def _decode_scalar(kind: int, text: str) -> Any:
    match kind:
        case 0:
            return None
        case 1 | 2:
            return kind == 1
        case 3 | 4:
            return _parse_integer(text)
        case 5 | 6:
            return float(text)
        case 7 | 10:
            return text
        case 8 | 9:
            return _unescape(text)
    raise ValueError(f"unknown type {kind}")


def _parse_integer(text: str) -> int | float:
    """Return the number; beyond 64 bits the nearest double, as `json_text.loads` does."""
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    number = sign * int(digits, 16 if digits[:2].lower() == "0x" else 10)
    return number if -(2**63) <= number < 2**64 else float(number)


def _unescape(text: str) -> str:
    """Replace the escapes of JSON5, which include those of JSON."""
    plain = _ESCAPE.sub(_unescape_match, text)
    # Two escaped surrogates become one character; a lone surrogate becomes U+FFFD.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unescape_match(match: re.Match[str]) -> str:
    code, short_code, char = match.groups()
    if char is None:
        return chr(int(code or short_code, 16))
    return "" if char in _LINE_BREAKS else _ESCAPED.get(char, char)


def decode_json_column(value: Any) -> Any:
    """Return the value of a JSON column, which is text in older rows and bytes in newer ones.

    Raises:
        ValueError: The value is neither, or it is not valid.
    """
    if isinstance(value, bytes):
        return decode_jsonb(value)
    if isinstance(value, str):
        try:
            return json_text.loads(value)
        except InvalidInput:
            raise ValueError("not valid JSON") from None
    if value is None:
        return None
    raise ValueError("neither text nor bytes")
