"""Split a stream of any size into JSON records, with one record in memory at a time.

The stream is split by brackets and quotes, or by lines, before any record is parsed. A record that
is not valid JSON is therefore the only one that is lost. (Event-based parsers such as ijson stop
at the first invalid byte of a file.)
"""

import gzip
import lzma
import re
import zipfile
import zlib
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from mastra_memory.db import json_text
from mastra_memory.exceptions import InvalidInput

CHUNK_BYTES = 1 << 20
MAX_RECORD_BYTES = 64 << 20
"""Longer records are refused, so that memory stays bounded."""

_MAX_DEPTH = 1_024
"""A closing bracket is matched only with the last open brackets, at most this many. JSON parsers
reject deeper nesting anyway."""
_EXCERPT_BYTES = 500
TOO_LONG = f"longer than {MAX_RECORD_BYTES >> 20} MB"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SEPARATORS = b" \t\r\n,"
_TO_OPENING = 2
"""A closing bracket minus this is its opening bracket, in ASCII."""

# A string, or brackets outside of strings with what may stand between two of them. A string ends
# at a quote; one that has no quote in this line or in the bytes read so far still matches, and its
# group 1 is empty. The possessive quantifiers (`*+`) prevent backtracking, which would be quadratic
# on long strings.
_TOKEN = re.compile(rb'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+("?)|[\[\]{}][\[\]{},:\s]*+', re.DOTALL)
_REST_OF_STRING = re.compile(rb'[^"\\\n]*+(?:\\.[^"\\\n]*+)*+("?)', re.DOTALL)

READ_ERRORS = (EOFError, OSError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, zipfile.BadZipFile)


class ByteStream(Protocol):
    """A binary file."""

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes, and no bytes at the end."""


class RawRecord(NamedTuple):
    """The bytes of one record."""

    number: int
    """The number of the record, from 1. In a file of lines, the number of the line."""
    data: bytes
    error: str = ""
    """Why the record is incomplete; `data` is then only its beginning."""


def split_records(stream: ByteStream) -> Iterator[RawRecord]:
    """Yield the elements of a JSON array, the lines of a JSON Lines file, or concatenated values.

    Args:
        stream: The decompressed bytes of a file, encoded in UTF-8.
    """
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
    """Return the beginning without byte order mark and whitespace: at least one whole line."""
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
    """Return whether the line is a complete JSON object. This is False for indented JSON."""
    if not line.startswith(b"{") or not line.rstrip().endswith(b"}"):
        return False
    try:
        json_text.loads(line)
    except InvalidInput:
        return False
    return True


def _read_chunk(stream: ByteStream) -> tuple[bytes, str]:
    """Return the next bytes, and the error that ended the stream early."""
    try:
        return stream.read(CHUNK_BYTES), ""
    except READ_ERRORS as error:
        return b"", f"the file cannot be read further: {error}"


def _split_lines(stream: ByteStream, rest: bytes) -> Iterator[RawRecord]:
    """Yield every line that is not blank; `rest` is what has been read already."""
    number, too_long, error = 0, b"", ""  # `too_long` is the beginning of a line beyond the limit
    while True:
        *lines, rest = rest.split(b"\n")
        for line in lines:
            number += 1
            if too_long or len(line) > MAX_RECORD_BYTES:
                yield RawRecord(number, too_long or line[:_EXCERPT_BYTES], TOO_LONG)
                too_long = b""
            elif line.strip():
                yield RawRecord(number, line)
        if len(rest) > MAX_RECORD_BYTES:
            too_long, rest = too_long or rest[:_EXCERPT_BYTES], b""
        chunk, error = _read_chunk(stream)
        if not chunk:
            break
        rest += chunk
    if too_long or rest.strip() or error:
        yield RawRecord(number + 1, too_long or rest, TOO_LONG if too_long else error)


def _split_values(stream: ByteStream, chunk: bytes, *, depth: int) -> Iterator[RawRecord]:
    """Yield the values that are nested in `depth` brackets; `chunk` has been read already."""
    splitter = _ValueSplitter(depth)
    number, error = 0, ""
    more = True
    while more:
        for data, reason in splitter.feed(chunk):
            number += 1
            yield RawRecord(number, data, reason)
        chunk, error = _read_chunk(stream)
        more = bool(chunk)
    rest = splitter.get_rest()
    if rest or error or splitter.is_open:
        if splitter.is_open and not error:
            error = "the file ends in the middle of a record"
        yield RawRecord(number + 1, rest[:_EXCERPT_BYTES], error)


class _ValueSplitter:
    """Find where values end in a stream of chunks. Each byte is examined once."""

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._open = bytearray()
        """The open brackets. The first `depth` of them are outside of the values."""
        self._buffer = bytearray()
        self._scanned = 0
        """The bytes of the buffer that need not be examined again."""
        self._start = 0
        """Where the current value, or the text between two values, begins in the buffer."""
        self._in_string = False
        self._too_long = b""
        """The beginning of the current value if it is beyond the limit."""

    @property
    def is_open(self) -> bool:
        """Whether a bracket or a string has not been closed."""
        return bool(self._open) or self._in_string

    def feed(self, chunk: bytes) -> Iterator[tuple[bytes, str]]:
        """Add a chunk, and yield the values that are complete, each with its error or ''."""
        self._buffer += chunk
        for token in self._iter_brackets():
            yield from self._read_brackets(token[0], token.start())
        if self._scanned - self._start > MAX_RECORD_BYTES:
            self._too_long = self._too_long or self._get_excerpt()
            self._start = self._scanned
        del self._buffer[: self._start]
        self._scanned -= self._start
        self._start = 0

    def _read_brackets(self, run: bytes, start: int) -> list[tuple[bytes, str]]:
        """Read brackets that begin at `start` in the buffer, and return the completed values.

        The loop is written for speed: a file may consist of 50 million brackets. Only brackets that
        begin or end a value, or match nothing, need more than a change of the stack.
        """
        values: list[tuple[bytes, str]] = []
        stack, depth, unmatched = self._open, self._depth, 0
        for index, code in enumerate(run, start):
            if code in b"[{":
                if len(stack) > depth:
                    stack.append(code)
                else:
                    self._open_value(code, index, values)
                unmatched = 0
            elif code == unmatched or code not in b"]}":
                continue
            elif len(stack) > depth + 1 and stack[-1] == code - _TO_OPENING:
                stack.pop()
            elif self._close_bracket(code, index, values):
                unmatched = 0
            else:
                unmatched = code
        return values

    def _open_value(self, code: int, index: int, values: list[tuple[bytes, str]]) -> None:
        """Open a bracket that is not inside of a value."""
        if len(self._open) == self._depth:
            self._add_text_between(index, values)
            self._start = index
            self._open.append(code)
        else:
            self._open.append(code)
            if len(self._open) == self._depth:
                self._start = index + 1

    def _close_bracket(self, code: int, index: int, values: list[tuple[bytes, str]]) -> bool:
        """Close the nearest open bracket of this kind and all brackets inside of it.

        A bracket that closes nothing is ignored. Return whether any was closed.
        """
        # Searching all open brackets would be quadratic in a file of a million of them.
        nearest = max(0, len(self._open) - _MAX_DEPTH)
        position = self._open.rfind(code - _TO_OPENING, nearest)
        if len(self._open) <= self._depth:
            if position < 0:
                return False
            self._add_text_between(index, values)
            self._start = index + 1
        elif position < self._depth:
            return False
        elif position == self._depth:
            values.append(self._take(index + 1))
            self._start = index + 1
        del self._open[position:]
        return True

    def _iter_brackets(self) -> Iterator[re.Match[bytes]]:
        """Yield runs of brackets outside of strings, and move `_scanned` past them."""
        if self._in_string:
            rest = _REST_OF_STRING.match(self._buffer, self._scanned)
            assert rest is not None
            self._scanned = rest.end()
            self._in_string = not rest[1] and self._may_continue(rest.end())
            if self._in_string:
                return
        for token in _TOKEN.finditer(self._buffer, self._scanned):
            if token[1] is None:
                yield token
            elif not token[1] and self._may_continue(token.end()):
                self._scanned, self._in_string = token.end(), True
                return
        self._scanned = len(self._buffer)

    def _may_continue(self, end: int) -> bool:
        """Return whether an unfinished string continues in the next chunk.

        JSON strings contain no line breaks, so an unfinished string ends at the next line break.
        """
        return self._buffer[end : end + 1] != b"\n"

    def _take(self, end: int) -> tuple[bytes, str]:
        """Return the value that ends here."""
        if self._too_long:
            excerpt, self._too_long = self._too_long, b""
            return excerpt, TOO_LONG
        return bytes(self._buffer[self._start : end]), ""

    def _add_text_between(self, end: int, values: list[tuple[bytes, str]]) -> None:
        """Add the text between two values, such as numbers, so that it is reported as invalid."""
        if not self._too_long and end == self._start:
            return
        if self._too_long or bytes(self._buffer[self._start : end]).strip(_SEPARATORS):
            data, reason = self._take(end)
            values.append((data.strip(_SEPARATORS), reason))

    def _get_excerpt(self) -> bytes:
        return bytes(self._buffer[self._start : self._start + _EXCERPT_BYTES])

    def get_rest(self) -> bytes:
        """Return the beginning of what follows the last complete value."""
        return self._too_long or self._get_excerpt().strip(_SEPARATORS)
