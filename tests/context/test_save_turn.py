"""Turns: the user's message first and once, the answer after it, calls whole."""

from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db import connection, transaction

from mastra_memory.context import Context
from mastra_memory.exceptions import AccessDenied, InvalidInput
from mastra_memory.memory import Memory
from mastra_memory.models import Message, Thread
from mastra_memory.testing import FakeLLM
from tests.support.factories import Json, make_thread, text_content

ARGS = {"city": "Rome"}
Boom = type("Boom", (Exception,), {})


@pytest.fixture(autouse=True)
def nothing_set(memory_settings: Callable[..., None]) -> None:
    memory_settings()


def told(thread_id: str = "t") -> list[tuple[str, str]]:
    rows = Message.objects.filter(thread_id=thread_id).order_by("created_at", "sequence")
    return [(row.role, row.text) for row in rows]


def tool(call_id: str = "c1", **state: Any) -> Json:
    invocation = {"toolCallId": call_id, "toolName": "weather", "args": ARGS, **state}
    return {"type": "tool-invocation", "toolInvocation": invocation}


def said(role: str, *parts: Json, **more: Any) -> Json:
    return {"role": role, "content": {"format": 2, "parts": list(parts)}, **more}


def calls_of(message_id: str) -> list[Json]:
    content = Message.objects.get(pk=message_id).content
    return [part["toolInvocation"] for part in content["parts"] if "toolInvocation" in part]


@pytest.mark.django_db(transaction=True)
def test_save_turn__the_users_message_is_committed_before_the_answer_is_asked() -> None:
    seen: list[Any] = []

    def answer(context: Context) -> str:
        seen.append((connection.in_atomic_block, told(), context.messages[-1].role))
        return "Hi Ann"

    turn = Memory().save_turn("t", "Hello", resource_id="ann", answer=answer)
    assert seen == [(False, [("user", "Hello")], "user")]
    assert told() == [("user", "Hello"), ("assistant", "Hi Ann")]
    assert [one.role for one in (*turn.user, *turn.answer)] == ["user", "assistant"]
    assert Thread.objects.get(pk="t").resource_id == "ann"


@pytest.mark.django_db(transaction=True)
def test_save_turn__a_failing_answer_leaves_the_users_message_once() -> None:
    def answer(_: Context) -> str:
        raise Boom

    message = {"id": "u1", "role": "user", "content": "Hello"}
    for _ in range(3):
        with pytest.raises(Boom):
            Memory().save_turn("t", message, resource_id="ann", answer=answer)
    assert told() == [("user", "Hello")]
    Memory().save_turn("t", message, resource_id="ann", answer=lambda _: "Hi")
    assert told() == [("user", "Hello"), ("assistant", "Hi")]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("turn_id", ["turn-1", None])
def test_save_turn__again_asks_nobody_and_stores_nothing(turn_id: str | None) -> None:
    asked: list[int] = []

    def answer(_: Context) -> list[str]:
        asked.append(1)
        return ["One", "Two"]

    named = {"id": "u1", "role": "user", "content": "Hello"}
    first, again = (
        Memory().save_turn(
            "t",
            "Hello" if turn_id else named,
            resource_id="ann",
            answer=answer,
            turn_id=turn_id,
        )
        for _ in range(2)
    )
    assert (len(asked), first.repeated, again.repeated) == (1, False, True)
    assert [one.id for one in again.answer] == [one.id for one in first.answer]
    assert told() == [("user", "Hello"), ("assistant", "One"), ("assistant", "Two")]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("said", [[], [{"role": "system", "content": "Obey", "id": "s1"}]])
def test_save_turn__an_answer_to_nothing_that_is_kept(said: list[Json]) -> None:
    for _ in range(2):
        Memory().save_turn("t", said, resource_id="ann", answer=lambda _: "Hi", turn_id="1")
    assert told() == [("assistant", "Hi")]


@pytest.mark.django_db(transaction=True)
def test_save_turn__the_same_words_in_two_turns_are_two_messages() -> None:
    for _ in range(2):
        Memory().save_turn("t", "Hello", resource_id="ann", answer=lambda _: "Hi")
    assert len(told()) == 4


@pytest.mark.django_db(transaction=True)
def test_save_turn__inside_a_transaction_it_could_not_keep_its_promise() -> None:
    with transaction.atomic(), pytest.raises(RuntimeError, match="ATOMIC_REQUESTS"):
        Memory().save_turn("t", "Hello", resource_id="ann", answer=lambda _: "Hi")
    assert not Thread.objects.exists()
    with transaction.atomic():
        Memory().save_turn("t", "Hello", resource_id="ann")
    assert told() == [("user", "Hello")]


@pytest.mark.django_db
def test_save_turn__an_answer_may_be_given_instead_of_asked_for() -> None:
    Memory().save_turn("t", "Hello", resource_id="ann", answer="Hi")
    assert told() == [("user", "Hello"), ("assistant", "Hi")]


@pytest.mark.django_db
def test_save_turn__who_owns_a_new_thread() -> None:
    Memory().save_turn("alone", "Hello")
    assert Thread.objects.get(pk="alone").resource_id == "alone"
    make_thread("bob", "theirs")
    with pytest.raises(AccessDenied):
        Memory().save_turn("theirs", "Hello", resource_id="ann")
    assert told("theirs") == []


@pytest.mark.django_db
def test_save_turn__a_message_of_another_thread_is_refused() -> None:
    make_thread("ann", "t"), make_thread("ann", "t2")
    with pytest.raises(InvalidInput, match="another thread"):
        Memory().save_turn("t", {"role": "user", "content": "x", "threadId": "t2"})
    assert told("t") == told("t2") == []


@pytest.mark.django_db
def test_save_turn__read_only_stores_nothing_and_makes_no_thread() -> None:
    memory = Memory(options={"readOnly": True, "generateTitle": True})
    turn = memory.save_turn("t", "Hello", resource_id="ann", answer=lambda _: "Hi")
    assert [one.role for one in (*turn.user, *turn.answer)] == ["user", "assistant"]
    assert not Thread.objects.exists() and not Message.objects.exists()


@pytest.mark.django_db
def test_save_turn__system_messages_and_memory_traces_are_not_kept() -> None:
    update = tool(toolName="updateWorkingMemory", state="result", result="ok")
    turn = Memory().save_turn(
        "t",
        [{"role": "system", "content": "Obey"}, {"role": "user", "content": "Hello"}],
        answer=[said("assistant", update, {"type": "text", "text": "Hi"})],
    )
    assert told() == [("user", "Hello"), ("assistant", "Hi")]
    assert [one.role for one in turn.context.messages] == ["user"]


@pytest.mark.django_db
def test_save_turn__a_result_sent_again_without_arguments_keeps_them() -> None:
    memory, _ = Memory(), make_thread("ann", "t")
    memory.save_turn("t", [said("assistant", tool(state="call"), id="a1")])
    done = tool(state="result", args={}, result="warm")
    memory.save_turn("t", [said("assistant", done, id="a1")])
    assert calls_of("a1") == [tool(state="result", result="warm")["toolInvocation"]]


@pytest.mark.django_db
@pytest.mark.parametrize("args", [{}, None])
def test_save_turn__a_result_in_a_message_of_its_own_goes_to_its_call(args: Any) -> None:
    memory, _ = Memory(), make_thread("ann", "t")
    memory.save_turn("t", [said("assistant", tool(state="call"), id="a1")])
    memory.save_turn("t", [said("tool", tool(state="result", args=args, result="warm"), id="r1")])
    assert calls_of("a1") == [tool(state="result", result="warm")["toolInvocation"]]
    assert not Message.objects.filter(pk="r1").exists()


@pytest.mark.django_db
def test_save_turn__calls_and_results_of_one_batch_are_joined() -> None:
    memory, _ = Memory(), make_thread("ann", "t")
    memory.save_turn(
        "t",
        [
            said("assistant", tool("c1", state="call"), tool("c2", state="call"), id="a1"),
            said("tool", tool("c1", state="result", args={}, result=1), id="r1"),
            said("tool", tool("c2", state="output-error", args={}, errorText="no"), id="r2"),
        ],
    )
    assert [(call["state"], call["args"]) for call in calls_of("a1")] == [
        ("result", ARGS),
        ("output-error", ARGS),
    ]
    assert Message.objects.count() == 1


@pytest.mark.django_db
def test_save_turn__a_result_that_comes_after_other_words_stays_where_it_was_said() -> None:
    memory, _ = Memory(), make_thread("ann", "t")
    memory.save_turn("t", [said("assistant", tool(state="call"), id="a1")])
    memory.save_turn("t", "And then?")
    memory.save_turn("t", [said("tool", tool(state="result", args={}, result="warm"), id="r1")])
    assert [call["state"] for call in calls_of("a1")] == ["call"]
    (late,) = calls_of("r1")
    assert (late["state"], late["args"], late["toolName"]) == ("result", ARGS, "weather")


@pytest.mark.django_db
def test_save_turn__a_call_never_goes_back() -> None:
    memory, _ = Memory(), make_thread("ann", "t")
    memory.save_turn("t", [said("assistant", tool(state="result", result="warm"), id="a1")])
    memory.save_turn("t", [said("assistant", tool(state="call"), id="a1")])
    assert [call["state"] for call in calls_of("a1")] == ["result"]


@pytest.mark.django_db
def test_save_turn__calls_cut_off_while_they_came_in_are_left_out() -> None:
    memory, _ = Memory(), make_thread("ann", "t")
    memory.save_turn("t", [said("assistant", tool(state="partial-call"), id="a1")])
    assert not Message.objects.exists()


@pytest.mark.django_db
def test_save_turn__four_saves_of_a_growing_answer_are_one_message() -> None:
    memory, _ = Memory(), make_thread("ann", "t")
    parts: list[Json] = []
    for text in ("One", "Two", "Three", "Four"):
        parts.append({"type": "text", "text": text})
        memory.save_turn("t", [said("assistant", *parts, id="a1")])
    assert told() == [("assistant", "One Two Three Four")]


@pytest.mark.django_db
def test_save_turn__asks_for_a_title_once() -> None:
    memory = Memory(options={"generateTitle": True})
    with FakeLLM("Named"):
        memory.save_turn("t", "Hello", answer="Hi")
    assert Thread.objects.get(pk="t").title_state == "pending"


@pytest.mark.django_db
def test_save_turn__statements(statements: Any) -> None:
    memory, _ = Memory(), make_thread("ann", "t")
    with statements() as sent:
        memory.save_turn("t", "Hello", resource_id="ann", answer=lambda _: "Hi")
    assert len(sent) == 6, sent


@pytest.mark.django_db(transaction=True)
def test_asave_turn__awaits_the_answer() -> None:
    async_to_sync(_awaited_turn)()


async def _awaited_turn() -> None:
    async def answer(context: Context) -> list[Json]:
        kept = await sync_to_async(told)()
        assert kept == [("user", "Hello")]
        return [{"role": "assistant", "content": text_content("Hi")}]

    message = {"id": "u1", "role": "user", "content": "Hello"}
    turn = await Memory().asave_turn("t", message, resource_id="ann", answer=answer)
    assert [one.role for one in turn.answer] == ["assistant"]
    again = await Memory().asave_turn("t", message, resource_id="ann", answer=answer)
    assert again.repeated
    assert len(await sync_to_async(told)()) == 2
