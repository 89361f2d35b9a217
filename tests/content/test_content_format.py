"""Message content: conversion to format 2, its text and its signal type."""

from typing import Any

import pytest

from mastra_memory.content import message_text, normalization, signal_types
from mastra_memory.exceptions import InvalidInput
from tests.support.factories import text_content

CALL = {"state": "call", "toolCallId": "c", "toolName": "weather", "args": {"city": "Oslo"}}

STATE = {"type": "data-signal", "data": {"type": "state"}}


def tool_part(**changes: Any) -> dict[str, Any]:
    """Return a tool-invocation part."""
    return {"type": "tool-invocation", "toolInvocation": CALL | changes}


@pytest.mark.parametrize(
    ("message", "content"),
    [
        ({"content": "hi"}, text_content("hi", content="hi")),
        ({"content": ""}, text_content("", content="")),
        ({"content": text_content("hi")}, text_content("hi")),
        ({"content": {"parts": []}}, {"format": 2, "parts": []}),
        ({"content": text_content("hi", x={"y": 1})}, text_content("hi", x={"y": 1})),
        ({"parts": [{"type": "text", "text": "hi"}]}, text_content("hi")),
        ({"content": [{"type": "text", "text": "hi"}]}, text_content("hi")),
        (
            {"content": "hi", "metadata": {"k": 1}},
            text_content("hi", content="hi", metadata={"k": 1}),
        ),
        ({"content": text_content("hi"), "metadata": {"k": 1}}, text_content("hi")),
    ],
)
def test_normalize_content__converts_every_form_to_format_2(message: Any, content: Any) -> None:
    assert normalization.normalize_content(message) == content


@pytest.mark.parametrize(
    ("part", "stored"),
    [
        (
            {"type": "tool-call", "toolCallId": "c", "toolName": "weather", "args": CALL["args"]},
            tool_part(),
        ),
        (
            {"type": "image", "image": "https://e.org/a.png", "mimeType": "image/png"},
            {"type": "file", "data": "https://e.org/a.png", "mimeType": "image/png"},
        ),
        (
            {"type": "file", "data": "x", "mimeType": "text/plain", "filename": "a.txt"},
            {"type": "file", "data": "x", "mimeType": "text/plain", "filename": "a.txt"},
        ),
        (
            {"type": "reasoning", "text": "why"},
            {
                "type": "reasoning",
                "reasoning": "why",
                "details": [{"type": "text", "text": "why"}],
            },
        ),
        (
            {"type": "redacted-reasoning", "data": "xyz"},
            {
                "type": "reasoning",
                "reasoning": "",
                "details": [{"type": "redacted", "data": "xyz"}],
            },
        ),
        ({"type": "x-unknown", "deep": [1]}, {"type": "x-unknown", "deep": [1]}),
    ],
)
def test_normalize_content__parts_of_the_older_list_form(part: Any, stored: Any) -> None:
    assert normalization.normalize_content({"content": [part]})["parts"] == [stored]


@pytest.mark.parametrize("name", ["providerOptions", "providerMetadata"])
@pytest.mark.parametrize(
    "part",
    [
        {"type": "text", "text": "x"},
        {"type": "reasoning", "text": "why"},
        {"type": "redacted-reasoning", "data": "xyz"},
        {"type": "image", "image": "https://e.org/a.png"},
        {"type": "tool-call", "toolCallId": "c", "toolName": "weather", "args": {}},
        {"type": "tool-result", "toolCallId": "c", "toolName": "weather", "result": 7},
    ],
)
def test_normalize_content__keeps_provider_metadata_of_parts(part: Any, name: str) -> None:
    about = {"google": {"thoughtSignature": "xyz"}}
    (plain,) = normalization.normalize_content({"content": [part]})["parts"]
    (stored,) = normalization.normalize_content({"content": [part | {name: about}]})["parts"]
    assert stored == plain | {"providerMetadata": about}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ({"mimeType": "text/plain"}, "text/plain"),
        ({"mediaType": "text/plain"}, "text/plain"),
        ({"mediaType": "text/html", "mimeType": "text/plain"}, "text/plain"),
    ],
)
def test_normalize_content__reads_both_names_of_the_file_type(names: Any, expected: str) -> None:
    for part in ({"type": "file", "data": "x"}, {"type": "image", "image": "x"}):
        (stored,) = normalization.normalize_content({"content": [part | names]})["parts"]
        assert stored == {"type": "file", "data": "x", "mimeType": expected}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"result": 7}, {"result": 7}),
        ({"result": None}, {"result": None}),
        ({"result": "no", "isError": True}, {"result": "no", "isError": True}),
        ({"output": {"type": "json", "value": {"t": 7}}}, {"result": {"t": 7}}),
        ({"output": {"type": "text", "value": "7"}}, {"result": "7"}),
        ({"output": {"type": "error-text", "value": "no"}}, {"result": "no", "isError": True}),
        ({"output": {"type": "execution-denied"}}, {"result": {"type": "execution-denied"}}),
        ({"output": "7"}, {"result": "7"}),
        ({}, {"result": None}),
    ],
)
def test_normalize_content__reads_old_and_new_names_of_results(fields: Any, expected: Any) -> None:
    call_names = {"toolCallId": "c", "toolName": "weather"}
    call = {"type": "tool-call", **call_names, "input": CALL["args"]}
    result = {"type": "tool-result", **call_names, **fields}
    with_call = normalization.normalize_content({"content": [call, result]})["parts"]
    assert with_call == [tool_part(state="result", **expected)]
    alone = normalization.normalize_content({"content": [result]})["parts"]
    assert alone == [tool_part(state="result", **expected, args={})]


def test_normalize_content__merges_a_result_into_its_call() -> None:
    call = {"type": "tool-call", "toolCallId": "c", "toolName": "weather", "args": CALL["args"]}
    result = {"type": "tool-result", "toolCallId": "c", "toolName": "weather", "result": 7}
    text = {"type": "text", "text": "between"}
    stored = normalization.normalize_content({"content": [call, text, result]})["parts"]
    assert stored == [tool_part(state="result", result=7), text]


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ({}, "content"),
        ({"content": None}, "content"),
        ({"content": 5}, "content"),
        ({"content": {}}, "content.parts"),
        ({"content": {"format": 1, "parts": []}}, "content.format"),
        ({"content": {"parts": {}}}, "content.parts"),
        ({"content": {"parts": [None]}}, "content.parts.0"),
        ({"content": {"parts": [{"type": 5}]}}, "content.parts.0"),
        ({"content": text_content("x", metadata=[])}, "content.metadata"),
        ({"content": [{"type": "text", "text": "x"}, {}]}, "content.1"),
        ({"parts": ["x"]}, "parts.0"),
    ],
)
def test_normalize_content__refuses_and_names_other_forms(message: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        normalization.normalize_content(message)
    assert [issue.field for issue in refused.value.issues] == [field]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hi <working_memory>x</working_memory> you", "hi  you"),
        ("<working_memory>\nmany\nlines\n</working_memory>", ""),
        ("a<working_memory>1</working_memory>b<working_memory>2</working_memory>c", "abc"),
        ("  <working_memory>x</working_memory>  spaces go  ", "spaces go"),
        ("  untouched  ", "  untouched  "),
        ("<working_memory>never closed", "<working_memory>never closed"),
        ("</working_memory> odd <working_memory>", "</working_memory> odd <working_memory>"),
    ],
)
def test_strip_working_memory__removes_tags_from_texts(text: str, expected: str) -> None:
    other_part = {"type": "x", "text": text}
    content = {"format": 2, "parts": [{"type": "text", "text": text}, other_part], "content": text}
    stripped = normalization.strip_working_memory(content)
    assert stripped is not None
    assert stripped["parts"] == [{"type": "text", "text": expected}, other_part]
    assert stripped["content"] in (expected, text.strip())


@pytest.mark.parametrize("tool", sorted(normalization.WORKING_MEMORY_TOOLS))
def test_strip_working_memory__removes_calls_of_its_tools(tool: str) -> None:
    content = {"format": 2, "parts": [tool_part(toolName=tool)]}
    assert normalization.strip_working_memory(content) is None
    with_text = {"format": 2, "parts": [tool_part(toolName=tool), {"type": "text", "text": "x"}]}
    assert normalization.strip_working_memory(with_text) == text_content("x")


def test_strip_working_memory__returns_other_content_itself() -> None:
    content = text_content("nothing to take out", metadata={"k": 1})
    assert normalization.strip_working_memory(content) is content


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (text_content("part", content="whole"), "whole"),
        (text_content("part", content="  "), "part"),
        (text_content("part", content=5), "part"),
        ({"parts": [{"type": "text", "text": " a"}, {"type": "text", "text": "b "}]}, "a b"),
        ({"parts": [{"type": "text", "text": 5}, {"type": "reasoning", "reasoning": "x"}]}, ""),
        ({"parts": [{"type": "file", "data": "data:text/plain;base64,QUJD"}]}, ""),
        ({"parts": []}, ""),
    ],
)
def test_get_text__returns_what_a_person_would_read(content: Any, text: str) -> None:
    assert message_text.get_text(content) == text


@pytest.mark.parametrize(
    ("role", "content", "expected"),
    [
        ("user", text_content("hi"), ""),
        ("user", text_content("<system-reminder>x"), "system-reminder"),
        ("user", text_content("\ufeff\n \u00a0<system-reminder>x"), "system-reminder"),
        ("user", text_content("so <system-reminder>x"), ""),
        ("assistant", text_content("<system-reminder>x"), ""),
        ("user", text_content("x", metadata={"systemReminder": {}}), "system-reminder"),
        ("user", text_content("x", metadata={"systemReminder": True}), ""),
        ("user", text_content("x", metadata={"dynamicAgentsMdReminder": 0}), "system-reminder"),
        ("signal", text_content("x", metadata={"signal": {"type": "reactive"}}), "reactive"),
        ("signal", text_content("x", metadata={"signal": {"type": "made-up"}}), ""),
        ("signal", text_content("x", metadata={"signal": "reactive"}), ""),
        ("signal", text_content("x"), ""),
        ("user", {"parts": [{"type": "data-signal", "data": {"type": "state"}}]}, "state"),
        ("user", {"parts": [{"type": "data-signal", "data": {"type": "system-reminder"}}]}, ""),
        ("signal", {"parts": [{"type": "data-signal", "data": {"type": "reactive"}}]}, ""),
        ("user", {"parts": [{"type": "data-user-message", "data": {"type": "user"}}]}, "user"),
        ("user", {"parts": [{"type": "data-signal", "data": {"type": ["state"]}}]}, ""),
        ("user", {"parts": [STATE, {"type": "text", "text": "plain"}]}, "state"),
        (
            "user",
            {"parts": [STATE, {"type": "text", "text": "<system-reminder>x"}]},
            "system-reminder",
        ),
        ("user", {"parts": [STATE], "metadata": {"systemReminder": {}}}, "system-reminder"),
        ("signal", {"parts": [STATE], "metadata": {"signal": {"type": "reactive"}}}, "reactive"),
        ("signal", {"parts": [STATE], "metadata": {"signal": {"type": "user"}}}, "state"),
        ("signal", text_content("x", metadata={"signal": {"type": {"a": 1}}}), ""),
        ("user", {"parts": [{"type": "text", "text": 5}]}, ""),
    ],
)
def test_get_signal_type__of_signals_and_reminders(role: str, content: Any, expected: str) -> None:
    assert signal_types.get_signal_type(role, content) == expected


@pytest.mark.parametrize("transient", [True, False, "true", 1, None])
def test_is_transient_signal__only_a_signal_marked_so(transient: Any) -> None:
    content = text_content("x", metadata={"signal": {"transient": transient}})
    assert signal_types.is_transient_signal("signal", content) is (transient is True)
    assert signal_types.is_transient_signal("user", content) is False


@pytest.mark.parametrize("value", [5, None, [], {"a": 1}, True])
def test_content__accepts_other_values_instead_of_names(value: Any) -> None:
    unreadable = {"type": "tool-invocation", "toolInvocation": value}
    calls = [tool_part(toolName=value, toolCallId=value), tool_part(), unreadable]
    content = {"format": 2, "parts": calls}
    assert normalization.strip_working_memory(content) is content
    assert message_text.get_text(content) == ""
    core = [
        {"type": "tool-call", "toolCallId": value, "toolName": value, "args": value},
        {"type": "tool-result", "toolCallId": value, "toolName": value, "result": value},
        {"type": "tool-invocation", "toolInvocation": value},
    ]
    assert len(normalization.normalize_content({"content": core})["parts"]) == 2
