"""History limited by tokens: tool calls stay whole, and dropped messages stay dropped."""

from collections.abc import Callable
from typing import Any

import pytest

from mastra_memory.memory import Memory
from mastra_memory.models import Thread
from tests.support.factories import Json, a_message, make_thread, save

TOKENS_PER_MESSAGE = 7
"""Tokens of each message below. A list of messages costs 24 more."""


def options(max_tokens: int, removed: int = 0, **more: Any) -> Json:
    return {"messageHistory": {"maxTokens": max_tokens, "atMaxRemoveTokens": removed}, **more}


def save_messages_until(count: int, start: int = 0) -> None:
    thread = Memory().get_thread("t")
    save([a_message(thread, f"m{n}", text="hello world", at=n) for n in range(start, count)])


def ids(context: Any) -> list[str]:
    return [message.id for message in context.messages]


def read_cursor() -> Any:
    metadata = Thread.objects.get(pk="t").metadata or {}
    return metadata.get("memoryTokenLimiter")


@pytest.fixture(autouse=True)
def thread(db: None, memory_settings: Callable[..., None]) -> None:
    memory_settings()
    make_thread("ann", "t")


def test_recall__returns_newest_messages_that_fit() -> None:
    save_messages_until(10)
    page = Memory(options=options(24 + 3 * TOKENS_PER_MESSAGE)).recall("t")
    assert [message.id for message in page.messages] == ["m7", "m8", "m9"]
    assert (page.total, page.page, page.per_page, page.has_more) == (3, 0, False, False)


def test_recall__obeys_removal_and_last_messages() -> None:
    save_messages_until(10)
    page = Memory(options=options(24 + 4 * TOKENS_PER_MESSAGE, 2 * TOKENS_PER_MESSAGE)).recall("t")
    assert [message.id for message in page.messages] == ["m8", "m9"]
    last = Memory(options=options(1000, lastMessages=3)).recall("t")
    assert [message.id for message in last.messages] == ["m7", "m8", "m9"]
    assert last.per_page == 3


def test_recall__explicit_page_is_not_limited() -> None:
    save_messages_until(10)
    page = Memory(options=options(24)).recall("t", per_page=5)
    assert (len(page.messages), page.total) == (5, 10)


def test_recall__token_limit_replaces_default_count() -> None:
    save_messages_until(50)
    assert len(Memory(options=options(100_000)).recall("t").messages) == 50


def test_context__drops_extra_messages_when_full() -> None:
    memory = Memory(options=options(24 + 6 * TOKENS_PER_MESSAGE, 3 * TOKENS_PER_MESSAGE))
    save_messages_until(6)
    assert ids(memory.context("t")) == [f"m{n}" for n in range(6)]
    assert read_cursor() is None
    save_messages_until(7, 6)
    assert ids(memory.context("t")) == ["m4", "m5", "m6"]
    saved = read_cursor()
    assert saved["messageIds"] == ["m3"] and saved["maxTokens"] == 24 + 6 * TOKENS_PER_MESSAGE
    save_messages_until(9, 7)
    assert ids(memory.context("t")) == ["m4", "m5", "m6", "m7", "m8"]
    assert read_cursor() == saved


def test_context__changed_limits_ignore_cursor() -> None:
    save_messages_until(7)
    Memory(options=options(24 + 6 * TOKENS_PER_MESSAGE, 3 * TOKENS_PER_MESSAGE)).context("t")
    assert len(ids(Memory(options=options(1000)).context("t"))) == 7


def test_context__cursor_only_advances_and_metadata_stays() -> None:
    Memory().update_thread("t", metadata={"k": 1})
    memory = Memory(options=options(24 + 2 * TOKENS_PER_MESSAGE))
    save_messages_until(5)
    memory.context("t")
    first = read_cursor()
    save_messages_until(8, 5)
    memory.context("t")
    assert read_cursor()["createdAt"] > first["createdAt"]
    assert (Thread.objects.get(pk="t").metadata or {})["k"] == 1


def test_context__does_not_change_updated_at() -> None:
    save_messages_until(7)
    before = Thread.objects.get(pk="t").updated_at
    Memory(options=options(24 + 2 * TOKENS_PER_MESSAGE)).context("t")
    assert Thread.objects.get(pk="t").updated_at == before


def test_context__read_only_writes_no_cursor() -> None:
    save_messages_until(7)
    Memory(options=options(24 + 2 * TOKENS_PER_MESSAGE, readOnly=True)).context("t")
    assert read_cursor() is None


def test_context__distinguishes_messages_with_equal_times() -> None:
    thread = Memory().get_thread("t")
    save([a_message(thread, f"m{n}", text="hello world", at=0) for n in range(6)])
    memory = Memory(options=options(24 + 2 * TOKENS_PER_MESSAGE))
    assert ids(memory.context("t")) == ["m4", "m5"]
    assert read_cursor()["messageIds"] == ["m0", "m1", "m2", "m3"]
    assert ids(memory.context("t")) == ["m4", "m5"]


@pytest.mark.parametrize("room", range(24, 24 + 20 * TOKENS_PER_MESSAGE, 5))
def test_context__keeps_call_and_result_together(room: int) -> None:
    thread = Memory().get_thread("t")
    call = {"toolCallId": "c1", "toolName": "weather", "args": "Rome in the spring"}

    def part(**state: Any) -> Json:
        return {"type": "tool-invocation", "toolInvocation": {**call, **state}}

    save(
        [
            a_message(thread, "m0", text="hello world", at=0),
            a_message(
                thread,
                "call",
                role="assistant",
                content={"format": 2, "parts": [part(state="call")]},
                at=1,
            ),
            a_message(
                thread,
                "result",
                role="tool",
                content={"format": 2, "parts": [part(state="result", args={}, result="warm " * 9)]},
                at=2,
            ),
            a_message(thread, "m3", text="hello world", at=3),
        ]
    )
    memory = Memory(options=options(room, filterIncompleteToolCalls=False))
    message_ids = ids(memory.context("t"))
    assert "result" not in message_ids, "it must be inside its call"
    for message in memory.context("t").messages:
        if message.id == "call":
            assert message.content["parts"][0]["toolInvocation"]["state"] == "result"


def test_context__limit_of_zero_disables_history() -> None:
    save_messages_until(3)
    assert ids(Memory(options=options(0)).context("t")) == []
    assert Memory(options=options(0)).recall("t").messages == []


@pytest.mark.parametrize("broken", [5, {"createdAt": 5}, {"messageIds": None}, [], "x"])
def test_context__ignores_invalid_cursor(broken: Any) -> None:
    save_messages_until(3)
    Memory().update_thread("t", metadata={"memoryTokenLimiter": broken})
    assert len(ids(Memory(options=options(1000)).context("t"))) == 3
