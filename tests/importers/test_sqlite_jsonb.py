"""Tests of decoding SQLite's binary JSON."""

import pytest

from mastra_memory.importers.formats.mastra import sqlite_jsonb


@pytest.mark.parametrize(
    ("blob", "value"),
    [
        (b"\x00", None),
        (b"\x01", True),
        (b"\x02", False),
        (b"\x13" + b"7", 7),
        (b"\x23" + b"-7", -7),
        (b"\x44" + b"0x1F", 31),
        (b"\x54" + b"-0x1F", -31),
        (b"\xc3\x17" + b"12345678901234567890123", 1.2345678901234568e22),
        (b"\x35" + b"1.5", 1.5),
        (b"\x26" + b".5", 0.5),
        (b"\x37" + b"abc", "abc"),
        (b"\x48" + b'a\\"b', 'a"b'),
        (b"\x68" + b"\\u00fc", "ü"),
        (b"\xc8\x0c" + b"\\ud83d\\ude00", "😀"),
        (b"\x49" + b"\\x41", "A"),
        (b"\x59" + b"a\\\nb\\v"[:5], "ab\\"),
        (b"\x29" + b"\\'", "'"),
        (b"\x3a" + b'a"b', 'a"b'),
        (b"\x0b", []),
        (b"\x4b" + b"\x131" + b"\x132", [1, 2]),
        (b"\x0c", {}),
        (b"\x4c" + b"\x17a" + b"\x131", {"a": 1}),
        (b"\xc7\x03" + b"abc", "abc"),
        (b"\xd7\x00\x03" + b"abc", "abc"),
        (b"\xe7\x00\x00\x00\x03" + b"abc", "abc"),
        (b"\xf7\x00\x00\x00\x00\x00\x00\x00\x03" + b"abc", "abc"),
    ],
)
def test_decode_jsonb__each_type_and_each_size(blob: bytes, value: object) -> None:
    assert sqlite_jsonb.decode_jsonb(blob) == value


def test_decode_jsonb__data_written_by_libsql() -> None:
    blob = (
        b'\xcc\x4c\x17a\x131\x17b\xcb"51.5\x17x\x00\x01\xcc\x18Gdeep'
        b'\xc8\x11\xc3\xbc\xe2\x98\x83 \\"q\\" \\\\ \\n\xc7\x0dworkingMemory\xb7thread text'
    )
    blob = blob[:1] + bytes([len(blob) - 2]) + blob[2:]
    assert sqlite_jsonb.decode_jsonb(blob) == {
        "a": 1,
        "b": [1.5, "x", None, True, {"deep": 'ü☃ "q" \\ \n'}],
        "workingMemory": "thread text",
    }


@pytest.mark.parametrize(
    "blob",
    [
        b"",
        b"\x37ab",
        b"\xc7",
        b"\xf7\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x13x",
        b"\x0d",
        b"\x2c\x17a",
        b"\x4c\x131\x131",
        b"\x00\x00",
        b"\xfb" + b"\x00" * 8 + b"\x01",
    ],
)
def test_decode_jsonb__invalid_data_is_an_error(blob: bytes) -> None:
    with pytest.raises(ValueError):
        sqlite_jsonb.decode_jsonb(blob)


def test_decode_jsonb__deep_nesting_is_an_error() -> None:
    blob = b"\x0b"
    for _ in range(5000):
        size = len(blob)
        blob = b"\xeb" + size.to_bytes(4, "big") + blob
    with pytest.raises(ValueError, match="nested"):
        sqlite_jsonb.decode_jsonb(blob)


@pytest.mark.parametrize("value", ['{"a": 1}', b"\x4c\x17a\x131"])
def test_decode_json_column__accepts_text_and_bytes(value: object) -> None:
    assert sqlite_jsonb.decode_json_column(value) == {"a": 1}


@pytest.mark.parametrize("value", ["{", 5, "[" * 100_000])
def test_decode_json_column__other_types_are_an_error(value: object) -> None:
    with pytest.raises(ValueError):
        sqlite_jsonb.decode_json_column(value)
