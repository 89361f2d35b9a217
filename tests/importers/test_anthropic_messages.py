"""Tests of importing JSON of Anthropic's Messages API."""

from pathlib import Path
from typing import Any

import pytest

from mastra_memory.importers.records import ResourceMapping
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


def message(role: str, *blocks: Json, text: str = "") -> Json:
    return {"role": role, "content": list(blocks) if blocks else text}


def request(*messages: Json, **more: Any) -> Json:
    return {"model": "claude-x", "max_tokens": 10, "messages": list(messages), **more}


def answer(text: str) -> Json:
    content = [{"type": "text", "text": text}]
    return {"id": "msg_1", "type": "message", "role": "assistant", "content": content}


CALL = {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Paris"}}


def result(content: Any, **more: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": "t1", "content": content, **more}


def test_read__request_with_tools(tmp_path: Path) -> None:
    record = request(
        message("user", text="Weather?"),
        message("assistant", {"type": "thinking", "thinking": "Hm.", "signature": "x"}, CALL),
        message("user", result([{"type": "text", "text": "21"}], is_error=True)),
        message("assistant", text="Warm."),
        system="Obey",
        metadata={"user_id": "ann"},
    )
    path = write_json(tmp_path / "x.jsonl", [record])
    report = import_path(path, ResourceMapping(prefix="a-"))
    thread = get_only_thread()
    assert [role for role, _ in list_texts(thread)] == ["user", "assistant", "assistant"]
    assert thread.resource_id == "a-ann"
    reasoning, call = list_contents(thread)[1]["parts"]
    assert reasoning["reasoning"] == "Hm."
    assert call["toolInvocation"]["result"] == "21" and call["toolInvocation"]["isError"]
    assert count_outcomes(report, "messages") == {"stored": 3, "joined": 1, "skipped": 1}


def test_read__result_with_a_text_is_a_message_too(tmp_path: Path) -> None:
    record = request(
        message("assistant", CALL), message("user", result("21"), {"type": "text", "text": "So?"})
    )
    import_path(write_json(tmp_path / "x.jsonl", [record]))
    assert list_texts() == [("assistant", ""), ("user", "So?")]


def test_read__result_without_its_call_is_kept(tmp_path: Path) -> None:
    import_path(write_json(tmp_path / "x.jsonl", [request(message("user", result("21")))]))
    assert list_texts() == [("tool", "")]
    assert list_contents(get_only_thread())[0]["parts"][0]["toolInvocation"]["result"] == "21"


def test_read__batch_with_results_in_another_file(tmp_path: Path) -> None:
    requests = [{"custom_id": "q1", "params": request(message("user", text="Hello"))}]
    results = [
        {"custom_id": "q1", "result": {"type": "succeeded", "message": answer("Hi")}},
        {"custom_id": "q2", "result": {"type": "errored", "error": {}}},
    ]
    write_json(tmp_path / "batch" / "results.jsonl", results)
    write_json(tmp_path / "batch" / "zz-requests.jsonl", requests)
    report = import_path(tmp_path / "batch")
    assert list_texts(get_only_thread()) == [("user", "Hello"), ("assistant", "Hi")]
    assert count_outcomes(report, "threads") == {"stored": 1, "refused": 1}


@pytest.mark.parametrize("key", ["response", "message"])
def test_read__log_of_request_and_answer(tmp_path: Path, key: str) -> None:
    record = {"request": request(message("user", text="Hello")), key: answer("Hi")}
    import_path(write_json(tmp_path / "x.json", [record]))
    assert list_texts() == [("user", "Hello"), ("assistant", "Hi")]


def test_read__files_of_each_kind(tmp_path: Path) -> None:
    def source(**values: Any) -> Json:
        return {"source": values}

    blocks = [
        {"type": "image", **source(type="base64", media_type="image/png", data="eA==")},
        {"type": "image", **source(type="url", url="https://e.com/x.png")},
        {"type": "document", "title": "budget.xlsx", **source(type="file", file_id="f1")},
        {"type": "document", **source(type="text", media_type="text/plain", data="Words")},
        {"type": "document", "title": "a.pdf",
         **source(type="base64", media_type="application/pdf", data="eA==")},
        {"type": "hologram"},
    ]  # fmt: skip
    import_path(write_json(tmp_path / "x.jsonl", [request(message("user", *blocks))]))
    image, linked, upload, text, pdf, odd = list_contents(get_only_thread())[0]["parts"]
    assert image == {"type": "image", "image": "data:image/png;base64,eA=="}
    assert linked == {"type": "image", "image": "https://e.com/x.png"}
    assert (upload["filename"], upload["metadata"]) == ("budget.xlsx", {"id": "f1"})
    assert text["text"] == "Words"
    assert (pdf["data"], pdf["filename"]) == ("data:application/pdf;base64,eA==", "a.pdf")
    assert odd["type"] == "data-claude-hologram"
