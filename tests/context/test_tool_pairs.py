"""A model never sees a tool result without its call, nor a call without its result."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from mastra_memory.adapters import langchain, openai_agents, pydantic_ai
from mastra_memory.memory import Memory
from mastra_memory.messages import tool_pairs
from mastra_memory.types import Include, StoredMessage, StoredThread
from tests.conftest import Statements
from tests.support.factories import Json, a_message, fill, make_record, make_thread, moment, save

ARGUMENTS = {"city": "Rome"}


@pytest.fixture
def thread(db: None, memory_settings: Callable[..., None]) -> StoredThread:
    memory_settings()
    return make_thread("ann", "t")


def call(*call_ids: str, state: str = "call", **fields: Any) -> Json:
    """Content with tool calls, or with results if `state` says so."""
    parts = [
        {
            "type": "tool-invocation",
            "toolInvocation": {
                "toolCallId": call_id,
                "toolName": "weather",
                "state": state,
                "args": ARGUMENTS if state == "call" else {},
                **fields,
            },
        }
        for call_id in call_ids
    ]
    return {"format": 2, "parts": parts}


def result(*call_ids: str, value: str = "warm") -> Json:
    return call(*call_ids, state="result", result=value)


def save_pair(
    thread: StoredThread, *, role: str = "tool", distance: int = 0, parallel: bool = False
) -> None:
    """Save `before`, `call`, some messages, the results `r1` and `r2`, and `after`.

    Without `parallel` there is one result. `call` is stored at 2 s and `r1` at 3 s.
    """
    call_ids = ["c1", "c2"] if parallel else ["c1"]
    save(
        [
            a_message(thread, "before", text="Weather?", at=1),
            a_message(thread, "call", role="assistant", content=call(*call_ids), at=2),
            *(a_message(thread, f"m{n}", at=2 + n / 10_000) for n in range(1, distance + 1)),
            *(
                a_message(thread, f"r{n}", role=role, content=result(call_id), at=2 + n)
                for n, call_id in enumerate(call_ids, start=1)
            ),
            a_message(thread, "after", role="assistant", text="It is warm", at=5),
        ]
    )


def list_halves(messages: Iterable[StoredMessage]) -> tuple[list[Any], list[str]]:
    """Return the arguments of the calls, and the ids of the results, that a provider gets."""
    items = openai_agents.to_items(messages)
    calls = {
        item["call_id"]: item["arguments"] for item in items if item.get("type") == "function_call"
    }
    results = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    assert set(results) == set(calls), "a provider refuses this"
    assert len(results) == len(set(results))
    return list(calls.values()), results


def assert_paired(messages: Iterable[StoredMessage], call_ids: list[str]) -> None:
    arguments, results = list_halves(messages)
    assert results == call_ids
    assert arguments == ['{"city":"Rome"}'] * len(call_ids)


CUTS: dict[str, Callable[[StoredThread], Any]] = {
    "cursor": lambda thread: make_record(
        thread, active_observations="* asked", last_observed_at=moment(2.5)
    ),
    "observed ids": lambda thread: make_record(
        thread, active_observations="* asked", observed_message_ids=["before", "call"]
    ),
    "cursor and ids": lambda thread: make_record(
        thread,
        active_observations="* asked",
        last_observed_at=moment(2.5),
        observed_message_ids=["r1"],
    ),
    "resource": lambda thread: make_record(
        resource_id="ann",
        active_observations="* asked",
        last_observed_at=moment(2.5),
        observed_message_ids=["before", "call"],
    ),
}


@pytest.mark.parametrize("distance", [0, 60, 600])
@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("role", ["tool", "assistant"])
@pytest.mark.parametrize("cut", CUTS)
def test_context__observed_call_stays_with_its_result(
    thread: StoredThread, cut: str, role: str, parallel: bool, distance: int
) -> None:
    save_pair(thread, role=role, distance=distance, parallel=parallel)
    CUTS[cut](thread)
    scope = "resource" if cut == "resource" else "thread"
    memory = Memory(options={"observationalMemory": {"scope": scope}})
    messages = memory.context("t").messages
    is_observed = cut == "cursor and ids" and not parallel
    if not is_observed and (role == "tool" or distance == 0):
        assert_paired(messages, ["c1", "c2"] if parallel else ["c1"])
    list_halves(messages)
    list_halves(memory.recall("t", per_page=2).messages)


@pytest.mark.parametrize("distance", [0, 5, 100, 900, 1100])
@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_context__last_messages_have_whole_pairs(
    thread: StoredThread, count: int, parallel: bool, distance: int
) -> None:
    save_pair(thread, distance=distance, parallel=parallel)
    memory = Memory(options={"lastMessages": count})
    expected = ["c1", "c2"] if parallel else ["c1"]
    is_reached = count > 1 and distance < tool_pairs.MAX_DISTANCE
    for messages in (
        memory.context("t").messages,
        memory.recall("t").messages,
        memory.recall("t", per_page=count).messages,
    ):
        assert_paired(messages, expected if is_reached else [])
        assert messages[-1].id == "after"


@pytest.mark.parametrize("distance", [0, 100])
@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("max_tokens", range(24, 120, 3))
def test_context__tokens_have_whole_pairs(
    thread: StoredThread, max_tokens: int, parallel: bool, distance: int
) -> None:
    save_pair(thread, distance=distance, parallel=parallel)
    memory = Memory(options={"messageHistory": {"maxTokens": max_tokens, "atMaxRemoveTokens": 0}})
    first = memory.context("t")
    list_halves(first.messages)
    assert [m.id for m in memory.context("t").messages] == [m.id for m in first.messages]
    list_halves(memory.recall("t").messages)
    limited = Memory(options={"maxContextTokens": max_tokens}).context("t")
    list_halves(limited.messages)


@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize("target", ["call", "r1", "r2", "after"])
def test_recall__windows_have_whole_pairs(thread: StoredThread, target: str, after: int) -> None:
    save_pair(thread, distance=50, parallel=True)
    include = [Include(id=target, before=0, after=after)]
    memory = Memory(options={"lastMessages": 0})
    page = memory.recall("t", include=include)
    assert_paired(page.messages, [] if target == "after" else ["c1", "c2"])
    listed = memory.list_messages("t", per_page=0, include=include)
    list_halves(listed.messages)


def test_recall__keeps_call_that_has_no_result_yet(thread: StoredThread) -> None:
    save([a_message(thread, "call", role="assistant", content=call("c1"), at=1)])
    assert [message.id for message in Memory().recall("t").messages] == ["call"]
    assert Memory().context("t").messages == ()


def test_context__new_result_brings_its_call(thread: StoredThread) -> None:
    save([a_message(thread, "call", role="assistant", content=call("c1", "c2"), at=1)])
    fill(thread, 80)
    for options in ({"lastMessages": 2}, {"lastMessages": 0}):
        context = Memory(options=options).context(
            "t", new_messages=[{"role": "tool", "content": result("c1")}]
        )
        assert_paired(context.messages, ["c1"])


def test_context__leaves_out_results_without_call(thread: StoredThread) -> None:
    text = {"type": "text", "text": "Look"}
    mixed = {"format": 2, "parts": [text, *result("c2")["parts"]]}
    save(
        [
            a_message(thread, "r1", role="tool", content=result("c1"), at=1),
            a_message(thread, "r2", role="tool", content=mixed, at=2),
        ]
    )
    new: list[Any] = [{"role": "tool", "content": result("c3")}, "Hello"]
    messages = Memory().context("t", new_messages=new).messages
    assert [message.content["parts"] for message in messages] == [
        [text],
        [{"type": "text", "text": "Hello"}],
    ]
    assert [m.content["parts"] for m in Memory().recall("t").messages] == [[text]]
    assert len(Memory().list_messages("t").messages) == 2


def test_context__does_not_join_calls_that_share_an_id(thread: StoredThread) -> None:
    first, second = call("c1"), call("c1", args={"city": "Oslo"})
    save(
        [
            a_message(thread, "call1", role="assistant", content=first, at=1),
            a_message(thread, "r1", role="tool", content=result("c1"), at=2),
            a_message(thread, "call2", role="assistant", content=second, at=3),
            a_message(thread, "r2", role="tool", content=result("c1", value="cold"), at=4),
        ]
    )
    for count in (1, 2):
        messages = Memory(options={"lastMessages": count}).context("t").messages
        arguments, _ = list_halves(messages)
        assert arguments == ['{"city":"Oslo"}']
    items = openai_agents.to_items(Memory(options={"lastMessages": 3}).context("t").messages)
    assert [item.get("output") for item in items] == [None, "warm", None, "cold"]


def test_context__adapters_get_whole_pairs(thread: StoredThread) -> None:
    save_pair(thread, parallel=True, distance=20)
    messages = Memory(options={"lastMessages": 2}).context("t").messages
    kinds = [part.part_kind for one in pydantic_ai.to_messages(messages) for part in one.parts]
    assert kinds == ["tool-call", "tool-call", "tool-return", "tool-return", "text"]
    types = [message.type for message in langchain.to_messages(messages)]
    assert types == ["ai", "tool", "tool", "ai"]


def test_context__reads_nothing_more_if_pairs_are_whole(
    thread: StoredThread, statements: Statements
) -> None:
    save_pair(thread)
    memory = Memory(options={"lastMessages": 3})
    with statements() as whole:
        memory.context("t")
    with statements() as cut:
        Memory(options={"lastMessages": 2}).context("t")
    assert len(cut) == len(whole) + 2


def test_context__searches_are_bounded(thread: StoredThread, statements: Statements) -> None:
    lone = [f"c{n}" for n in range(400)]
    save(
        [
            a_message(thread, role="tool", content=result(*lone[n : n + 10]), at=n)
            for n in range(0, 400, 10)
        ]
    )
    with statements() as sent:
        assert Memory(options={"lastMessages": 40}).context("t").messages == ()
    assert len(sent) <= 4 + tool_pairs.MAX_ROUNDS
