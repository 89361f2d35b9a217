"""Cutting files into records: whole ones arrive, whatever stands around them."""

import gzip
import io
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mastra_memory.importers import json_stream


class Trickle:
    """A stream that gives a few bytes at a time."""

    def __init__(self, data: bytes, size: int) -> None:
        self._stream = io.BytesIO(data)
        self._size = size

    def read(self, size: int, /) -> bytes:
        return self._stream.read(min(self._size, size))


def cut(data: bytes, size: int = 1 << 20) -> list[tuple[bytes, str]]:
    return [(raw.data, raw.error) for raw in json_stream.split_records(Trickle(data, size))]


TRUNCATED = "the file ends in the middle of a record"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize(
    ("data", "records"),
    [
        (b'[{"a":1},{"b":[2,{"c":3}]}]', [b'{"a":1}', b'{"b":[2,{"c":3}]}']),
        (b'{"a":1}\n\n{"b":2}\n', [b'{"a":1}', b'{"b":2}']),
        (b'{"a":1}\r\n{"b":2}', [b'{"a":1}\r', b'{"b":2}']),
        (b'{"a":1}', [b'{"a":1}']),
        (b'{\n "a": [1,\n 2]\n}\n{\n"b":1}', [b'{\n "a": [1,\n 2]\n}', b'{\n"b":1}']),
        (b'[{"a":"]},{\\"[\\\\"},{"b":1}]', [b'{"a":"]},{\\"[\\\\"}', b'{"b":1}']),
        (b'\xef\xbb\xbf\n [ {"a":1} , {"b":2} ] ', [b'{"a":1}', b'{"b":2}']),
        (b"[]", []),
        (b"", []),
        (b" \n", []),
        (b'["x", 5, {"a":1}, null]', [b'"x", 5', b'{"a":1}', b"null"]),
        (b'[[1,2],{"a":1}]', [b"[1,2]", b'{"a":1}']),
        (b"not JSON at all", [b"not JSON at all"]),
        (b'[{"a":1}] and more', [b'{"a":1}', b"and more"]),
    ],
)
def test_split__gives_each_value_however_the_bytes_come(
    data: bytes, records: list[bytes], size: int
) -> None:
    assert cut(data, size) == [(record, "") for record in records]


@pytest.mark.parametrize("size", [1, 5, 1000])
@pytest.mark.parametrize(
    ("data", "whole"),
    [
        (b'[{"a":1}}, {"b":2}]', [b'{"a":1}', b'{"b":2}']),
        (b'[{"a":[1}, {"b":2}]', [b'{"b":2}']),
        (b'[{"a":1,}, {"b":2}]', [b'{"b":2}']),
        (b'[{"a":"x\n}, {"b":2}]', [b'{"b":2}']),
        (b'{"a":1}\n{"b": oops\n{"c":3}', [b'{"a":1}', b'{"c":3}']),
        (b'{"a":1}\n}}}\n{"c":3}', [b'{"a":1}', b'{"c":3}']),
    ],
)
def test_split__a_broken_record_costs_no_other(data: bytes, whole: list[bytes], size: int) -> None:
    found = [record for record, _ in cut(data, size)]
    assert [record for record in found if record in whole] == whole


@pytest.mark.parametrize(
    ("data", "rest"),
    [
        (b'[{"a":1},{"b":"brok', b'{"b":"brok'),
        (b'[{"a":1},', b""),
        (b'[{"a":1}', b""),
    ],
)
def test_split__says_that_a_file_breaks_off(data: bytes, rest: bytes) -> None:
    assert cut(data) == [(b'{"a":1}', ""), (rest, TRUNCATED)]


def test_split__packed_stream_that_breaks_off_gives_what_is_whole() -> None:
    lines = b"".join(b'{"n":%d,"text":"%s"}\n' % (n, b"x" * 50) for n in range(50_000))
    packed = gzip.compress(lines, compresslevel=1)
    stream = gzip.GzipFile(fileobj=io.BytesIO(packed[: len(packed) // 2]))
    *whole, last = json_stream.split_records(stream)
    assert len(whole) > 1000
    assert not any(raw.error for raw in whole)
    assert "cannot be read further" in last.error


def test_split__what_is_not_packed_as_it_says_is_one_fault() -> None:
    (raw,) = json_stream.split_records(gzip.GzipFile(fileobj=io.BytesIO(b'[{"a":1}]')))
    assert "cannot be read further: Not a gzipped file" in raw.error


def test_split__utf_16_is_refused_in_words() -> None:
    assert [error for _, error in cut('[{"a":1}]'.encode("utf-16"))] == [
        "the file is UTF-16; UTF-8 is needed"
    ]


@pytest.mark.parametrize("head", [b"[", b""], ids=["array", "lines"])
def test_split__a_record_beyond_the_limit_is_refused_and_the_next_one_comes(
    head: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_stream, "MAX_RECORD_BYTES", 1000)
    huge = b'{"a":"' + b"x" * 5000 + b'"}'
    separator = b"," if head else b"\n"
    records = cut(head + b'{"b":1}' + separator + huge + separator + b'{"c":2}', size=100)
    assert [error for _, error in records[:3]] == ["", "longer than 64 MB", ""]
    assert [record for record, error in records[:3] if not error] == [b'{"b":1}', b'{"c":2}']


def test_split__line_numbers_are_those_of_the_file() -> None:
    raws = json_stream.split_records(io.BytesIO(b'{"a":1}\n\n\n{"b":2}\n'))
    assert [raw.number for raw in raws] == [1, 4]


@pytest.mark.parametrize(
    "data",
    [
        b"[" + b"{" * 300_000 + b"]" * 300_000,
        b"{" * 300_000 + b"]" * 300_000,
        b"[" * 600_000,
        b'{"a":' * 150_000,
        b'[{"a":"x\n' * 100_000,
        b'[{"a":"' + b"x" * 5_000_000,
        b'[{"a":"' + b"\\" * 5_000_001,
        b"[" + b'{"a":1} oops ' * 50_000,
    ],
)
def test_split__broken_files_take_linear_time(data: bytes) -> None:
    started = time.process_time()
    assert cut(data)
    assert time.process_time() - started < 10


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=10,
)


@settings(deadline=None)
@given(
    records=st.lists(st.dictionaries(st.text(), values), max_size=5),
    indent=st.sampled_from([None, 2]),
    size=st.integers(1, 40),
)
def test_split__any_array_of_objects_comes_back(
    records: list[dict[str, object]], indent: int | None, size: int
) -> None:
    import json

    data = json.dumps(records, indent=indent, ensure_ascii=False).encode(errors="replace")
    found = [json.loads(record) for record, error in cut(data, size) if not error]
    assert found == json.loads(data)
