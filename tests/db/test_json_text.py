"""Reading, cleaning and writing JSON and text."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mastra_memory
from mastra_memory.db import json_text
from mastra_memory.db.json_text import MAX_DEPTH
from mastra_memory.exceptions import InvalidInput, InvalidJson
from tests.support.waiting import fail_after

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=20,
)


def nested(levels: int) -> Any:
    """Return lists nested in each other."""
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("text", "cleaned"),
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
def test_clean_text__replaces_what_postgresql_cannot_store(text: str, cleaned: str) -> None:
    assert json_text.clean_text(text) == cleaned


def test_clean_json__cleans_keys_and_values_at_every_depth() -> None:
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
def test_loads__returns_cleaned_values(data: bytes, value: Any) -> None:
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
def test_loads__refuses_text_that_is_not_json(data: bytes) -> None:
    with pytest.raises(InvalidInput):
        json_text.loads(data)


@pytest.mark.parametrize("number", [b"1e400", b"-1e400", b"1" + b"0" * 400])
def test_loads__a_number_beyond_doubles_is_null_or_refused(number: bytes) -> None:
    """As in JavaScript, infinity is written as null; writing it never fails."""
    try:
        assert json.loads(json_text.dumps(json_text.loads(number))) is None
    except InvalidInput:
        pass


@pytest.mark.parametrize(
    "value",
    [
        {"ü": [1.5, None, True, "☃"]},
        {"big": 2**64 - 1},
        nested(MAX_DEPTH),
        "",
    ],
)
def test_dumps__can_be_read_back(value: Any) -> None:
    assert json.loads(json_text.dumps(value)) == value


def test_dumps__cleans_texts_and_numbers() -> None:
    assert json.loads(json_text.dumps({"a\x00": "b\ud800"})) == {"a\ufffd": "b\ufffd"}
    assert json.loads(json_text.dumps([2**70, "\x00"])) == [2.0**70, "\ufffd"]


@pytest.mark.parametrize(
    "value", [nested(MAX_DEPTH + 10), nested(5_000), object(), {1, 2}, b"bytes"]
)
def test_dumps__refuses_values_that_json_does_not_have(value: Any) -> None:
    with pytest.raises(InvalidInput):
        json_text.dumps(value)


@pytest.mark.parametrize("value", [{1: "a"}, {None: 1}, [float("inf")], [float("nan")]])
def test_dumps__converts_or_refuses_other_python_values(value: Any) -> None:
    try:
        json.loads(json_text.dumps(value))
    except InvalidInput:
        pass


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
@pytest.mark.parametrize("levels", [255, 950, 1_100, 100_000])
def test_loads__refuses_deep_nesting_with_invalid_input(
    opening: str, closing: str, levels: int
) -> None:
    for text in (opening * levels, opening * levels + "1" + closing * levels):
        with pytest.raises(InvalidInput):
            json_text.loads(text)
        with pytest.raises(InvalidInput):
            json_text.loads(text.encode())


def test_loads__accepts_text_with_lone_surrogates() -> None:
    assert json_text.loads('{"a": "\ud800"}') == {"a": "\ufffd"}


def test_loads__reports_line_and_column_of_the_error() -> None:
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
def test_has_more_values__never_counts_too_many(value: Any, indent: int | None) -> None:
    text = json.dumps(value, indent=indent).encode()
    assert not json_text.has_more_values(text, count_values(value) + 1)


def count_values(value: Any) -> int:
    """Return the number of names and values, with brackets counted as values."""
    if isinstance(value, dict):
        return 2 + sum(1 + count_values(part) for part in value.values())
    if isinstance(value, list):
        return 2 + sum(map(count_values, value))
    return 1


def test_has_more_values__stops_at_strings_without_separators() -> None:
    data = b'"a"' * 3_000_000 + b"," * 2_000
    with fail_after():
        assert not json_text.has_more_values(data, 1_000)
    with pytest.raises(InvalidInput):
        json_text.loads(data)


PACKAGE = Path(mastra_memory.__file__).parent
PARSING = re.compile(r"\bjson\.loads?\(|\borjson\.loads\(|JSONDecoder\b|raw_decode\(")


def test_package__parses_json_only_in_loads() -> None:
    """Another call of the parser would lack the limits on depth and the errors."""
    folders = (PACKAGE, PACKAGE.parent / "project")
    assert all(folder.is_dir() for folder in folders)
    files = [file for folder in folders for file in folder.rglob("*.py")]
    parsing = [file.name for file in files if PARSING.search(file.read_text())]
    assert parsing == ["json_text.py"]
    assert len(PARSING.findall(Path(json_text.__file__).read_text())) == 2
    assert PARSING.search("value = orjson.loads(data)")
