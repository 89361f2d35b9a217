"""JSON and text: what is taken, cleaned and refused."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mastra_memory.db import json_text
from mastra_memory.exceptions import InvalidInput, InvalidJson
from tests.support.waiting import fail_after

DEEP = json_text.MAX_DEPTH
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=20,
)


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
    assert json_text.clean_text(text) == kept


def test_clean__reaches_keys_and_values_at_every_depth() -> None:
    value = {"a\x00": [{"b\ud800": "c\x00"}, 1, None, True, 1.5]}
    assert json_text.clean_json(value) == {"a\ufffd": [{"b\ufffd": "c\ufffd"}, 1, None, True, 1.5]}


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
    assert json_text.loads(data) == value


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
        json_text.loads(data)


@pytest.mark.parametrize("number", [b"1e400", b"-1e400", b"1" + b"0" * 400])
def test_loads__a_number_without_bounds_is_null_or_refused(number: bytes) -> None:
    """As in JavaScript, infinity is written as null; it never fails on the way out."""
    try:
        assert json.loads(json_text.dumps(json_text.loads(number))) is None
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
    assert json.loads(json_text.dumps(value)) == value


def test_dumps__cleans_what_it_is_given() -> None:
    assert json.loads(json_text.dumps({"a\x00": "b\ud800"})) == {"a\ufffd": "b\ufffd"}
    assert json.loads(json_text.dumps([2**70, "\x00"])) == [2.0**70, "\ufffd"]


@pytest.mark.parametrize("value", [nested(DEEP + 10), nested(5_000), object(), {1, 2}, b"bytes"])
def test_dumps__what_json_cannot_say_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInput):
        json_text.dumps(value)


@pytest.mark.parametrize("value", [{1: "a"}, {None: 1}, [float("inf")], [float("nan")]])
def test_dumps__python_values_have_a_json_form_or_are_refused(value: Any) -> None:
    try:
        json.loads(json_text.dumps(value))
    except InvalidInput:
        pass


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
@pytest.mark.parametrize("levels", [255, 950, 1_100, 100_000])
def test_loads__too_deep_text_is_invalid_input_and_nothing_else(
    opening: str, closing: str, levels: int
) -> None:
    for text in (opening * levels, opening * levels + "1" + closing * levels):
        with pytest.raises(InvalidInput):
            json_text.loads(text)
        with pytest.raises(InvalidInput):
            json_text.loads(text.encode())


def test_loads__takes_text_with_lone_surrogates() -> None:
    assert json_text.loads('{"a": "\ud800"}') == {"a": "\ufffd"}


def test_loads__says_where_text_stops_being_json() -> None:
    with pytest.raises(InvalidJson) as caught:
        json_text.loads('{"a":\n 1,}')
    assert (caught.value.line, caught.value.column) == (2, 3)
    assert "trailing comma" in caught.value.reason


TEXT_FULL_OF_COMMAS = json.dumps(["a,b:c[{" * 100, 'an escaped quote " , , , ,', "\\"])


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("[1,2,3]", 3),
        ('{"a":1,"b":[{}]}', 6),
        ("[{},{},{}]", 6),
        ('["a","b"]', 2),
        ("[[[[]]]]", 4),
        (TEXT_FULL_OF_COMMAS, 3),
    ],
)
def test_loads__limits_the_names_and_values(text: str, values: int) -> None:
    assert json_text.loads(text, max_values=values + 1) == json.loads(text)
    with pytest.raises(InvalidInput, match="at most"):
        json_text.loads(text, max_values=values)


@settings(deadline=None, max_examples=300)
@given(value=json_values, indent=st.sampled_from([None, 1]))
def test_has_more_values__never_counts_more_than_the_document_holds(
    value: Any, indent: int | None
) -> None:
    text = json.dumps(value, indent=indent).encode()
    assert not json_text.has_more_values(text, size_of(value) + 1)


def size_of(value: Any) -> int:
    """The names and values in a document, brackets of empty ones counted as a value."""
    if isinstance(value, dict):
        return 2 + sum(1 + size_of(part) for part in value.values())
    if isinstance(value, list):
        return 2 + sum(map(size_of, value))
    return 1


def test_has_more_values__strings_without_separators_are_left_to_the_parser() -> None:
    data = b'"a"' * 3_000_000 + b"," * 2_000
    with fail_after():
        assert not json_text.has_more_values(data, 1_000)
    with pytest.raises(InvalidInput):
        json_text.loads(data)


PACKAGE = Path(json_text.__file__).parent
PARSING = re.compile(r"\bjson\.loads?\(|\borjson\.loads\(|JSONDecoder\b|raw_decode\(|parse_json\(")


def test_package__parses_json_nowhere_but_in_loads() -> None:
    """A second place would need limits on depth and its own errors."""
    folders = (PACKAGE, PACKAGE.parent / "project")
    files = [file for folder in folders for file in folder.rglob("*.py")]
    parsing = [file.name for file in files if PARSING.search(file.read_text())]
    assert parsing == ["json_text.py"]
    assert len(PARSING.findall(Path(json_text.__file__).read_text())) == 2
    assert PARSING.search("value = orjson.loads(data)")
