"""Cut a stream of any size into its JSON records, holding one of them at a time.

A record that cannot be parsed costs itself only: the cut is made by brackets and quotes, or by
lines, before anything is parsed. (Event parsers give up on a file at its first bad byte.)
"""

import gzip
import lzma
import re
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from mastra_memory.db import json_text
from mastra_memory.exceptions import InvalidInput

CHUNK_BYTES = 1 << 20
MAX_RECORD_BYTES = 64 << 20
"""A longer record is refused, so that memory stays bounded."""

_MAX_DEPTH = 1_024
"""A closing bracket may close this many; no parser accepts deeper JSON."""
_EXCERPT_BYTES = 500
_TOO_LONG = f"longer than {MAX_RECORD_BYTES >> 20} MB"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SEPARATORS = b" \t\r\n,"
_TOKEN = re.compile(rb'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+("?)|[\[\]{}]', re.DOTALL)
_REST_OF_STRING = re.compile(rb'[^"\\\n]*+(?:\\.[^"\\\n]*+)*+("?)', re.DOTALL)
_READ_ERRORS = (EOFError, OSError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, zipfile.BadZipFile)


class ByteStream(Protocol):
    """Whatever gives bytes."""

    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class RawRecord:
    """One record as it stands in the file."""

    number: int
    """Counted from 1; the line in a file of lines."""
    data: bytes
    fault: str = ""
    """Why it cannot be whole; `data` then holds how it begins."""


def split_records(stream: ByteStream) -> Iterator[RawRecord]:
    """The elements of the array that the stream holds, or its lines, or its values one by one."""
    head = _read_head(stream)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        yield RawRecord(1, head[:_EXCERPT_BYTES], "the file is UTF-16; UTF-8 is needed")
    elif head.startswith(b"["):
        yield from _split_values(stream, head, depth=1)
    elif any(map(_is_object_line, head.split(b"\n"))):
        yield from _split_lines(stream, head)
    else:
        yield from _split_values(stream, head, depth=0)


def _read_head(stream: ByteStream) -> bytes:
    """The beginning, without a byte order mark and blanks: some lines, at least one."""
    head = b""
    while len(head) < CHUNK_BYTES or (b"\n" not in head and len(head) < MAX_RECORD_BYTES):
        chunk, _ = _read_chunk(stream)
        if not chunk:
            break
        head += chunk
        if head.removeprefix(_BYTE_ORDER_MARK).lstrip().startswith(b"["):
            break
    return head.removeprefix(_BYTE_ORDER_MARK).lstrip()


def _is_object_line(line: bytes) -> bool:
    """Whether the line is an object by itself; one line of an indented file never is."""
    if not line.startswith(b"{"):
        return False
    try:
        json_text.loads(line)
    except InvalidInput:
        return False
    return True


def _read_chunk(stream: ByteStream) -> tuple[bytes, str]:
    """The next bytes, and what ended the stream too early."""
    try:
        return stream.read(CHUNK_BYTES), ""
    except _READ_ERRORS as error:
        return b"", f"the file cannot be read further: {error}"


def _split_lines(stream: ByteStream, rest: bytes) -> Iterator[RawRecord]:
    number, too_long, fault = 0, b"", ""
    while True:
        *lines, rest = rest.split(b"\n")
        for line in lines:
            number += 1
            if too_long or len(line) > MAX_RECORD_BYTES:
                yield RawRecord(number, too_long or line[:_EXCERPT_BYTES], _TOO_LONG)
                too_long = b""
            elif line.strip():
                yield RawRecord(number, line)
        if len(rest) > MAX_RECORD_BYTES:
            too_long, rest = too_long or rest[:_EXCERPT_BYTES], b""
        chunk, fault = _read_chunk(stream)
        if not chunk:
            break
        rest += chunk
    if too_long or rest.strip() or fault:
        yield RawRecord(number + 1, too_long or rest, _TOO_LONG if too_long else fault)


def _split_values(stream: ByteStream, chunk: bytes, *, depth: int) -> Iterator[RawRecord]:
    """Values at this depth of brackets, as they end."""
    splitter = _ValueSplitter(depth)
    number, fault = 0, ""
    more = True
    while more:
        for data, reason in splitter.feed(chunk):
            number += 1
            yield RawRecord(number, data, reason)
        chunk, fault = _read_chunk(stream)
        more = bool(chunk)
    rest = splitter.rest()
    if rest or fault or splitter.is_open:
        if splitter.is_open and not fault:
            fault = "the file breaks off in the middle"
        yield RawRecord(number + 1, rest[:_EXCERPT_BYTES], fault)


class _ValueSplitter:
    """Finds where values end in bytes that come in pieces; looks at each byte once."""

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._open = bytearray()
        """The brackets that are open; those of the values come after the first `depth`."""
        self._buffer = bytearray()
        self._seen = 0
        self._start = 0
        """Where the value begins that is being read, or the plain text between two."""
        self._in_string = False
        self._too_long = b""

    @property
    def is_open(self) -> bool:
        """Whether an end is still missing."""
        return bool(self._open) or self._in_string

    def feed(self, chunk: bytes) -> Iterator[tuple[bytes, str]]:
        """The values that are whole now, each with the fault that it has."""
        self._buffer += chunk
        for token in self._brackets():
            if token[0] in b"[{":
                yield from self._opened(token)
            else:
                yield from self._closed(token)
        if self._seen - self._start > MAX_RECORD_BYTES:
            self._too_long = self._too_long or self._head()
            self._start = self._seen
        del self._buffer[: self._start]
        self._seen -= self._start
        self._start = 0

    def _opened(self, token: re.Match[bytes]) -> Iterator[tuple[bytes, str]]:
        if len(self._open) == self._depth:
            yield from self._between(token.start())
            self._start = token.start()
        self._open += token[0]
        if len(self._open) == self._depth:
            self._start = token.end()

    def _closed(self, token: re.Match[bytes]) -> Iterator[tuple[bytes, str]]:
        """Close the nearest bracket of this kind with all inside it; one too many is ignored."""
        # Only the nearest brackets: looking through a million of them for each one is quadratic.
        nearest = max(0, len(self._open) - _MAX_DEPTH)
        place = self._open.rfind(b"[" if token[0] == b"]" else b"{", nearest)
        inside = len(self._open) > self._depth
        if place < (self._depth if inside else 0):
            return
        if not inside:
            yield from self._between(token.start())
        del self._open[place:]
        if inside and len(self._open) == self._depth:
            yield self._taken(token.end())
        if len(self._open) <= self._depth:
            self._start = token.end()

    def _brackets(self) -> Iterator[re.Match[bytes]]:
        """Brackets outside of strings; `_seen` moves behind what needs no second look."""
        if self._in_string:
            rest = _REST_OF_STRING.match(self._buffer, self._seen)
            assert rest is not None
            self._seen = rest.end()
            self._in_string = not rest[1] and self._may_go_on(rest.end())
            if self._in_string:
                return
        for token in _TOKEN.finditer(self._buffer, self._seen):
            if token[1] is None:
                yield token
            elif not token[1] and self._may_go_on(token.end()):
                self._seen, self._in_string = token.end(), True
                return
        self._seen = len(self._buffer)

    def _may_go_on(self, end: int) -> bool:
        """Whether a string without an end continues in the next piece; a line's end breaks it."""
        return self._buffer[end : end + 1] != b"\n"

    def _taken(self, end: int) -> tuple[bytes, str]:
        if self._too_long:
            head, self._too_long = self._too_long, b""
            return head, _TOO_LONG
        return bytes(self._buffer[self._start : end]), ""

    def _between(self, end: int) -> Iterator[tuple[bytes, str]]:
        """Plain values and rubbish between the others: reported, not lost silently."""
        if self._too_long or bytes(self._buffer[self._start : end]).strip(_SEPARATORS):
            data, reason = self._taken(end)
            yield data.strip(_SEPARATORS), reason

    def _head(self) -> bytes:
        return bytes(self._buffer[self._start : self._start + _EXCERPT_BYTES])

    def rest(self) -> bytes:
        """What came after the last whole value."""
        return self._too_long or self._head().strip(_SEPARATORS)
