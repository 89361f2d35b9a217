"""JSON and text: what is taken, cleaned and refused."""

import json
from typing import Any

import pytest

from mastra_memory import jsontext
from mastra_memory.exceptions import InvalidInput

DEEP = jsontext.MAX_DEPTH


def nested(levels: int) -> Any:
    """A list in a list in a list."""
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("plain", "plain"),
        ("ü☃😀\n\t", "ü☃😀\n\t"),
        ("a\x00b", "a\ufffdb"),
        ("\x00\x00", "\ufffd\ufffd"),
        ("a\ud800b", "a\ufffdb"),
        ("\udfff\x00\udc00", "\ufffd\ufffd\ufffd"),
        ("", ""),
    ],
)
def test_clean_text__replaces_what_no_database_holds(text: str, kept: str) -> None:
    assert jsontext.clean_text(text) == kept


def test_clean__reaches_keys_and_values_at_every_depth() -> None:
    value = {"a\x00": [{"b\ud800": "c\x00"}, 1, None, True, 1.5]}
    assert jsontext.clean(value) == {"a\ufffd": [{"b\ufffd": "c\ufffd"}, 1, None, True, 1.5]}


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"a": 1}', {"a": 1}),
        (b'"a\\u0000b"', "a\ufffdb"),
        (b'"a\\ud800b"', "a\ufffdb"),
        (b'{"\\ud800": "\\u0000"}', {"\ufffd": "\ufffd"}),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b'"\\\\u0000"', "\\u0000"),
        (b'{"a": 1, "a": 2}', {"a": 2}),
        (b"1180591620717411303424", 2.0**70),
        (b'["\\ud800", 1180591620717411303424]', ["\ufffd", 2.0**70]),
        (b"18446744073709551615", 2**64 - 1),
        (b"-9223372036854775808", -(2**63)),
    ],
)
def test_loads__what_is_taken(data: bytes, value: Any) -> None:
    assert jsontext.loads(data) == value


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{bad",
        b"NaN",
        b"[Infinity]",
        b'["\\ud800", NaN]',
        b"\xff\xfe",
        b'"\xff"',
        b"\xef\xbb\xbf{}",
        b'{"a": 1} x',
        b"[" * 100_000,
        b"1" * 5_000,
        b"[" * 2_000 + b"]" * 2_000,
    ],
)
def test_loads__what_is_no_json_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput):
        jsontext.loads(data)


@pytest.mark.parametrize("number", [b"1e400", b"-1e400", b"1" + b"0" * 400])
def test_loads__a_number_without_bounds_is_null_or_refused(number: bytes) -> None:
    """As in JavaScript, infinity is written as null; it never fails on the way out."""
    try:
        assert json.loads(jsontext.dumps(jsontext.loads(number))) is None
    except InvalidInput:
        pass


@pytest.mark.parametrize(
    "value",
    [
        {"ü": [1.5, None, True, "☃"]},
        {"big": 2**64 - 1},
        nested(DEEP),
        "",
    ],
)
def test_dumps__is_read_back_equal(value: Any) -> None:
    assert json.loads(jsontext.dumps(value)) == value


def test_dumps__cleans_what_it_is_given() -> None:
    assert json.loads(jsontext.dumps({"a\x00": "b\ud800"})) == {"a\ufffd": "b\ufffd"}
    assert json.loads(jsontext.dumps([2**70, "\x00"])) == [2.0**70, "\ufffd"]


@pytest.mark.parametrize("value", [nested(DEEP + 10), nested(5_000), object(), {1, 2}, b"bytes"])
def test_dumps__what_json_cannot_say_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInput):
        jsontext.dumps(value)


@pytest.mark.parametrize("value", [{1: "a"}, {None: 1}, [float("inf")], [float("nan")]])
def test_dumps__python_values_have_a_json_form_or_are_refused(value: Any) -> None:
    try:
        json.loads(jsontext.dumps(value))
    except InvalidInput:
        pass
