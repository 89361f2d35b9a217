"""Tests of splitting files into JSON records."""

import gzip
import io
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mastra_memory.importers import json_stream
from tests.support.waiting import fail_after


class SlowStream:
    """A stream that returns a few bytes at a time."""

    def __init__(self, data: bytes, size: int) -> None:
        self._stream = io.BytesIO(data)
        self._size = size

    def read(self, size: int, /) -> bytes:
        return self._stream.read(min(self._size, size))


def split(data: bytes, size: int = 1 << 20) -> list[tuple[bytes, str]]:
    return [(raw.data, raw.error) for raw in json_stream.split_records(SlowStream(data, size))]


MAX_CPU_SECONDS = 4.0
"""For 5 MB of brackets: several times what it takes on a quiet machine."""
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
def test_split_records__chunk_size_does_not_matter(
    data: bytes, records: list[bytes], size: int
) -> None:
    assert split(data, size) == [(record, "") for record in records]


@pytest.mark.parametrize("size", [1, 5, 1000])
@pytest.mark.parametrize(
    ("data", "complete"),
    [
        (b'[{"a":1}}, {"b":2}]', [b'{"a":1}', b'{"b":2}']),
        (b'[{"a":[1}, {"b":2}]', [b'{"b":2}']),
        (b'[{"a":1,}, {"b":2}]', [b'{"b":2}']),
        (b'[{"a":"x\n}, {"b":2}]', [b'{"b":2}']),
        (b'{"a":1}\n{"b": oops\n{"c":3}', [b'{"a":1}', b'{"c":3}']),
        (b'{"a":1}\n}}}\n{"c":3}', [b'{"a":1}', b'{"c":3}']),
    ],
)
def test_split_records__broken_record_does_not_affect_others(
    data: bytes, complete: list[bytes], size: int
) -> None:
    found = [record for record, _ in split(data, size)]
    assert [record for record in found if record in complete] == complete


@pytest.mark.parametrize(
    ("data", "rest"),
    [
        (b'[{"a":1},{"b":"brok', b'{"b":"brok'),
        (b'[{"a":1},', b""),
        (b'[{"a":1}', b""),
    ],
)
def test_split_records__reports_a_truncated_file(data: bytes, rest: bytes) -> None:
    assert split(data) == [(b'{"a":1}', ""), (rest, TRUNCATED)]


def test_split_records__truncated_gzip_gives_complete_records() -> None:
    lines = b"".join(b'{"n":%d,"text":"%s"}\n' % (n, b"x" * 50) for n in range(50_000))
    packed = gzip.compress(lines, compresslevel=1)
    stream = gzip.GzipFile(fileobj=io.BytesIO(packed[: len(packed) // 2]))
    *complete, last = json_stream.split_records(stream)
    assert len(complete) > 1000
    assert not any(raw.error for raw in complete)
    assert "cannot be read further" in last.error


def test_split_records__invalid_gzip_is_one_error() -> None:
    (raw,) = json_stream.split_records(gzip.GzipFile(fileobj=io.BytesIO(b'[{"a":1}]')))
    assert "cannot be read further: Not a gzipped file" in raw.error


def test_split_records__utf_16_is_refused() -> None:
    assert [error for _, error in split('[{"a":1}]'.encode("utf-16"))] == [
        "the file is UTF-16; UTF-8 is needed"
    ]


@pytest.mark.parametrize("head", [b"[", b""], ids=["array", "lines"])
def test_split_records__too_long_record_is_refused_alone(
    head: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_stream, "MAX_RECORD_BYTES", 1000)
    huge = b'{"a":"' + b"x" * 5000 + b'"}'
    separator = b"," if head else b"\n"
    records = split(head + b'{"b":1}' + separator + huge + separator + b'{"c":2}', size=100)
    assert [error for _, error in records[:3]] == ["", "longer than 64 MB", ""]
    assert [record for record, error in records[:3] if not error] == [b'{"b":1}', b'{"c":2}']


def test_split_records__line_numbers_count_blank_lines() -> None:
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
def test_split_records__broken_files_take_linear_time(data: bytes) -> None:
    with fail_after():
        assert split(data)


MANY = 5_000_000


@pytest.mark.parametrize(
    "data",
    [
        b"[" * MANY,
        b"{" * MANY,
        b"[" + b"{" * MANY,
        b"[" + b"]" * MANY,
        b"{" * (MANY // 2) + b"]" * (MANY // 2),
        b"[" * (MANY // 2) + b"]" * (MANY // 2),
        b"{\n" * (MANY // 2),
    ],
    ids=lambda data: repr(data[:6]),
)
def test_split_records__millions_of_brackets_take_a_second(data: bytes) -> None:
    started = time.process_time()
    assert sum(1 for _ in json_stream.split_records(io.BytesIO(data))) <= 1
    assert time.process_time() - started < MAX_CPU_SECONDS


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
def test_split_records__any_array_of_objects(
    records: list[dict[str, object]], indent: int | None, size: int
) -> None:
    import json

    data = json.dumps(records, indent=indent, ensure_ascii=False).encode(errors="replace")
    found = [json.loads(record) for record, error in split(data, size) if not error]
    assert found == json.loads(data)
