"""Estimate the number of tokens of texts and messages.

The estimate is equal to Mastra's, so that observation and trimming start at the same messages.
Mastra uses the rules of the npm package `tokenx`: characters per token by script, measured
against OpenAI's tokenizers. The setting `TOKEN_COUNTER` can name an exact counter instead.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Protocol

import orjson
from django.utils.module_loading import import_string

from mastra_memory import conf
from mastra_memory.db import json_text

_SPACE = r"\t-\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_MARKS = r".,!?;(){}\[\]<>:/\\|@#$%^&*+=`~_-"
_SPLIT = re.compile(f"([{_SPACE}]+|[{_MARKS}]+)")
_BLANK = re.compile(f"[{_SPACE}]*")
_MARK = re.compile(f"[{_MARKS}]")
_NUMBER = re.compile(r"[0-9]+(?:[.,][0-9]+)*")
# Ideographs, full-width forms, katakana, hangul: one token per character. Hiragana is left out, as
# in Mastra.
_CJK = re.compile(
    "[\u4e00-\u9fff\u3400-\u4dbf\u3000-\u303f\uff00-\uffef\u30a0-\u30ff\u2e80-\u2eff\u31c0-\u31ef"
    "\u3200-\u33ff\uac00-\ud7af\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\ud7b0-\ud7ff]"
)
# Characters per token of words with these letters (German, Romance, Slavic languages).
_DENSITIES = (
    (re.compile("[äöüß]"), 3),
    (re.compile("[éèêëàâîïôûùüÿçœæáíóúñ]"), 3),
    (re.compile("[ąćęłńóśźżěščřžýůúďťň]"), 3.5),
)
_CHUNK_CHARS = 65_536
_MAX_CACHED_CHARS = 64
"""Longer segments are not cached, because 65,536 of them could take too much memory."""
_MIN_COUNTED_SEGMENTS = 1_000
"""With at least this many segments, it is faster to estimate each different segment only once."""
_MAX_INDENTED_BYTES = 100_000
"""Larger JSON is counted without indentation, which can multiply the length of deep values."""
TOKENS_PER_LIST = 24
"""Mastra's overhead for a list of messages."""
TOKENS_PER_MESSAGE = 3.8
"""Mastra's overhead for a message, and again for each outcome of a tool call."""
TOKENS_SAVED_PER_JSON = 12
"""What Mastra subtracts for each JSON document, because its estimate for punctuation is high."""
EMPTY_OUTCOME_TOKENS = 4
"""Tokens of the sentence that replaces a missing result or reason in the prompt."""
DENIAL_TOKENS = 9
"""Tokens of the sentence for a call that was denied without a reason."""
_OUTCOMES = frozenset({"result", "output-error", "output-denied", "approval-responded"})
# OpenAI's prices of images: a base, and an amount for each tile of 512 x 512 pixels.
_TOKENS_PER_IMAGE, _TOKENS_PER_TILE = 85, 170
_MIN_PDF_TOKENS = 500


class TokenCounter(Protocol):
    """The interface of the class that the setting `TOKEN_COUNTER` names."""

    def text(self, text: str) -> int:
        """Return the number of tokens of a text."""

    def message(self, role: str, content: Mapping[str, Any]) -> int:
        """Return the number of tokens of a message with content in Mastra's format 2."""


def get_token_counter() -> TokenCounter:
    """Return an instance of the class that the setting `TOKEN_COUNTER` names."""
    counter: TokenCounter = import_string(conf.app_settings().TOKEN_COUNTER)()
    return counter


class HeuristicCounter:
    """Count tokens exactly as Mastra estimates them.

    The estimate for a tool call with little JSON can be zero or negative.
    """

    def text(self, text: str) -> int:
        """Return the number of tokens of a text."""
        return sum(_count_chunk(chunk) for chunk in _split_chunks(text))

    def message(self, role: str, content: Mapping[str, Any]) -> int:
        """Return the number of tokens of a message with content in Mastra's format 2."""
        sums = _PartCounter(self.text(role), self)
        parts = content.get("parts")
        if not parts and isinstance(content.get("content"), str):
            parts = [{"type": "text", "text": content["content"]}]
        for part in parts or ():
            sums.add(part)
        overhead = TOKENS_PER_MESSAGE * (1 + sums.outcomes) - TOKENS_SAVED_PER_JSON * sums.documents
        return math.floor(sums.tokens + overhead + 0.5)


def _split_chunks(text: str) -> Iterator[str]:
    """Split a long text between segments.

    Splitting a text of 20 MB into segments at once would take a gigabyte of memory.
    """
    start = 0
    while len(text) - start > _CHUNK_CHARS:
        separator = _SPLIT.search(text, start + _CHUNK_CHARS)
        if separator is None:
            break
        yield text[start : separator.end()]
        start = separator.end()
    yield text[start:] if start else text


def _count_chunk(chunk: str) -> int:
    segments = _SPLIT.split(chunk)
    if len(segments) < _MIN_COUNTED_SEGMENTS:
        # A context counts thousands of short segments: spare one call for each of them.
        has_long = max(map(len, segments)) > _MAX_CACHED_CHARS
        return sum(map(_get_segment_tokens if has_long else _estimate_cached_segment, segments))
    return sum(times * _get_segment_tokens(segment) for segment, times in Counter(segments).items())


def _get_segment_tokens(segment: str) -> int:
    return (
        _estimate_cached_segment(segment)
        if len(segment) <= _MAX_CACHED_CHARS
        else _estimate_segment(segment)
    )


def _estimate_segment(segment: str) -> int:
    if _BLANK.fullmatch(segment):
        return 0
    if _CJK.search(segment):
        return len(segment)
    # The length in UTF-16 code units, as in JavaScript.
    length = (
        len(segment)
        if segment.isascii()
        else len(segment.encode("utf-16-le", "surrogatepass")) // 2
    )
    if length <= 3 or _NUMBER.fullmatch(segment):
        return 1
    if _MARK.search(segment):
        return math.ceil(length / 2)
    if not segment.isascii():
        lower = segment.lower()
        for letters, density in _DENSITIES:
            if letters.search(lower):
                return math.ceil(length / density)
    return math.ceil(length / 6)


_estimate_cached_segment = lru_cache(maxsize=65_536)(_estimate_segment)


class _PartCounter:
    """Add up the tokens of the parts of one message."""

    def __init__(self, tokens: int, counter: HeuristicCounter) -> None:
        self.tokens: float = tokens
        self.outcomes = 0
        self.documents = 0
        self.counter = counter

    def add(self, part: Any) -> None:
        kind = part.get("type") if isinstance(part, Mapping) else None
        match kind:
            case "text":
                self.add_text(part.get("text"))
            case "tool-invocation":
                call = part.get("toolInvocation")
                self.add_tool_call(call if isinstance(call, Mapping) else {})
            case "reasoning":
                pass
            case "image" | "file":
                self.tokens += _count_file(part, self.counter)
            case str() if kind.startswith("data-"):
                pass
            case _:
                self.add_text(_dump_json(part))

    def add_text(self, text: Any) -> None:
        if isinstance(text, str):
            self.tokens += self.counter.text(text)

    def add_value(self, value: Any, *, indent: bool = False) -> None:
        if isinstance(value, str):
            self.add_text(value)
            return
        self.documents += 1
        self.add_text(_dump_json(value, indent=indent))

    def add_tool_call(self, call: Mapping[str, Any]) -> None:
        self.add_text(call.get("toolName"))
        if call.get("args") is not None:
            self.add_value(call["args"])
        state = call.get("state")
        if not isinstance(state, str) or state not in _OUTCOMES:
            return
        self.outcomes += 1
        if state == "result":
            self.add_result(call)
        elif state == "output-error":
            self.add_reason(call.get("errorText"), EMPTY_OUTCOME_TOKENS)
        else:
            approval = call.get("approval")
            reason = approval.get("reason") if isinstance(approval, Mapping) else None
            self.add_reason(reason, DENIAL_TOKENS if state == "output-denied" else 0)

    def add_result(self, call: Mapping[str, Any]) -> None:
        value = call.get("result")
        if call.get("isError") is True:
            self.add_reason(call.get("errorText") or value, EMPTY_OUTCOME_TOKENS)
        elif value is None or (isinstance(value, str) and not value.strip()):
            self.tokens += EMPTY_OUTCOME_TOKENS
        else:
            self.add_value(value, indent=True)

    def add_reason(self, text: Any, default_tokens: int) -> None:
        if isinstance(text, str) and text.strip():
            self.add_text(text)
        else:
            self.tokens += default_tokens


def _dump_json(value: Any, *, indent: bool = False) -> str:
    try:
        compact = orjson.dumps(value, default=str)
    except orjson.JSONEncodeError:
        # Such as a number of more than 64 bits. A count must never prevent a save.
        return json_text.dumps(value)
    if indent and len(compact) <= _MAX_INDENTED_BYTES:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2, default=str).decode()
    return compact.decode()


def _count_file(part: Mapping[str, Any], counter: HeuristicCounter) -> float:
    """Estimate an image by its tiles, another file by its bytes, a link by its JSON."""
    estimate = _get_client_estimate(part)
    if estimate is not None:
        return estimate
    data = part.get("image") if part.get("type") == "image" else part.get("data")
    mime = str(part.get("mimeType") or "")
    size = _get_inline_size(data)
    if part.get("type") == "image" or mime.startswith("image/"):
        return _TOKENS_PER_IMAGE + _TOKENS_PER_TILE * _estimate_tiles(size)
    if size is None:
        return counter.text(
            _dump_json({key: part[key] for key in part if key != "providerMetadata"})
        )
    return max(size / 4, _MIN_PDF_TOKENS) if mime == "application/pdf" else size / 4


def _get_client_estimate(part: Mapping[str, Any]) -> float | None:
    """Return the number of tokens that the client sent with the file, if it did."""
    value: Any = part
    for key in ("providerMetadata", "mastra", "tokenEstimate"):
        value = value.get(key) if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping) or value.get("source") != "client":
        return None
    return float(value["tokens"]) if isinstance(value.get("tokens"), int | float) else None


def _get_inline_size(data: Any) -> int | None:
    """Return the size in bytes of a data URI or of plain base64; None for a URL."""
    if not isinstance(data, str) or "://" in data[:16]:
        return None
    encoded = data.partition(",")[2] if data.startswith("data:") else data
    return len(encoded) * 3 // 4 - encoded[-2:].count("=")


def _estimate_tiles(size: int | None) -> int:
    """Estimate the number of tiles from the size of the file, as its dimensions are unknown."""
    mebibyte = 1024 * 1024
    if size is None or size <= mebibyte:
        return 0
    return 4 if size <= 2 * mebibyte else 6 if size <= 4 * mebibyte else 8


def truncate_to_tokens(text: str, limit: int) -> str:
    """Return the text, cut to about `limit` tokens. A cut text ends with `… [truncated]`."""
    counter = get_token_counter()
    if counter.text(text) <= limit:
        return text
    low, high = 0, len(text)
    while high - low > 16:
        middle = (low + high) // 2
        low, high = (middle, high) if counter.text(text[:middle]) <= limit else (low, middle)
    return f"{text[:low]}… [truncated]"
