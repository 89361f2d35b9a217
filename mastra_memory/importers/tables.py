"""Read CSV files as records, with the names of the columns as keys."""

import codecs
import csv
import io
import re
from collections.abc import Iterator

from mastra_memory.db import json_text
from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers.json_stream import (
    MAX_RECORD_BYTES,
    READ_ERRORS,
    TOO_LONG,
    ByteStream,
    RawRecord,
)

DELIMITERS = ",;\t|"
"""The delimiters that are recognized in a header."""

_EXCERPT_CHARACTERS = 300
_UNDECODABLE = re.compile("[\udc80-\udcff]")


class _Reader(io.RawIOBase):
    """Give a stream that only has `read` the interface that `io.TextIOWrapper` needs."""

    def __init__(self, stream: ByteStream, head: bytes) -> None:
        self._stream = stream
        self._head = head

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        data, self._head = self._head[: len(buffer)], self._head[len(buffer) :]
        data = data or self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def split_rows(
    stream: ByteStream, *, encoding: str = "", delimiter: str = ""
) -> Iterator[RawRecord]:
    """Yield each row as a JSON object of texts, numbered by the line on which it begins.

    Args:
        stream: The decompressed bytes of a file.
        encoding: The encoding; default: UTF-8, or UTF-16 with a byte order mark.
        delimiter: The delimiter; default: the one of `DELIMITERS` that is most frequent in the
            header.
    """
    head = stream.read(len(codecs.BOM_UTF8))
    if not encoding:
        is_utf16 = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        encoding = "utf-16" if is_utf16 else "utf-8-sig"
    buffered = io.BufferedReader(_Reader(stream, head))  # type: ignore[type-var]
    # Bytes that cannot be decoded become surrogates, so that only their row is refused.
    text = io.TextIOWrapper(buffered, encoding, errors="surrogateescape", newline="")
    # The limit is one of the whole process; the default of 128 KB is less than a long message.
    csv.field_size_limit(MAX_RECORD_BYTES)
    try:
        yield from _split_lines(_iter_lines(text), delimiter)
    except (*READ_ERRORS, UnicodeError) as error:
        yield RawRecord(0, b"", f"the file cannot be read further: {error}")
    except InvalidInput as error:
        yield RawRecord(0, b"", str(error))


def _iter_lines(text: io.TextIOWrapper) -> Iterator[str]:
    while line := text.readline(MAX_RECORD_BYTES):
        if len(line) == MAX_RECORD_BYTES:
            raise InvalidInput(f"a line is {TOO_LONG}")
        yield line


def _split_lines(lines: Iterator[str], delimiter: str) -> Iterator[RawRecord]:
    header = next(lines, "")
    if not header.strip():
        return
    delimiter = delimiter or max(DELIMITERS, key=header.count)
    names = [name.strip() for name in next(csv.reader([header], delimiter=delimiter))]
    if duplicates := sorted({name for name in names if names.count(name) > 1 and name}):
        raise InvalidInput(f"the header has the column {duplicates[0]} more than once")
    rows = csv.reader(lines, delimiter=delimiter)
    while True:
        line = rows.line_num + 2  # the header is the first line
        try:
            row = next(rows, None)
        except csv.Error as error:
            yield RawRecord(line, b"", f"not valid CSV: {error}")
            continue
        if row is None:
            return
        if any(row):
            yield _build_record(line, names, row)


def _build_record(number: int, names: list[str], row: list[str]) -> RawRecord:
    excerpt = ",".join(row)[:_EXCERPT_CHARACTERS].encode(errors="replace")
    if sum(map(len, row)) > MAX_RECORD_BYTES:
        return RawRecord(number, excerpt, TOO_LONG)
    if any(map(_UNDECODABLE.search, row)):
        return RawRecord(number, excerpt, "not in the encoding of the file")
    if len(row) > len(names):
        return RawRecord(number, excerpt, f"{len(row)} cells, but {len(names)} columns")
    record = dict(zip(names, row, strict=False))
    return RawRecord(number, json_text.dumps(record).encode())
