"""`Memory.save_turn`: order of commits, repeated turns, tool calls."""

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
ModelError = type("Boom", (Exception,), {})


@pytest.fixture(autouse=True)
def default_settings(memory_settings: Callable[..., None]) -> None:
    memory_settings()


def list_texts(thread_id: str = "t") -> list[tuple[str, str]]:
    rows = Message.objects.filter(thread_id=thread_id).order_by("created_at", "sequence")
    return [(row.role, row.text) for row in rows]


def make_call_part(call_id: str = "c1", **state: Any) -> Json:
    invocation = {"toolCallId": call_id, "toolName": "weather", "args": ARGS, **state}
    return {"type": "tool-invocation", "toolInvocation": invocation}


def make_message(role: str, *parts: Json, **more: Any) -> Json:
    return {"role": role, "content": {"format": 2, "parts": list(parts)}, **more}


def list_calls(message_id: str) -> list[Json]:
    content = Message.objects.get(pk=message_id).content
    return [part["toolInvocation"] for part in content["parts"] if "toolInvocation" in part]


@pytest.mark.django_db(transaction=True)
def test_save_turn__commits_user_message_before_calling_answer() -> None:
    observed: list[Any] = []

    def answer(context: Context) -> str:
        observed.append((connection.in_atomic_block, list_texts(), context.messages[-1].role))
        return "Hi Ann"

    turn = Memory().save_turn("t", "Hello", resource_id="ann", answer=answer)
    assert observed == [(False, [("user", "Hello")], "user")]
    assert list_texts() == [("user", "Hello"), ("assistant", "Hi Ann")]
    assert [message.role for message in (*turn.user, *turn.answer)] == ["user", "assistant"]
    assert Thread.objects.get(pk="t").resource_id == "ann"


@pytest.mark.django_db(transaction=True)
def test_save_turn__keeps_user_message_if_answer_raises() -> None:
    def answer(_: Context) -> str:
        raise ModelError

    message = {"id": "u1", "role": "user", "content": "Hello"}
    for _ in range(3):
        with pytest.raises(ModelError):
            Memory().save_turn("t", message, resource_id="ann", answer=answer)
    assert list_texts() == [("user", "Hello")]
    Memory().save_turn("t", message, resource_id="ann", answer=lambda _: "Hi")
    assert list_texts() == [("user", "Hello"), ("assistant", "Hi")]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("turn_id", ["turn-1", None])
def test_save_turn__repeated_turn_returns_stored_answer(turn_id: str | None) -> None:
    calls: list[int] = []

    def answer(_: Context) -> list[str]:
        calls.append(1)
        return ["One", "Two"]

    message_with_id = {"id": "u1", "role": "user", "content": "Hello"}
    first, again = (
        Memory().save_turn(
            "t",
            "Hello" if turn_id else message_with_id,
            resource_id="ann",
            answer=answer,
            turn_id=turn_id,
        )
        for _ in range(2)
    )
    assert (len(calls), first.repeated, again.repeated) == (1, False, True)
    assert [message.id for message in again.answer] == [message.id for message in first.answer]
    assert list_texts() == [("user", "Hello"), ("assistant", "One"), ("assistant", "Two")]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("messages", [[], [{"role": "system", "content": "Obey", "id": "s1"}]])
def test_save_turn__stores_answer_without_user_messages(messages: list[Json]) -> None:
    for _ in range(2):
        Memory().save_turn("t", messages, resource_id="ann", answer=lambda _: "Hi", turn_id="1")
    assert list_texts() == [("assistant", "Hi")]


@pytest.mark.django_db(transaction=True)
def test_save_turn__same_text_in_two_turns_is_stored_twice() -> None:
    for _ in range(2):
        Memory().save_turn("t", "Hello", resource_id="ann", answer=lambda _: "Hi")
    assert len(list_texts()) == 4


@pytest.mark.django_db(transaction=True)
def test_save_turn__with_answer_refuses_to_run_in_transaction() -> None:
    with transaction.atomic(), pytest.raises(RuntimeError, match="ATOMIC_REQUESTS"):
        Memory().save_turn("t", "Hello", resource_id="ann", answer=lambda _: "Hi")
    assert not Thread.objects.exists()
    with transaction.atomic():
        Memory().save_turn("t", "Hello", resource_id="ann")
    assert list_texts() == [("user", "Hello")]


@pytest.mark.django_db
def test_save_turn__accepts_answer_as_text() -> None:
    Memory().save_turn("t", "Hello", resource_id="ann", answer="Hi")
    assert list_texts() == [("user", "Hello"), ("assistant", "Hi")]


@pytest.mark.django_db
def test_save_turn__new_thread_has_the_right_owner() -> None:
    Memory().save_turn("alone", "Hello")
    assert Thread.objects.get(pk="alone").resource_id == "alone"
    make_thread("bob", "theirs")
    with pytest.raises(AccessDenied):
        Memory().save_turn("theirs", "Hello", resource_id="ann")
    assert list_texts("theirs") == []


@pytest.mark.django_db
def test_save_turn__refuses_message_of_another_thread() -> None:
    make_thread("ann", "t"), make_thread("ann", "t2")
    with pytest.raises(InvalidInput, match="another thread"):
        Memory().save_turn("t", {"role": "user", "content": "x", "threadId": "t2"})
    assert list_texts("t") == list_texts("t2") == []


@pytest.mark.django_db
def test_save_turn__read_only_stores_nothing() -> None:
    memory = Memory(options={"readOnly": True, "generateTitle": True})
    turn = memory.save_turn("t", "Hello", resource_id="ann", answer=lambda _: "Hi")
    assert [message.role for message in (*turn.user, *turn.answer)] == ["user", "assistant"]
    assert not Thread.objects.exists() and not Message.objects.exists()


@pytest.mark.django_db
def test_save_turn__drops_system_messages_and_memory_calls() -> None:
    update = make_call_part(toolName="updateWorkingMemory", state="result", result="ok")
    turn = Memory().save_turn(
        "t",
        [{"role": "system", "content": "Obey"}, {"role": "user", "content": "Hello"}],
        answer=[make_message("assistant", update, {"type": "text", "text": "Hi"})],
    )
    assert list_texts() == [("user", "Hello"), ("assistant", "Hi")]
    assert [message.role for message in turn.context.messages] == ["user"]


@pytest.mark.django_db
def test_save_turn__result_without_arguments_keeps_stored_ones() -> None:
    memory, _ = Memory(), make_thread("ann", "t")
    memory.save_turn("t", [make_message("assistant", make_call_part(state="call"), id="a1")])
    done = make_call_part(state="result", args={}, result="warm")
    memory.save_turn("t", [make_message("assistant", done, id="a1")])
    assert list_calls("a1") == [make_call_part(state="result", result="warm")["toolInvocation"]]


@pytest.mark.django_db
@pytest.mark.parametrize("args", [{}, None])
def test_save_turn__moves_separate_result_into_its_call(args: Any) -> None:
    memory, _ = Memory(), make_thread("ann", "t")
    memory.save_turn("t", [make_message("assistant", make_call_part(state="call"), id="a1")])
    memory.save_turn(
        "t",
        [make_message("tool", make_call_part(state="result", args=args, result="warm"), id="r1")],
    )
    assert list_calls("a1") == [make_call_part(state="result", result="warm")["toolInvocation"]]
    assert not Message.objects.filter(pk="r1").exists()


@pytest.mark.django_db
def test_save_turn__joins_calls_and_results_of_one_batch() -> None:
    memory, _ = Memory(), make_thread("ann", "t")
    memory.save_turn(
        "t",
        [
            make_message(
                "assistant",
                make_call_part("c1", state="call"),
                make_call_part("c2", state="call"),
                id="a1",
            ),
            make_message("tool", make_call_part("c1", state="result", args={}, result=1), id="r1"),
            make_message(
                "tool", make_call_part("c2", state="output-error", args={}, errorText="no"), id="r2"
            ),
        ],
    )
    assert [(call["state"], call["args"]) for call in list_calls("a1")] == [
        ("result", ARGS),
        ("output-error", ARGS),
    ]
    assert Message.objects.count() == 1


@pytest.mark.django_db
def test_save_turn__result_after_user_message_stays_separate() -> None:
    memory, _ = Memory(), make_thread("ann", "t")
    memory.save_turn("t", [make_message("assistant", make_call_part(state="call"), id="a1")])
    memory.save_turn("t", "And then?")
    memory.save_turn(
        "t", [make_message("tool", make_call_part(state="result", args={}, result="warm"), id="r1")]
    )
    assert [call["state"] for call in list_calls("a1")] == ["call"]
    (late,) = list_calls("r1")
    assert (late["state"], late["args"], late["toolName"]) == ("result", ARGS, "weather")


@pytest.mark.django_db
def test_save_turn__call_never_returns_to_earlier_state() -> None:
    memory, _ = Memory(), make_thread("ann", "t")
    memory.save_turn(
        "t", [make_message("assistant", make_call_part(state="result", result="warm"), id="a1")]
    )
    memory.save_turn("t", [make_message("assistant", make_call_part(state="call"), id="a1")])
    assert [call["state"] for call in list_calls("a1")] == ["result"]


@pytest.mark.django_db
def test_save_turn__drops_partial_calls() -> None:
    memory, _ = Memory(), make_thread("ann", "t")
    memory.save_turn(
        "t", [make_message("assistant", make_call_part(state="partial-call"), id="a1")]
    )
    assert not Message.objects.exists()


@pytest.mark.django_db
def test_save_turn__growing_answer_stays_one_message() -> None:
    memory, _ = Memory(), make_thread("ann", "t")
    parts: list[Json] = []
    for text in ("One", "Two", "Three", "Four"):
        parts.append({"type": "text", "text": text})
        memory.save_turn("t", [make_message("assistant", *parts, id="a1")])
    assert list_texts() == [("assistant", "One Two Three Four")]


@pytest.mark.django_db
def test_save_turn__requests_title() -> None:
    memory = Memory(options={"generateTitle": True})
    with FakeLLM("Named"):
        memory.save_turn("t", "Hello", answer="Hi")
    assert Thread.objects.get(pk="t").title_state == "pending"


@pytest.mark.django_db
def test_save_turn__number_of_statements(statements: Any) -> None:
    memory, _ = Memory(), make_thread("ann", "t")
    with statements() as sent:
        memory.save_turn("t", "Hello", resource_id="ann", answer=lambda _: "Hi")
    assert len(sent) == 6, sent


@pytest.mark.django_db(transaction=True)
def test_asave_turn__awaits_the_answer() -> None:
    async_to_sync(_save_async_turns)()


async def _save_async_turns() -> None:
    async def answer(context: Context) -> list[Json]:
        stored = await sync_to_async(list_texts)()
        assert stored == [("user", "Hello")]
        return [{"role": "assistant", "content": text_content("Hi")}]

    message = {"id": "u1", "role": "user", "content": "Hello"}
    turn = await Memory().asave_turn("t", message, resource_id="ann", answer=answer)
    assert [message.role for message in turn.answer] == ["assistant"]
    again = await Memory().asave_turn("t", message, resource_id="ann", answer=answer)
    assert again.repeated
    assert len(await sync_to_async(list_texts)()) == 2
