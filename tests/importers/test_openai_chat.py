"""Tests of importing messages of OpenAI's chat API."""

from pathlib import Path
from typing import Any

import pytest

from mastra_memory.importers.records import ResourceMapping
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


def chat(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"messages": list(messages), **more}


def user(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": content, **more}


CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}},
        {"id": "b", "type": "function", "function": {"name": "g", "arguments": "no JSON"}},
    ],
}


def test_read__line_becomes_a_thread(tmp_path: Path) -> None:
    lines = [chat(user("Hello"), {"role": "assistant", "content": "Hi"}), chat(user("Bye"))]
    report = import_path(write_json(tmp_path / "chat.jsonl", lines))
    assert sorted(list_texts()) == [("assistant", "Hi"), ("user", "Bye"), ("user", "Hello")]
    assert count_outcomes(report, "threads") == {"stored": 2}


def test_read__omits_instructions_and_unknown_roles(tmp_path: Path) -> None:
    messages = [
        {"role": "system", "content": "Obey"},
        {"role": "developer", "content": "Obey more"},
        user("Hello"),
        {"role": "robot", "content": "Beep"},
        {"role": ["user"], "content": "x"},
        {"role": "assistant", "content": None},
    ]
    report = import_path(write_json(tmp_path / "chat.jsonl", [chat(*messages)]))
    assert list_texts() == [("user", "Hello")]
    assert count_outcomes(report, "messages") == {"stored": 1, "skipped": 3, "refused": 2}


def test_read__results_join_their_calls_by_id(tmp_path: Path) -> None:
    results = [
        {"role": "tool", "tool_call_id": "b", "content": "plain"},
        {"role": "tool", "tool_call_id": "a", "content": '{"found": [1]}'},
    ]
    report = import_path(write_json(tmp_path / "chat.jsonl", [chat(user("Go"), CALL, *results)]))
    first, second = (p["toolInvocation"] for p in list_contents(get_only_thread())[1]["parts"])
    assert (first["args"], first["result"]) == ({"x": 1}, {"found": [1]})
    assert (second["args"], second["result"]) == ({"input": "no JSON"}, "plain")
    assert count_outcomes(report, "messages") == {"stored": 2, "joined": 2}


def test_read__result_without_a_call_becomes_a_message(tmp_path: Path) -> None:
    result = {"role": "tool", "tool_call_id": "elsewhere", "content": "21"}
    import_path(write_json(tmp_path / "chat.jsonl", [chat(CALL, result)]))
    call, orphan = list_contents(get_only_thread())
    assert call["parts"][0]["toolInvocation"]["state"] == "call"
    assert orphan["parts"][0]["toolInvocation"]["toolCallId"] == "elsewhere"
    assert list_texts()[1][0] == "tool"


@pytest.mark.parametrize("given", ["", None])
def test_read__call_without_arguments(tmp_path: Path, given: str | None) -> None:
    function = {"name": "now", "arguments": given}
    call = {"role": "assistant", "tool_calls": [{"id": "a", "function": function}]}
    import_path(write_json(tmp_path / "chat.jsonl", [chat(user("Go"), call)]))
    assert list_contents(get_only_thread())[1]["parts"][0]["toolInvocation"]["args"] == {}


def test_read__function_calls_of_older_files(tmp_path: Path) -> None:
    call = {"role": "assistant", "content": None}
    call["function_call"] = {"name": "f", "arguments": "{}"}  # type: ignore[assignment]
    result = {"role": "function", "name": "f", "content": "done"}
    import_path(write_json(tmp_path / "chat.jsonl", [chat(call, result)]))
    (content,) = list_contents(get_only_thread())
    assert content["parts"][0]["toolInvocation"]["result"] == "done"


def test_read__converts_each_kind_of_part(tmp_path: Path) -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    sound = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}}
    file = {"type": "file", "file": {"file_id": "f-1", "filename": "a.pdf"}}
    odd = {"type": "hologram", "x": 1}
    content = [{"type": "text", "text": "Look"}, picture, sound, file, odd, "bare"]
    import_path(write_json(tmp_path / "chat.jsonl", [chat(user(content))]))
    (stored,) = list_contents(get_only_thread())
    assert stored["parts"] == [
        {"type": "text", "text": "Look"},
        {"type": "image", "image": "https://example.com/a.png"},
        {"type": "file", "data": "AAAA", "mimeType": "audio/mp3"},
        {"type": "file", "data": "f-1", "filename": "a.pdf"},
        {"type": "data-openai-hologram", "data": odd},
        {"type": "text", "text": "bare"},
    ]


def test_read__batch_request_with_user_date_and_metadata(tmp_path: Path) -> None:
    lines = [
        {"custom_id": "req-1", "body": chat(user("In a batch"))},
        chat(user("Dated"), user="u7", created=1714521600, metadata={"topic": "tea"}),
    ]
    import_path(write_json(tmp_path / "chat.jsonl", lines), ResourceMapping(prefix="o-"))
    batch, dated = Thread.objects.order_by("-created_at")
    assert (batch.resource_id, dated.resource_id) == ("o-req-1", "o-u7")
    assert dated.created_at.isoformat() == "2024-05-01T00:00:00+00:00"
    assert dated.metadata == {"topic": "tea", "import": {"from": "openai"}}


def test_read__record_without_messages_is_refused(tmp_path: Path) -> None:
    lines = [chat(user("Hello")), {"messages": "none"}, {"prompt": "old"}, chat(5, None)]  # type: ignore[arg-type]
    report = import_path(write_json(tmp_path / "chat.jsonl", lines))
    assert count_outcomes(report, "threads") == {"stored": 1, "skipped": 1, "refused": 2}
    assert count_outcomes(report, "messages") == {"stored": 1, "refused": 2}
