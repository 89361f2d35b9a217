"""Tests of importing JSON of OpenAI's Responses and Assistants APIs."""

from pathlib import Path
from typing import Any

import pytest

from mastra_memory.importers.formats import openai_responses
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

Json = dict[str, Any]


def answer(text: str, **more: Any) -> Json:
    content = [{"type": "output_text", "text": text, "annotations": [], **more}]
    return {"type": "message", "id": f"msg_{text}", "role": "assistant", "content": content}


def response(name: str, text: str, **more: Any) -> Json:
    return {
        "id": name,
        "object": "response",
        "created_at": 1714557600,
        "output": [answer(text)],
        **more,
    }


def test_read__request_and_response(tmp_path: Path) -> None:
    record = response("r1", "Hi", input="Hello", instructions="Obey", user="ann")
    path = write_json(tmp_path / "x.jsonl", [record])
    import_path(path, ResourceMapping(prefix="o-"))
    thread = get_only_thread()
    assert list_texts(thread) == [("user", "Hello"), ("assistant", "Hi")]
    assert thread.resource_id == "o-ann"
    assert thread.created_at.isoformat() == "2024-05-01T10:00:00+00:00"


def test_read__responses_continue_the_previous_one(tmp_path: Path) -> None:
    records = [
        response("r1", "One", input="1"),
        response("r2", "Two", input="2", previous_response_id="r1", created_at=1714557700),
        response("r3", "Three", input="3", previous_response_id="r2", created_at=1714557800),
        response("x1", "Other", input="0"),
        response("y1", "A", input="a", conversation={"id": "conv_1"}),
        response("y2", "B", input="b", conversation="conv_1", created_at=1714557700),
    ]
    report = import_path(write_json(tmp_path / "x.jsonl", records))
    texts = sorted([text for _, text in list_texts(thread)] for thread in Thread.objects.all())
    assert texts == [["0", "Other"], ["1", "One", "2", "Two", "3", "Three"], ["a", "A", "b", "B"]]
    assert count_outcomes(report, "messages") == {"stored": 12}


def test_read__items_of_an_answer_become_one_message(tmp_path: Path) -> None:
    cited = [{"type": "url_citation", "url": "https://e.com/", "title": "E"}]
    output = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"a": 1}'},
        {"type": "web_search_call", "id": "w1", "status": "completed",
         "action": {"type": "search", "query": "tea"}},
        answer("Warm.", annotations=cited),
    ]  # fmt: skip
    later = {
        "input": [
            {"type": "function_call_output", "call_id": "c1", "output": '{"degrees": 21}'},
            {"role": "user", "content": [{"type": "input_text", "text": "Thanks"},
                                         {"type": "input_file", "filename": "plan.pdf"}]},
        ]
    }  # fmt: skip
    records = [
        {**response("r1", ""), "input": "Weather?", "output": output},
        response("r2", "Bye", previous_response_id="r1", created_at=1714557700, **later),
    ]
    report = import_path(write_json(tmp_path / "x.jsonl", records))
    _, first, thanks, _ = list_contents(get_only_thread())
    reasoning, call, search, text, source = first["parts"]
    assert reasoning["reasoning"] == "Hm."
    assert call["toolInvocation"]["result"] == {"degrees": 21}
    assert search["toolInvocation"]["args"] == {"type": "search", "query": "tea"}
    assert (text["text"], source["source"]["url"]) == ("Warm.", "https://e.com/")
    assert thanks["parts"][1] == {"type": "file", "data": "", "filename": "plan.pdf"}
    assert count_outcomes(report, "messages") == {"stored": 4, "joined": 4}


def test_read__batch_files(tmp_path: Path) -> None:
    write_json(
        tmp_path / "batch" / "input.jsonl",
        [{"custom_id": "q1", "url": "/v1/responses", "body": {"model": "m", "input": [
            {"role": "developer", "content": "Obey"}, {"role": "user", "content": "Hello"}]}}],
    )  # fmt: skip
    write_json(
        tmp_path / "batch" / "output.jsonl",
        [{"custom_id": "q1", "response": {"status_code": 200, "body": response("r1", "Hi")}}],
    )
    report = import_path(tmp_path / "batch")
    assert list_texts(get_only_thread()) == [("user", "Hello"), ("assistant", "Hi")]
    assert count_outcomes(report, "messages") == {"stored": 2, "skipped": 1}


def thread_message(name: str, role: str, text: str, at: int, **more: Any) -> Json:
    return {
        "id": name,
        "object": "thread.message",
        "created_at": 1714557600 + at,
        "thread_id": more.pop("thread", "t1"),
        "role": role,
        "content": [{"type": "text", "text": {"value": text, "annotations": []}}],
        **more,
    }


def test_read__list_of_messages_newest_first(tmp_path: Path) -> None:
    messages = [
        thread_message("m3", "user", "Thanks", 20, attachments=[{"file_id": "file-1"}]),
        thread_message("m2", "assistant", "Hi", 10),
        thread_message("m1", "user", "Hello", 10),
    ]
    page = {"object": "list", "data": messages, "first_id": "m3", "has_more": False}
    import_path(write_json(tmp_path / "x.json", page))
    assert [text for _, text in list_texts()] == ["Hello", "Hi", "Thanks"]
    upload = list_contents(get_only_thread())[2]["parts"][1]
    assert (upload["filename"], upload["metadata"]) == ("file-1", {"id": "file-1"})


def test_read__messages_and_steps_of_several_threads(tmp_path: Path) -> None:
    function = {"name": "weather", "arguments": "{}", "output": "21"}
    calls = [{"id": "c1", "type": "function", "function": function}]
    step = {"object": "thread.run.step", "thread_id": "t1", "created_at": 1714557605}
    records = [
        thread_message("m1", "user", "Weather?", 0),
        thread_message("n1", "user", "Other", 0, thread="t2"),
        {**step, "id": "s1", "step_details": {"type": "tool_calls", "tool_calls": calls}},
        {**step, "id": "s2", "step_details": {"type": "message_creation"}},
        thread_message("m2", "assistant", "Warm.", 10),
    ]
    report = import_path(write_json(tmp_path / "x.jsonl", records))
    thread = Thread.objects.get(metadata__import__id="t1")
    assert [text for _, text in list_texts(thread)] == ["Weather?", "", "Warm."]
    call = list_contents(thread)[1]["parts"][0]["toolInvocation"]
    assert (call["toolName"], call["result"]) == ("weather", "21")
    assert count_outcomes(report, "messages") == {"stored": 4, "skipped": 1}


def test_read__records_without_messages_are_refused(tmp_path: Path) -> None:
    records = [response("r1", "Hi", input="Hello"), {"x": 1}, {"object": "list", "data": []}]
    report = import_path(write_json(tmp_path / "x.jsonl", records))
    assert count_outcomes(report, "threads") == {"stored": 1, "refused": 2}


@pytest.mark.parametrize(
    "record",
    [
        {"instruction": "Translate", "input": "Tea", "output": "Thé"},
        {"model": "text-embedding-3-small", "input": "Tea"},
        {"model": "text-embedding-3-small", "input": ["Tea", "Milk"]},
        {"object": "list", "data": [{"object": "embedding"}]},
    ],
)
def test_detect__other_inputs_are_not_recognized(record: Json) -> None:
    assert not openai_responses.detect(record)
