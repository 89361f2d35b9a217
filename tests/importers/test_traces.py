"""Tests of importing traces of Langfuse and LangSmith."""

import json
from pathlib import Path
from typing import Any

import pytest

from mastra_memory.importers import traces
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


def chat(role: str, content: Any, **more: Any) -> Json:
    return {"role": role, "content": content, **more}


HELLO, HI, TEA, GREEN = (
    chat("user", "Hello"),
    chat("assistant", "Hi"),
    chat("user", "Tea?"),
    chat("assistant", "Green."),
)
EXPECTED = [("user", "Hello"), ("assistant", "Hi"), ("user", "Tea?"), ("assistant", "Green.")]


def trace(name: str, at: int, input: Any, output: Any, **more: Any) -> Json:
    return {
        "id": name,
        "timestamp": f"2024-05-01T10:00:{at:02}.000Z",
        "sessionId": "s1",
        "userId": "ann",
        "input": input,
        "output": output,
        **more,
    }


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (([HELLO], HI), ([HELLO, HI, TEA], GREEN)),
        (([HELLO], HI), ([TEA], GREEN)),
        (("Hello", "Hi"), ("Tea?", "Green.")),
        (({"messages": [HELLO]}, {"choices": [{"message": HI}]}),
         ({"messages": [HELLO, HI, TEA]}, {"choices": [{"message": GREEN}]})),
        (({"question": "Hello"}, {"answer": "Hi"}), ({"question": "Tea?"}, {"answer": "Green."})),
        ((json.dumps([HELLO]), json.dumps(HI)), (json.dumps([HELLO, HI, TEA]), "Green.")),
        (({"messages": [HELLO]}, {"messages": [HELLO, HI]}),
         ({"messages": [HELLO, HI, TEA]}, {"messages": [HELLO, HI, TEA, GREEN]})),
        (({"args": [], "kwargs": {"query": "Hello"}}, "Hi"),
         ({"kwargs": {"query": "Tea?"}}, GREEN)),
    ],
)  # fmt: skip
def test_read__traces_of_a_session_become_a_thread(
    tmp_path: Path, first: tuple[Any, Any], second: tuple[Any, Any]
) -> None:
    records = [trace("t2", 30, *second), trace("t1", 10, *first)]
    path = write_json(tmp_path / "traces.jsonl", records)
    report = import_path(path, ResourceMapping(prefix="f-"))
    assert list_texts(get_only_thread()) == EXPECTED
    assert get_only_thread().resource_id == "f-ann"
    assert count_outcomes(report, "messages")["stored"] == 4


def test_read__session_and_page_of_a_trace(tmp_path: Path) -> None:
    session = {"id": "s1", "traces": [trace("t1", 1, "Hello", "Hi"), trace("t2", 2, "Tea?", GREEN)]}
    import_path(write_json(tmp_path / "session-s1.json", session))
    page = {"trace": trace("t9", 1, "Other", "Yes", sessionId=None), "observations": [{"id": "o"}]}
    import_path(write_json(tmp_path / "trace-t9.json", page))
    assert list_texts(Thread.objects.get(metadata__import__id="s1")) == EXPECTED
    assert Thread.objects.filter(metadata__import__id="t9").exists()


def test_read__observations_of_the_blob_storage(tmp_path: Path) -> None:
    def row(name: str, kind: str, at: int, input: Any, output: Any) -> Json:
        time = f"2024-05-01 10:00:{at:02}.000000"
        return {"id": name, "trace_id": name, "session_id": "s1", "type": kind, "start_time": time,
                "input": input, "output": output}  # fmt: skip

    rows = [
        row("o1", "GENERATION", 1, json.dumps([HELLO]), json.dumps(HI)),
        row("o2", "SPAN", 2, "x", "y"),
        row("o3", "GENERATION", 3, json.dumps([HELLO, HI, TEA]), json.dumps(GREEN)),
    ]
    write_json(tmp_path / "export" / "observations_v2" / "1.jsonl", rows)
    write_json(tmp_path / "export" / "scores" / "1.jsonl", [{"id": "x", "value": 1}])
    report = import_path(tmp_path / "export")
    assert list_texts() == EXPECTED
    assert count_outcomes(report, "messages") == {"stored": 4, "joined": 2, "skipped": 1}


def test_read__unknown_output_is_kept(tmp_path: Path) -> None:
    import_path(write_json(tmp_path / "x.jsonl", [trace("t1", 1, "Hello", {"score": 5})]))
    _, content = list_contents(get_only_thread())
    assert content["parts"] == [{"type": "data-openai-part", "data": {"score": 5}}]


def run(name: str, at: int, inputs: Any, outputs: Any, **more: Any) -> Json:
    return {
        "id": name,
        "trace_id": name,
        "run_type": "chain",
        "parent_run_id": None,
        "start_time": f"2024-05-01T10:00:{at:02}.123456",
        "end_time": f"2024-05-01T10:00:{at + 1:02}",
        "extra": {"metadata": {"thread_id": "t1", "user_id": "ann"}},
        "inputs": inputs,
        "outputs": outputs,
        **more,
    }


def lc(name: str, content: str, **more: Any) -> Json:
    kwargs = {"content": content, **more}
    path = ["langchain", "schema", "messages", name]
    return {"lc": 1, "type": "constructor", "id": path, "kwargs": kwargs}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (({"messages": [lc("HumanMessage", "Hello")]}, {"messages": [lc("AIMessage", "Hi")]}),
         ({"messages": [lc("HumanMessage", "Tea?")]}, {"messages": [lc("AIMessage", "Green.")]})),
        (({"messages": [[{"type": "human", "content": "Hello"}]]},
          {"generations": [[{"text": "Hi", "message": lc("AIMessage", "Hi")}]]}),
         ({"messages": [[["human", "Tea?"]]]}, {"generations": [[{"text": "Green."}]]})),
        (({"input": "Hello"}, {"output": "Hi"}), ({"input": "Tea?"}, {"output": "Green."})),
        (({"messages": [HELLO]}, HI), ({"messages": [HELLO, HI, TEA]}, GREEN)),
        (({"input": {"type": "human", "data": {"content": "Hello"}}}, {"output": HI}),
         ({"input": "Tea?", "chat_history": [HELLO, HI]}, {"output": GREEN})),
    ],
)  # fmt: skip
def test_read__runs_of_a_thread_become_a_thread(
    tmp_path: Path, first: tuple[Any, Any], second: tuple[Any, Any]
) -> None:
    records = [run("r1", 1, *first), run("r2", 20, *second)]
    path = write_json(tmp_path / "runs.jsonl", records)
    import_path(path, ResourceMapping(prefix="s-"))
    assert list_texts(get_only_thread()) == EXPECTED
    assert get_only_thread().resource_id == "s-ann"


def test_read__steps_of_a_run_are_skipped(tmp_path: Path) -> None:
    step = run("c1", 2, {"messages": [HELLO]}, HI, parent_run_id="r1", trace_id="r1")
    records = [run("r1", 1, {"messages": [HELLO]}, HI), {**step, "run_type": "llm"}]
    report = import_path(write_json(tmp_path / "x.jsonl", records))
    assert count_outcomes(report, "messages") == {"stored": 2, "skipped": 1}
    report = import_path(write_json(tmp_path / "y.jsonl", records[1:]), ResourceMapping("bob"))
    assert count_outcomes(report, "messages") == {"stored": 2}


def test_read__tool_calls_of_langchain(tmp_path: Path) -> None:
    call = {"id": "c1", "name": "weather", "args": {"city": "Paris"}}
    messages = [
        lc("HumanMessage", "Weather?"),
        lc("AIMessage", "", tool_calls=[call]),
        lc("ToolMessage", "21", tool_call_id="c1"),
    ]
    record = run("r1", 1, {"messages": messages}, {"messages": [lc("AIMessage", "Warm.")]})
    report = import_path(write_json(tmp_path / "x.jsonl", [record]))
    content = list_contents(get_only_thread())[1]
    invocation = next(p for p in content["parts"] if "toolInvocation" in p)["toolInvocation"]
    assert (invocation["args"], invocation["result"]) == ({"city": "Paris"}, "21")
    assert count_outcomes(report, "messages") == {"stored": 3, "joined": 1}


@pytest.mark.parametrize(
    ("history", "messages", "expected"),
    [("", "ab", 0), ("ab", "abc", 2), ("ab", "c", 0), ("aab", "ab", 2), ("abc", "bcd", 2),
     ("aaaa", "aa", 2), ("ab", "", 0), ("ab", "ba", 1)],
)  # fmt: skip
def testcount_overlap__messages_at_the_end_of_the_history(
    history: str, messages: str, expected: int
) -> None:
    assert traces.count_overlap(list(history), list(messages)) == expected
