"""Tests of importing chats of Open WebUI."""

import html
import json
from pathlib import Path
from typing import Any

import pytest

from mastra_memory.importers.records import ResourceMapping
from mastra_memory.memory import Memory
from mastra_memory.models import Thread
from tests.support.importing import (
    count_outcomes,
    get_only_thread,
    import_path,
    list_contents,
    list_texts,
    write_json,
)

pytestmark = pytest.mark.django_db

Json = dict[str, Any]


def message(
    parent: str | None, role: str, content: Any, at: float = 1700000000, **more: Any
) -> Json:
    return {"parentId": parent, "role": role, "content": content, "timestamp": at, **more}


def chat(current: str | None = None, **messages: Json) -> Json:
    history = {"messages": messages, "currentId": current or next(reversed(messages), None)}
    return {
        "id": "chat-1",
        "user_id": "u1",
        "title": "A talk",
        "chat": {"title": "A talk", "models": ["llama3"], "history": history},
        "created_at": 1700000000,
        "updated_at": 1700000100,
    }


def read_parts(tmp_path: Path, **answer: Any) -> list[Json]:
    """Import an answer and return its parts."""
    record = chat(a1=message(None, "assistant", answer.pop("content", ""), **answer))
    import_path(write_json(tmp_path / "chats.json", [record]))
    parts: list[Json] = list_contents(get_only_thread())[0]["parts"]
    return parts


def test_read__chat_becomes_a_thread(tmp_path: Path) -> None:
    record = chat(
        u1=message(None, "user", "Hello"),
        a1=message("u1", "assistant", "Hi", 1700000005, model="llama3"),
    )
    path = write_json(tmp_path / "chats.json", [record])
    import_path(path, ResourceMapping(prefix="w-"))
    thread = get_only_thread()
    assert list_texts(thread) == [("user", "Hello"), ("assistant", "Hi")]
    assert (thread.title, thread.resource_id) == ("A talk", "w-u1")
    assert thread.metadata == {"import": {"from": "openwebui", "id": "chat-1", "model": "llama3"}}
    assert thread.updated_at.timestamp() == 1700000100
    assert list_contents(thread)[1]["metadata"] == {"importId": "a1", "model": "llama3"}


def test_read__regenerated_answer_becomes_a_clone(tmp_path: Path) -> None:
    record = chat(
        "a2",
        u1=message(None, "user", "Tea?", 1),
        a1=message("u1", "assistant", "No.", 2),
        a2=message("u1", "assistant", "Yes.", 3),
    )
    report = import_path(write_json(tmp_path / "chats.json", [record]))
    main = Thread.objects.get(clone_source_id=None)
    assert [text for _, text in list_texts(main)] == ["Tea?", "Yes."]
    assert len(Memory().list_clones(main.pk)) == 1
    assert count_outcomes(report, "messages") == {"stored": 3}


def test_read__chat_of_an_old_version_is_a_list(tmp_path: Path) -> None:
    messages = [message(None, "user", "Hello"), message(None, "assistant", "Hi")]
    record = {"title": "Old", "chat": {"messages": messages, "timestamp": 1700000000123}}
    import_path(write_json(tmp_path / "chats.json", [record]))
    assert list_texts(get_only_thread()) == [("user", "Hello"), ("assistant", "Hi")]
    assert get_only_thread().created_at.timestamp() == pytest.approx(1700000000.123)


def test_read__single_chat_without_its_record(tmp_path: Path) -> None:
    inner = chat(u1=message(None, "user", "Hello"))["chat"]
    import_path(write_json(tmp_path / "chat.json", inner))
    assert list_texts() == [("user", "Hello")]


def test_read__output_items_become_parts(tmp_path: Path) -> None:
    output = [
        {"type": "reasoning", "content": [{"type": "output_text", "text": "Hm."}], "summary": None},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"a": 1}'},
        {"type": "function_call_output", "call_id": "c1",
         "output": [{"type": "input_text", "text": "21"}]},
        {"type": "message", "role": "assistant",
         "content": [{"type": "output_text", "text": "Warm."}]},
    ]  # fmt: skip
    html_text = '<details type="reasoning"><summary>x</summary>Hm.</details>Warm.'
    reasoning, call, text = read_parts(tmp_path, content=html_text, output=output)
    assert reasoning["reasoning"] == "Hm."
    assert call["toolInvocation"] | {} == {
        "state": "result", "toolCallId": "c1", "toolName": "weather", "args": {"a": 1},
        "result": "21",
    }  # fmt: skip
    assert text == {"type": "text", "text": "Warm."}


def test_read__html_blocks_become_parts(tmp_path: Path) -> None:
    arguments = html.escape(json.dumps('{"city": "Paris"}'))
    result = html.escape(json.dumps('{"degrees": 21}'))
    text = (
        '<details type="reasoning" done="true" duration="3">\n<summary>Thought</summary>\n'
        "&gt; Let me\n&gt; see.\n</details>\nFirst."
        f'<details type="tool_calls" done="true" id="c1" name="weather" arguments="{arguments}" '
        f'result="{result}" files="">\n<summary>Tool Executed</summary>\n</details>\nWarm.'
        '<details type="code_interpreter" done="true" output="&quot;4&quot;">\n'
        "<summary>Analyzed</summary>\n```python\nprint(4)\n```\n</details>"
        '<details type="reasoning"> unfinished'
    )
    parts = read_parts(tmp_path, content=text)
    reasoning, first, call, warm, code, rest = parts
    assert reasoning["reasoning"] == "Let me\nsee."
    assert (first["text"], warm["text"]) == ("First.", "Warm.")
    assert call["toolInvocation"]["args"] == {"city": "Paris"}
    assert call["toolInvocation"]["result"] == {"degrees": 21}
    assert code["toolInvocation"]["args"] == {"input": "print(4)"}
    assert code["toolInvocation"]["result"] == "4"
    assert rest["text"] == '<details type="reasoning"> unfinished'


def test_read__many_unfinished_blocks_take_linear_time(tmp_path: Path) -> None:
    text = '<details type="reasoning">' * 20_000
    assert read_parts(tmp_path, content=text) == [{"type": "text", "text": text}]


def test_read__files_sources_and_errors(tmp_path: Path) -> None:
    files = [
        {"type": "image", "url": "data:image/png;base64,eA=="},
        {"type": "file", "id": "f1", "name": "budget.xlsx",
         "file": {"meta": {"content_type": "application/x"}}},
        {},
    ]  # fmt: skip
    sources = [
        {"source": {"name": "web"}, "metadata": [{"source": "https://e.com/", "title": "E"}]},
        {"source": {"name": "notes.pdf"}, "document": ["text"], "metadata": [{}]},
    ]
    error = {"content": "too long"}
    image, budget, page, document, failed = read_parts(
        tmp_path, files=files, sources=sources, error=error
    )
    assert image == {"type": "image", "image": "data:image/png;base64,eA=="}
    assert (budget["filename"], budget["mimeType"]) == ("budget.xlsx", "application/x")
    assert page["source"] == {"sourceType": "url", "url": "https://e.com/", "title": "E"}
    assert document["source"] == {"sourceType": "document", "title": "notes.pdf"}
    assert failed == {"type": "error", "error": "too long"}
