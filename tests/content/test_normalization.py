"""Typed parts of a message: any content can be shown, even malformed content."""

from typing import Any

import pytest

from mastra_memory.content import message_text, part_types
from mastra_memory.content.part_types import (
    FilePart,
    ReasoningPart,
    SourcePart,
    TextPart,
    ToolCall,
    UnknownPart,
)


def read_parts(*parts: Any, **fields: Any) -> list[part_types.Part]:
    return part_types.read_parts({"format": 2, "parts": list(parts), **fields})


def test_read_parts__known_types() -> None:
    call = {
        "state": "result",
        "toolName": "look",
        "args": {"q": 1},
        "result": [2],
        "toolCallId": "c",
    }
    assert read_parts(
        {"type": "step-start"},
        {"type": "text", "text": "hello"},
        {"type": "text", "text": "  "},
        {"type": "reasoning", "details": [{"type": "text", "text": "hm"}]},
        {"type": "tool-invocation", "toolInvocation": call, "createdAt": 1000},
        {"type": "source-url", "url": "https://a.example", "title": "A", "createdAt": 2500},
    ) == [
        TextPart("hello"),
        ReasoningPart("hm"),
        ToolCall("look", "result", {"q": 1}, [2], "", 1.5, "c"),
        SourcePart("A", "https://a.example"),
    ]


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ({"reasoning": "why"}, "why"),
        ({"reasoning": "why", "details": [{"type": "text", "text": "other"}]}, "why"),
        ({"reasoning": "", "details": [{"type": "text", "text": "why"}]}, "why"),
        ({"reasoning": " ", "details": [{"text": "a"}, {"data": "x"}, {"text": "b"}]}, "a\nb"),
        ({"details": [{"type": "text", "text": "why"}]}, "why"),
        ({"reasoning": None, "details": "x"}, ""),
        ({"reasoning": "", "details": [{"type": "redacted", "data": "x"}]}, ""),
    ],
)
def test_get_reasoning_text__reads_both_forms(part: dict[str, Any], text: str) -> None:
    assert message_text.get_reasoning_text({"type": "reasoning", **part}) == text


@pytest.mark.parametrize(
    ("invocation", "state", "error"),
    [
        ({"state": "output-error", "errorText": "boom"}, "output-error", "boom"),
        ({"state": "result", "isError": True, "result": "no"}, "output-error", "no"),
        (
            {"state": "output-denied", "approval": {"reason": "not yours"}},
            "output-denied",
            "not yours",
        ),
        ({"state": "output-denied"}, "output-denied", ""),
        ({}, "call", ""),
    ],
)
def test_read_parts__failed_and_denied_calls(
    invocation: dict[str, Any], state: str, error: str
) -> None:
    [call] = read_parts({"type": "tool-invocation", "toolInvocation": invocation})
    assert isinstance(call, ToolCall)
    assert (call.state, call.error, call.failed) == (state, error, state == "output-error")


@pytest.mark.parametrize(
    "content", [None, 7, "x", [], {}, {"parts": None}, {"parts": [None, 7, "x", [], {}]}]
)
def test_read_parts__accepts_malformed_content(content: Any) -> None:
    assert all(isinstance(part, UnknownPart) for part in part_types.read_parts(content))


@pytest.mark.parametrize(
    "part_type", ["text", "reasoning", "tool-invocation", "file", "image", "source"]
)
@pytest.mark.parametrize("value", [None, 7, [], {}, "x"])
def test_read_parts__accepts_malformed_parts(part_type: str, value: Any) -> None:
    keys = ("text", "reasoning", "details", "toolInvocation", "data", "image", "source", "url")
    part_types.read_parts({"parts": [{"type": part_type, **dict.fromkeys(keys, value)}]})


def test_read_parts__uses_the_content_text_without_parts() -> None:
    assert read_parts(content="all of it") == [TextPart("all of it")]
    assert read_parts({"type": "text", "text": "part"}, content="all of it") == [TextPart("part")]


def test_read_file__decodes_embedded_files() -> None:
    content = {
        "parts": [
            {"type": "file", "data": "data:text/plain;charset=utf-8;base64,aGk=", "filename": "a"},
            {"type": "image", "image": "aGk=", "mimeType": "image/png"},
            {"type": "file", "data": "data:text/plain,h%20i"},
            {"type": "file", "data": "https://a.example/x"},
            {"type": "file", "data": "data:image/png;base64,%%%"},
        ]
    }
    assert part_types.read_file(content, 0) == (b"hi", "text/plain", "a")
    assert part_types.read_file(content, 1) == (b"hi", "image/png", "")
    assert part_types.read_file(content, 2) == (b"h i", "text/plain", "")
    assert part_types.read_file(content, 3) is None
    assert part_types.read_file(content, 9) is None
    [file, *_rest] = part_types.read_parts(content)
    assert file == FilePart(0, "a", "text/plain", "", 3)


def test_replace_text__keeps_other_parts() -> None:
    other = {"type": "file", "data": "x"}
    content = {
        "format": 2,
        "parts": [{"type": "text", "text": "a", "id": 1}, other, {"type": "text", "text": "b"}],
        "content": "a b",
        "metadata": {"k": 1},
    }
    assert message_text.replace_text(content, "new") == {
        "format": 2,
        "parts": [{"type": "text", "text": "new", "id": 1}, other],
        "content": "new",
        "metadata": {"k": 1},
    }
    added = {"type": "text", "text": "new"}
    assert message_text.replace_text({"parts": [other]}, "new")["parts"] == [other, added]
