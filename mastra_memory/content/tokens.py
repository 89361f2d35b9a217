"""How many tokens a text or a message is, by a rule of thumb; a setting names another counter."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Protocol

import orjson
from django.utils.module_loading import import_string

from mastra_memory import conf
from mastra_memory.types import StoredMessage

_SPACE = r"\t-\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_MARKS = r".,!?;(){}\[\]<>:/\\|@#$%^&*+=`~_-"
_SPLIT = re.compile(f"([{_SPACE}]+|[{_MARKS}]+)")
_BLANK = re.compile(f"[{_SPACE}]*")
_MARK = re.compile(f"[{_MARKS}]")
_NUMBER = re.compile(r"[0-9]+(?:[.,][0-9]+)*")
# Ideographs, full-width forms, katakana, hangul. Hiragana is not among them, as in Mastra.
_CJK = re.compile(
    "[\u4e00-\u9fff\u3400-\u4dbf\u3000-\u303f\uff00-\uffef\u30a0-\u30ff\u2e80-\u2eff\u31c0-\u31ef"
    "\u3200-\u33ff\uac00-\ud7af\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\ud7b0-\ud7ff]"
)
_DENSITIES = (
    (re.compile("[äöüß]"), 3),
    (re.compile("[éèêëàâîïôûùüÿçœæáíóúñ]"), 3),
    (re.compile("[ąćęłńóśźżěščřžýůúďťň]"), 3.5),
)
_CHUNK = 65_536
_CACHED_LENGTH = 64
"""Longer segments are not cached: a cache of 65,536 long ones could fill the memory."""
_FEW_SEGMENTS = 1_000
"""From here on it is quicker to look at each different segment once."""
_INDENTED_BYTES = 100_000
"""Larger JSON is counted without indentation, which can multiply the length of deep values."""
TOKENS_PER_LIST = 24
TOKENS_PER_MESSAGE = 3.8
TOKENS_SAVED_PER_JSON = 12
EMPTY_OUTCOME_TOKENS = 4
"""A result, or a reason for a failure, that is missing is told to the model in so many tokens."""
DENIAL_TOKENS = 9
_OUTCOMES = frozenset({"result", "output-error", "output-denied", "approval-responded"})
_IMAGE, _TILE = 85, 170
_SMALLEST_PDF = 500


class TokenCounter(Protocol):
    """What the setting `TOKEN_COUNTER` names."""

    def text(self, text: str) -> int:
        """Tokens of a text."""

    def message(self, role: str, content: Mapping[str, Any]) -> int:
        """Tokens of a message; content in format 2."""


def get_token_counter() -> TokenCounter:
    """The counter of the settings."""
    return import_string(conf.app_settings().TOKEN_COUNTER)()


def count_messages(messages: Iterable[StoredMessage]) -> int:
    """Tokens of a list of messages; 0 for none."""
    used = get_token_counter()
    counts = [used.message(message.role, message.content) for message in messages]
    return TOKENS_PER_LIST + sum(counts) if counts else 0


class HeuristicCounter:
    """Mastra's estimate, to the token. Small JSON tool calls come out near zero, or below it."""

    def text(self, text: str) -> int:
        """Tokens of a text."""
        return sum(_count(chunk) for chunk in _chunks(text))

    def message(self, role: str, content: Mapping[str, Any]) -> int:
        """Tokens of a message; content in format 2."""
        tally = _Tally(self.text(role), self)
        found = content.get("parts")
        if not found and isinstance(content.get("content"), str):
            found = [{"type": "text", "text": content["content"]}]
        for part in found or ():
            tally.add(part)
        overhead = (
            TOKENS_PER_MESSAGE * (1 + tally.outcomes) - TOKENS_SAVED_PER_JSON * tally.documents
        )
        return math.floor(tally.tokens + overhead + 0.5)


def _chunks(text: str) -> Iterator[str]:
    """Cut a long text where segments end.

    The segments of 20 MB of short words would take a gigabyte at once.
    """
    start = 0
    while len(text) - start > _CHUNK:
        separator = _SPLIT.search(text, start + _CHUNK)
        if separator is None:
            break
        yield text[start : separator.end()]
        start = separator.end()
    yield text[start:] if start else text


def _count(chunk: str) -> int:
    segments = _SPLIT.split(chunk)
    if len(segments) < _FEW_SEGMENTS:
        return sum(map(_tokens_of, segments))
    return sum(times * _tokens_of(segment) for segment, times in Counter(segments).items())


def _tokens_of(segment: str) -> int:
    return _cached_segment(segment) if len(segment) <= _CACHED_LENGTH else _segment(segment)


def _segment(segment: str) -> int:
    if _BLANK.fullmatch(segment):
        return 0
    if _CJK.search(segment):
        return len(segment)
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


_cached_segment = lru_cache(maxsize=65_536)(_segment)


def _length(segment: str) -> int:
    """In UTF-16 units, as JavaScript counts."""
    if segment.isascii():
        return len(segment)
    return len(segment.encode("utf-16-le", "surrogatepass")) // 2


class _Tally:
    """Adds up the parts of one message."""

    def __init__(self, tokens: int, used: HeuristicCounter) -> None:
        self.tokens: float = tokens
        self.outcomes = 0
        self.documents = 0
        self.used = used

    def add(self, part: Any) -> None:
        kind = part.get("type") if isinstance(part, Mapping) else None
        match kind:
            case "text":
                self.say(part.get("text"))
            case "tool-invocation":
                self.tool(part.get("toolInvocation") or {})
            case "reasoning":
                pass
            case "image" | "file":
                self.tokens += _file(part, self.used)
            case str() if kind.startswith("data-"):
                pass
            case _:
                self.say(_json(part))

    def say(self, text: Any) -> None:
        if isinstance(text, str):
            self.tokens += self.used.text(text)

    def document(self, value: Any, *, indent: bool = False) -> None:
        if isinstance(value, str):
            self.say(value)
            return
        self.documents += 1
        self.say(_json(value, indent=indent))

    def tool(self, call: Mapping[str, Any]) -> None:
        self.say(call.get("toolName"))
        if call.get("args") is not None:
            self.document(call["args"])
        state = call.get("state")
        if state not in _OUTCOMES:
            return
        self.outcomes += 1
        if state == "result":
            self.result(call)
        elif state == "output-error":
            self.reason(call.get("errorText"), EMPTY_OUTCOME_TOKENS)
        else:
            approval = call.get("approval")
            reason = approval.get("reason") if isinstance(approval, Mapping) else None
            self.reason(reason, DENIAL_TOKENS if state == "output-denied" else 0)

    def result(self, call: Mapping[str, Any]) -> None:
        value = call.get("result")
        if call.get("isError") is True:
            self.reason(call.get("errorText") or value, EMPTY_OUTCOME_TOKENS)
        elif value is None or (isinstance(value, str) and not value.strip()):
            self.tokens += EMPTY_OUTCOME_TOKENS
        else:
            self.document(value, indent=True)

    def reason(self, text: Any, otherwise: int) -> None:
        if isinstance(text, str) and text.strip():
            self.say(text)
        else:
            self.tokens += otherwise


def _json(value: Any, *, indent: bool = False) -> str:
    compact = orjson.dumps(value, default=str)
    if indent and len(compact) <= _INDENTED_BYTES:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2, default=str).decode()
    return compact.decode()


def _file(part: Mapping[str, Any], used: HeuristicCounter) -> float:
    """An image by its tiles, another file by its bytes, a link by its description."""
    told = _told_by_client(part)
    if told is not None:
        return told
    data = part.get("image") if part.get("type") == "image" else part.get("data")
    mime = str(part.get("mimeType") or "")
    size = _inline_bytes(data)
    if part.get("type") == "image" or mime.startswith("image/"):
        return _IMAGE + _TILE * _tiles(size)
    if size is None:
        return used.text(_json({key: part[key] for key in part if key != "providerMetadata"}))
    return max(size / 4, _SMALLEST_PDF) if mime == "application/pdf" else size / 4


def _told_by_client(part: Mapping[str, Any]) -> float | None:
    value: Any = part
    for key in ("providerMetadata", "mastra", "tokenEstimate"):
        value = value.get(key) if isinstance(value, Mapping) else None
    told = isinstance(value, Mapping) and value.get("source") == "client"
    return float(value["tokens"]) if told and isinstance(value.get("tokens"), int | float) else None


def _inline_bytes(data: Any) -> int | None:
    """Bytes of a data URI or of bare base64; None for an address."""
    if not isinstance(data, str) or "://" in data[:16]:
        return None
    encoded = data.partition(",")[2] if data.startswith("data:") else data
    return len(encoded) * 3 // 4 - encoded[-2:].count("=")


def _tiles(size: int | None) -> int:
    """How finely a model looks at an image of so many bytes; without a size, not finely."""
    mebibyte = 1024 * 1024
    if size is None or size <= mebibyte:
        return 0
    return 4 if size <= 2 * mebibyte else 6 if size <= 4 * mebibyte else 8


def truncate_to_tokens(text: str, limit: int) -> str:
    """The text, cut where it would be longer than `limit` tokens, with a word that it was."""
    used = get_token_counter()
    if used.text(text) <= limit:
        return text
    low, high = 0, len(text)
    while high - low > 16:
        middle = (low + high) // 2
        low, high = (middle, high) if used.text(text[:middle]) <= limit else (low, middle)
    return f"{text[:low]}… [truncated]"
