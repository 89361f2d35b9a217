"""History limited by tokens: groups stay whole, and what is left out stays left out."""

from collections.abc import Callable
from typing import Any

import pytest

from mastra_memory.memory import Memory
from mastra_memory.models import Thread
from tests.support.factories import Json, a_message, make_thread, save

EACH = 7
"""Tokens of one message below; a list costs 24 more."""


def options(most: int, removed: int = 0, **more: Any) -> Json:
    return {"messageHistory": {"maxTokens": most, "atMaxRemoveTokens": removed}, **more}


def talk(count: int, start: int = 0) -> None:
    thread = Memory().get_thread("t")
    save([a_message(thread, f"m{n}", text="hello world", at=n) for n in range(start, count)])


def ids(context: Any) -> list[str]:
    return [message.id for message in context.messages]


def cursor() -> Any:
    metadata = Thread.objects.get(pk="t").metadata or {}
    return metadata.get("memoryTokenLimiter")


@pytest.fixture(autouse=True)
def thread(db: None, memory_settings: Callable[..., None]) -> None:
    memory_settings()
    make_thread("ann", "t")


def test_recall__keeps_the_newest_that_fit() -> None:
    talk(10)
    page = Memory(options=options(24 + 3 * EACH)).recall("t")
    assert [message.id for message in page.messages] == ["m7", "m8", "m9"]
    assert (page.total, page.page, page.per_page, page.has_more) == (3, 0, False, False)


def test_recall__leaves_room_and_counts_at_most_so_many() -> None:
    talk(10)
    room = Memory(options=options(24 + 4 * EACH, 2 * EACH)).recall("t")
    assert [message.id for message in room.messages] == ["m8", "m9"]
    most = Memory(options=options(1000, lastMessages=3)).recall("t")
    assert [message.id for message in most.messages] == ["m7", "m8", "m9"]
    assert most.per_page == 3


def test_recall__a_page_that_is_asked_for_is_not_limited() -> None:
    talk(10)
    page = Memory(options=options(24)).recall("t", per_page=5)
    assert (len(page.messages), page.total) == (5, 10)


def test_recall__the_default_of_ten_messages_no_longer_holds() -> None:
    talk(50)
    assert len(Memory(options=options(100_000)).recall("t").messages) == 50


def test_context__grows_until_it_is_full_then_drops_more_than_it_must() -> None:
    memory = Memory(options=options(24 + 6 * EACH, 3 * EACH))
    talk(6)
    assert ids(memory.context("t")) == [f"m{n}" for n in range(6)]
    assert cursor() is None
    talk(7, 6)
    assert ids(memory.context("t")) == ["m4", "m5", "m6"]
    kept = cursor()
    assert kept["messageIds"] == ["m3"] and kept["maxTokens"] == 24 + 6 * EACH
    talk(9, 7)
    assert ids(memory.context("t")) == ["m4", "m5", "m6", "m7", "m8"]
    assert cursor() == kept


def test_context__other_limits_start_anew() -> None:
    talk(7)
    Memory(options=options(24 + 6 * EACH, 3 * EACH)).context("t")
    assert len(ids(Memory(options=options(1000)).context("t"))) == 7


def test_context__the_cursor_never_moves_back_and_metadata_stays() -> None:
    Memory().update_thread("t", metadata={"k": 1})
    memory = Memory(options=options(24 + 2 * EACH))
    talk(5)
    memory.context("t")
    first = cursor()
    talk(8, 5)
    memory.context("t")
    assert cursor()["createdAt"] > first["createdAt"]
    assert (Thread.objects.get(pk="t").metadata or {})["k"] == 1


def test_context__the_date_of_last_activity_does_not_move() -> None:
    talk(7)
    before = Thread.objects.get(pk="t").updated_at
    Memory(options=options(24 + 2 * EACH)).context("t")
    assert Thread.objects.get(pk="t").updated_at == before


def test_context__read_only_writes_no_cursor() -> None:
    talk(7)
    Memory(options=options(24 + 2 * EACH, readOnly=True)).context("t")
    assert cursor() is None


def test_context__messages_of_one_moment_are_told_apart() -> None:
    thread = Memory().get_thread("t")
    save([a_message(thread, f"m{n}", text="hello world", at=0) for n in range(6)])
    memory = Memory(options=options(24 + 2 * EACH))
    assert ids(memory.context("t")) == ["m4", "m5"]
    assert cursor()["messageIds"] == ["m0", "m1", "m2", "m3"]
    assert ids(memory.context("t")) == ["m4", "m5"]


@pytest.mark.parametrize("room", range(24, 24 + 20 * EACH, 5))
def test_context__a_call_and_its_result_are_kept_or_dropped_together(room: int) -> None:
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
    shown = ids(memory.context("t"))
    assert "result" not in shown, "it is shown inside its call"
    for message in memory.context("t").messages:
        if message.id == "call":
            assert message.content["parts"][0]["toolInvocation"]["state"] == "result"


def test_context__a_limit_of_nothing_is_history_off() -> None:
    talk(3)
    assert ids(Memory(options=options(0)).context("t")) == []
    assert Memory(options=options(0)).recall("t").messages == []


@pytest.mark.parametrize("broken", [5, {"createdAt": 5}, {"messageIds": None}, [], "x"])
def test_context__a_cursor_that_cannot_be_read_is_none(broken: Any) -> None:
    talk(3)
    Memory().update_thread("t", metadata={"memoryTokenLimiter": broken})
    assert len(ids(Memory(options=options(1000)).context("t"))) == 3
