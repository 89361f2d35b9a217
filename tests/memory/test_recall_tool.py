"""The tool with which an agent reads the messages behind observations."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from mastra_memory import messages, threads
from mastra_memory.memory import Memory
from mastra_memory.models import MessageObservation, ObservationalRecord
from mastra_memory.observational.groups import wrap_in_group
from tests.observational.engine import words
from tests.support.factories import (
    a_message,
    make_chunk,
    make_record,
    make_thread,
    moment,
    save,
    some_messages,
    track,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def recall(memory_settings: Callable[..., None]) -> Callable[..., dict[str, Any]]:
    """Call the tool in the thread `t` of ten messages."""
    memory_settings(OPTIONS={"observationalMemory": {"retrieval": True}})
    save(some_messages(make_thread("alice", "t"), 10))

    def call(**arguments: Any) -> dict[str, Any]:
        tool = Memory().recall_tool("t", resource_id="alice")
        assert tool is not None
        return tool.handler(arguments)

    return call


def ids(answer: dict[str, Any]) -> list[str]:
    """The ids of the messages in the answer."""
    return [line[1 : line.index("]")] for line in answer["text"].split("\n") if line[:1] == "["]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"limit": 3}, ["m0", "m1", "m2"]),
        ({"limit": 3, "page": 2}, ["m3", "m4", "m5"]),
        ({"limit": 3, "anchor": "end"}, ["m7", "m8", "m9"]),
        ({"limit": 3, "anchor": "end", "page": 2}, ["m4", "m5", "m6"]),
        ({"cursor": "m4", "limit": 2}, ["m4", "m5"]),
        ({"cursor": "m4:m6", "limit": 2}, ["m4", "m5"]),
        ({"cursor": "m4", "limit": 2, "page": 0}, ["m4", "m5"]),
        ({"cursor": "m4", "limit": 2, "page": 2}, ["m6", "m7"]),
        ({"cursor": "m4", "limit": 2, "page": -1}, ["m2", "m3"]),
        ({"cursor": "m4", "limit": 2, "page": -2}, ["m0", "m1"]),
        ({"after": "2024-01-01T00:00:06Z"}, ["m7", "m8", "m9"]),
        ({"before": "2024-01-01T00:00:02Z"}, ["m0", "m1"]),
    ],
)
def test_messages__by_cursor_and_page(
    recall: Callable[..., dict[str, Any]], arguments: Any, found: list[str]
) -> None:
    answer = recall(**arguments)
    assert answer["success"] and ids(answer) == found


@pytest.mark.parametrize(
    "arguments",
    [
        {"mode": "burn"},
        {"page": 51},
        {"page": "x"},
        {"limit": 0},
        {"limit": 21},
        {"cursor": "unknown"},
        {"cursor": 3},
        {"after": "yesterday"},
        {"threadId": "unknown"},
        {"mode": "search"},
    ],
)
def test_arguments__wrong_ones_are_explained(
    recall: Callable[..., dict[str, Any]], arguments: Any
) -> None:
    answer = recall(**arguments)
    assert answer["success"] is False and answer["message"]


def test_other_resources__are_refused(recall: Callable[..., dict[str, Any]]) -> None:
    save([a_message(make_thread("bob", "secret"), "s", text="SECRET")])
    for arguments in ({"threadId": "secret"}, {"cursor": "s"}):
        answer = recall(**arguments)
        assert answer["success"] is False and "SECRET" not in str(answer)
    assert "secret" not in recall(mode="threads")["text"]


def test_threads_and_search(recall: Callable[..., dict[str, Any]]) -> None:
    save([a_message(make_thread("alice", "other", title="Trip"), "o", text="A lighthouse")])
    listed = recall(mode="threads")
    assert ids(listed) == ["other", "t"] and "Trip" in listed["text"]
    assert ids(recall(mode="search", query="lighthouse")) == ["o"]
    assert ids(recall(mode="search", query="lighthouse", threadId="t")) == []
    assert ids(recall(threadId="other")) == ["o"]


def observe(thread_id: str, numbers: range, text: str, **fields: Any) -> None:
    """Let messages of a thread be observed as one group."""
    record = ObservationalRecord.objects.filter(thread_id=thread_id).first()
    record = record or make_record(threads.get_thread(thread_id))
    prefix = "m" if thread_id == "t" else thread_id
    ids = [f"{prefix}{number}" for number in numbers]
    chunk = make_chunk(
        record,
        numbers[0],
        group_id=f"g{numbers[0]}",
        range=f"{ids[0]}:{ids[-1]}",
        observations=wrap_in_group(text, "x:y"),
        message_ids=ids,
        thread_id=thread_id,
        last_observed_at=moment(numbers[-1]) + timedelta(milliseconds=1),
        activated_at=moment(99),
        **fields,
    )
    track(messages.get_messages(ids))
    MessageObservation.objects.filter(message_id__in=ids).update(chunk=chunk)


def test_search__finds_groups_of_observations(recall: Callable[..., dict[str, Any]]) -> None:
    thread = make_thread("alice", "a")
    texts = ["We sail to Crete", "In May", "A ferry leaves at nine", "Fine", "Buy a lighthouse"]
    save([a_message(thread, f"a{n}", text=text, at=n) for n, text in enumerate(texts)])
    observe("a", range(2), "Date: Jan 1, 2024\n* 🔴 (00:00) Vacation planned\n  * on an island")
    observe("a", range(2, 4), "* 🟡 (00:02) Ferry at 09:00 to the island")
    by_message = recall(mode="search", query="Crete")["results"]
    assert by_message == [
        {
            "threadId": "a",
            "score": 1.0,
            "groupId": "g0",
            "range": "a0:a1",
            "text": "Date: Jan 1, 2024 * 🔴 (00:00) Vacation planned * on an island",
            "observedAt": "2024-01-01T00:00:01.000Z",
        }
    ]
    answer = recall(mode="search", query="ferry island")
    assert [result["groupId"] for result in answer["results"]] == ["g2", "g0"]
    scores = [result["score"] for result in answer["results"]]
    assert scores[0] > scores[1] > 0
    assert "a2:a3 of a" in answer["text"] and "A ferry leaves" not in answer["text"]
    raw = recall(mode="search", query="lighthouse")
    assert ids(raw) == ["a4"] and raw["results"] == []


def test_search__of_groups_is_limited(
    recall: Callable[..., dict[str, Any]], memory_settings: Callable[..., None]
) -> None:
    for owner, name in (("alice", "a"), ("bob", "b")):
        save(some_messages(make_thread(owner, name), 4, prefix=name))
        observe(name, range(2), f"* 🔴 (00:00) {name} keeps bees")
    observe("a", range(2, 4), "* 🔴 (00:02) a sold the bees")

    def search(**arguments: Any) -> list[str]:
        results = recall(mode="search", query="bees", **arguments)["results"]
        return [result["range"] for result in results]

    assert sorted(search()) == ["a0:a1", "a2:a3"]
    assert search(after="2024-01-01T00:00:01Z") == ["a2:a3"]
    assert search(before="2024-01-01T00:00:03Z") == ["a0:a1"]
    assert search(threadId="t") == [] and len(search(limit=1)) == 1
    long = " ".join(f"bees{number}" for number in range(4_000))
    observe("t", range(9), f"* 🔴 (00:00) bees {long}")
    assert len(recall(mode="search", query="bees", threadId="t")["text"]) < 12_000
    memory_settings(OPTIONS={"observationalMemory": {"retrieval": {"scope": "thread"}}})
    assert search() == ["m0:m8"]


def test_scope_thread__reads_the_current_thread_only(
    recall: Callable[..., dict[str, Any]], memory_settings: Callable[..., None]
) -> None:
    save([a_message(make_thread("alice", "other"), "o", text="A lighthouse")])
    memory_settings(OPTIONS={"observationalMemory": {"retrieval": {"scope": "thread"}}})
    assert ids(recall(limit=1)) == ["m0"]
    for arguments in ({"threadId": "other"}, {"cursor": "o"}, {"mode": "threads"}):
        assert recall(**arguments)["success"] is False
    assert ids(recall(mode="search", query="lighthouse")) == []


def test_long_messages__are_cut_and_read_in_pieces(
    recall: Callable[..., dict[str, Any]],
) -> None:
    text = " ".join(f"w{number}" for number in range(5_000))
    save([a_message(make_thread("alice", "long"), "l", text=text, at=99)])
    low = recall(threadId="long")
    assert len(low["text"]) < 500 and "w0" in low["text"]
    high = recall(threadId="long", detail="high")
    assert high["truncated"] and 2_000 < len(high["text"]) < 12_000
    piece = recall(cursor="l", partIndex=0, charOffset=text.index("w4990"))
    assert "w4990" in piece["text"] and "w4989" not in piece["text"]


def test_filters__by_part_type_and_tool(recall: Callable[..., dict[str, Any]]) -> None:
    call = {"toolCallId": "c", "toolName": "read", "args": {"path": "x"}, "state": "result"}
    parts = [
        {"type": "text", "text": "Before"},
        {"type": "tool-invocation", "toolInvocation": call | {"result": words(3)}},
    ]
    content = {"format": 2, "parts": parts}
    save([a_message(make_thread("alice", "tools"), "x", role="assistant", content=content)])
    only_text = recall(threadId="tools", partType="text")["text"]
    assert "Before" in only_text and "Tool" not in only_text
    only_tool = recall(threadId="tools", toolName="read")["text"]
    assert "Tool Result read" in only_tool and "Before" not in only_tool
    assert recall(threadId="tools", toolName="write")["text"] == "(nothing here)"


def test_without_retrieval__there_is_no_tool(memory_settings: Callable[..., None]) -> None:
    memory_settings(OPTIONS={"observationalMemory": True})
    assert Memory().recall_tool("t") is None
    memory_settings(OPTIONS={})
    assert Memory().recall_tool("t") is None
