"""The token estimate, compared with Mastra's."""

import random
import re
import tracemalloc
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from mastra_memory.content import tokens
from mastra_memory.content.tokens import HeuristicCounter

TEXTS = {
    "": 0,
    "hello world": 2,
    "The quick brown fox jumps over the lazy dog.": 10,
    "internationalization": 4,
    "1234567": 1,
    "3.14": 3,
    "1,234.5": 5,
    "...": 1,
    "foo_bar-baz": 5,
    "don't": 1,
    "🔴": 1,
    '{"a":1}': 5,
    "user": 1,
    "assistant": 2,
    "https://example.com/a?b=1": 12,
    "déjà vu": 3,
    "Überraschung": 4,
    "été": 1,
    "naïve": 2,
    "zażółć": 2,
    "你好世界": 4,
    "カタカナ": 4,
    "こんにちは": 1,
    "한국어 문장": 5,
    "🔴 (14:30) User likes tea": 9,
    "* -> ran git status": 5,
}
CALL = {"toolCallId": "c", "toolName": "getWeather", "args": {"city": "Paris"}}
IMAGE = {"type": "image", "image": "https://example.com/a.png"}
CLIENT = {"mastra": {"tokenEstimate": {"source": "client", "tokens": 42}}}
PDF = {"type": "file", "mimeType": "application/pdf"}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def tool(**state: Any) -> dict[str, Any]:
    return {"type": "tool-invocation", "toolInvocation": {**CALL, **state}}


def make_base64(size: int) -> str:
    return "A" * (size // 3 * 4) + ("A" * (size % 3 + 1) + "=" * (3 - size % 3) if size % 3 else "")


@pytest.mark.parametrize(("words", "count"), TEXTS.items())
def test_count_text__agrees_with_mastra(words: str, count: int) -> None:
    assert HeuristicCounter().text(words) == count


@pytest.mark.parametrize(
    ("role", "parts", "count"),
    [
        ("user", [text("hello world")], 7),
        ("assistant", [text("hello world")], 8),
        ("user", [], 5),
        ("assistant", [{"type": "reasoning", "reasoning": "hm"}, text("ok")], 7),
        ("assistant", [tool(state="call")], 2),
        ("assistant", [tool(state="result", result={"temp": 21})], -1),
        ("assistant", [tool(state="result", result="21 degrees")], 9),
        ("assistant", [tool(state="result")], 10),
        ("assistant", [tool(state="result", result="  ")], 10),
        ("assistant", [tool(state="output-error", errorText="boom")], 7),
        ("assistant", [tool(state="output-denied")], 15),
        ("assistant", [{"type": "step-start"}, text("ok")], 14),
        ("user", [IMAGE], 90),
        ("user", [{**IMAGE, "providerMetadata": CLIENT}], 47),
        ("user", [{**PDF, "data": make_base64(4000)}], 1005),
        ("user", [{**PDF, "data": "data:application/pdf;base64," + make_base64(4000)}], 1005),
        ("user", [{**PDF, "data": make_base64(30)}], 505),
        ("assistant", [{"type": "data-chart", "data": {"a": "long " * 50}}], 6),
    ],
)
def test_count_message__agrees_with_mastra(role: str, parts: list[Any], count: int) -> None:
    assert HeuristicCounter().message(role, {"format": 2, "parts": parts}) == count


def test_count_message__uses_the_text_without_parts() -> None:
    assert HeuristicCounter().message("user", {"parts": [], "content": "hello world"}) == 7


def test_count_message__counts_large_images_by_tiles() -> None:
    megabyte = make_base64(1024 * 1024 + 2)
    counts = [
        HeuristicCounter().message("user", {"parts": [{"type": "image", "image": megabyte * n}]})
        for n in (1, 2, 5)
    ]
    assert counts == [90 + 170 * 4, 90 + 170 * 6, 90 + 170 * 8]


@pytest.mark.django_db
@pytest.mark.parametrize("unit", ["word ", "x", "你好", "a.b "])
def test_truncate_to_tokens__fits_and_marks_the_cut(unit: str) -> None:
    cut = tokens.truncate_to_tokens(unit * 2000, 100)
    beginning = cut.removesuffix("… [truncated]")
    assert beginning != cut and (unit * 2000).startswith(beginning)
    assert 60 <= HeuristicCounter().text(beginning) <= 100
    assert tokens.truncate_to_tokens("short", 100) == "short"


class Letters:
    """A token counter that counts characters."""

    def text(self, text: str) -> int:
        return len(text)

    def message(self, role: str, content: Mapping[str, Any]) -> int:
        return 1000


def test_get_token_counter__uses_the_setting(memory_settings: Callable[..., None]) -> None:
    memory_settings(TOKEN_COUNTER="tests.content.test_tokens.Letters")
    assert tokens.get_token_counter().text("hello") == 5
    assert tokens.get_token_counter().message("user", {}) == 1000


def test_count_text__equals_the_sum_of_its_segments() -> None:
    """Long texts are counted in chunks; cuts fall between segments."""
    source = random.Random(1)
    letters = ["a", "bcd", " ", "  ", ".,", "{", "ü", "中", "12.5", "\n", "y" * 100]
    text = "".join(source.choice(letters) for _ in range(200_000))
    expected = sum(map(HeuristicCounter().text, re.split(f"({SEPARATORS})", text)))
    assert HeuristicCounter().text(text) == expected


SEPARATORS = r"[ \n]+|[.,{]+"


def test_count_text__short_words_need_little_memory() -> None:
    text = "ab cd " * 300_000
    tracemalloc.start()
    try:
        assert HeuristicCounter().text(text) == 600_000
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_count_message__limits_indentation_of_deep_results() -> None:
    value: Any = [1] * 60_000
    for _ in range(240):
        value = [value]
    result = {"parts": [tool(state="result", result=value)]}
    tracemalloc.start()
    try:
        assert HeuristicCounter().message("assistant", result) > 20_000
        assert tracemalloc.get_traced_memory()[1] < 25_000_000
    finally:
        tracemalloc.stop()
