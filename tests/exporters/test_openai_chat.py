"""Exports as chat messages of OpenAI."""

import json
from pathlib import Path
from typing import Any

import pytest

from mastra_memory.exporters import openai_chat
from mastra_memory.models import Thread
from tests.support.exporting import make_conversation, run_export, tool_part
from tests.support.factories import make_thread
from tests.support.importing import import_path, list_contents, list_texts, write_json

pytestmark = pytest.mark.django_db


def export_lines() -> list[dict[str, Any]]:
    text, _ = run_export(openai_chat)
    return [json.loads(line) for line in text.splitlines()]


def test_export__writes_a_line_for_each_thread_with_messages() -> None:
    make_conversation(("user", "Hello"), ("assistant", "Hi ü"))
    make_thread("alice", "empty")
    text, counts = run_export(openai_chat)
    assert [json.loads(line) for line in text.splitlines()] == [
        {
            "messages": [
                {"role": "user", "content": "Hello"},
                {"role": "assistant", "content": "Hi ü"},
            ]
        }
    ]
    assert (counts.threads, counts.messages) == (1, 2)


def test_export__each_call_is_followed_by_its_result() -> None:
    make_conversation(
        ("assistant", [tool_part("f", {"x": 1}, result={"y": 2}), tool_part("g", {}),
         tool_part("h", "raw", result="no", isError=True), {"type": "text", "text": "So."}]),
        ("tool", [tool_part("alone", {}, result="21")]),
    )  # fmt: skip
    ((chat,),) = [line.values() for line in export_lines()]
    first, *rest = chat
    assert first["content"] == "So."
    assert [call["id"] for call in first["tool_calls"]] == ["call_1", "call_2"]
    assert [call["function"] for call in first["tool_calls"]] == [
        {"name": "f", "arguments": '{"x":1}'},
        {"name": "h", "arguments": "raw"},
    ]
    assert rest == [
        {"role": "tool", "tool_call_id": "call_1", "content": '{"y":2}'},
        {"role": "tool", "tool_call_id": "call_2", "content": "no"},
        {"role": "assistant", "content": None, "tool_calls": rest[2]["tool_calls"]},
        {"role": "tool", "tool_call_id": "call_3", "content": "21"},
    ]


@pytest.mark.parametrize("role", ["assistant", "tool"])
def test_export__a_result_in_a_later_message_follows_its_call(role: str) -> None:
    later = (
        ("assistant", "Cold") if role == "assistant" else ("tool", [tool_part("h", {}, result=1)])
    )
    make_conversation(
        ("user", "Go"),
        ("assistant", [tool_part("f", {"x": 1}), tool_part("never", {})]),
        (role, [tool_part("f", {}, result=7)]),
        later,
    )
    ((chat,),) = [line.values() for line in export_lines()]
    assert [message["role"] for message in chat[:3]] == ["user", "assistant", "tool"]
    assert [call["function"] for call in chat[1]["tool_calls"]] == [
        {"name": "f", "arguments": '{"x":1}'}
    ]
    assert chat[2] == {"role": "tool", "tool_call_id": "call_1", "content": "7"}
    assert '"f"' not in json.dumps(chat[3:])


def test_export__keeps_an_open_call_in_the_last_message() -> None:
    make_conversation(("user", "Go"), ("assistant", [tool_part("f", {"x": 1})]))
    ((chat,),) = [line.values() for line in export_lines()]
    assert [call["function"]["name"] for call in chat[-1]["tool_calls"]] == ["f"]


def test_export__an_open_call_does_not_hold_all_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_chat, "MAX_HELD_MESSAGES", 3)
    make_conversation(("assistant", [tool_part("f", {})]), *[("user", str(n)) for n in range(7)])
    ((chat,),) = [line.values() for line in export_lines()]
    assert [message["content"] for message in chat] == [str(n) for n in range(7)]


def test_export__finds_call_that_is_far_from_its_result() -> None:
    between = [("user", str(n)) for n in range(openai_chat.MAX_HELD_MESSAGES + 5)]
    make_conversation(
        ("assistant", [tool_part("f", {"x": 1}), tool_part("never", {})]),
        *between,
        ("tool", [tool_part("f", {}, result=7)]),
        ("assistant", [tool_part("f", {"x": 2})]),
        ("tool", [tool_part("f", {}, result=8)]),
    )
    ((chat,),) = [line.values() for line in export_lines()]
    calls = [call["function"] for message in chat for call in message.get("tool_calls", ())]
    assert calls == [
        {"name": "f", "arguments": '{"x":1}'},
        {"name": "f", "arguments": '{"x":2}'},
    ]
    assert [message["content"] for message in chat if message["role"] == "tool"] == ["7", "8"]


def test_export__writes_images_of_the_user() -> None:
    parts = [
        {"type": "text", "text": "Look"},
        {"type": "image", "image": "https://example.com/a"},
        {"type": "file", "data": "data:image/png;base64,AAAA", "mimeType": "image/png"},
        {"type": "file", "data": "https://example.com/b.pdf", "mimeType": "application/pdf"},
        {"type": "image", "image": "sediment://x"},
    ]
    make_conversation(("user", parts))
    assert export_lines()[0]["messages"][0]["content"] == [
        {"type": "text", "text": "Look"},
        {"type": "image_url", "image_url": {"url": "https://example.com/a"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]


def test_export__signals_and_reasoning_are_left_out() -> None:
    reasoning = {"type": "reasoning", "reasoning": "Hm"}
    make_conversation(
        ("signal", "ping"), ("assistant", [reasoning, {"type": "text", "text": "Yes"}])
    )
    assert export_lines() == [{"messages": [{"role": "assistant", "content": "Yes"}]}]


def test_export__can_be_imported_again(tmp_path: Path) -> None:
    thread = make_conversation(
        ("user", "Go"),
        ("assistant", [tool_part("f", {"x": 1}, result="21")]),
        ("assistant", "Done"),
    )
    import_path(write_json(tmp_path / "chat.jsonl", export_lines()))
    copy = Thread.objects.exclude(pk=thread.id).get()
    assert list_texts(copy) == list_texts(Thread.objects.get(pk=thread.id))
    assert list_contents(copy)[1]["parts"][0]["toolInvocation"]["result"] == "21"


def test_export__names_the_uploads_of_a_message_without_text() -> None:
    uploads = [{"type": "file", "filename": "budget.xlsx"}, {"type": "file", "filename": "a.txt"}]
    make_conversation(("user", uploads), ("user", [{"type": "text", "text": "Hi"}, *uploads]))
    contents = [message["content"] for message in export_lines()[0]["messages"]]
    assert contents == ["[budget.xlsx] [a.txt]", "Hi"]
