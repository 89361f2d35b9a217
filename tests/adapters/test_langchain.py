"""LangChain's messages go in and come out unchanged."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    ChatMessageChunk,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    SystemMessageChunk,
    ToolMessage,
    ToolMessageChunk,
)
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages

from mastra_memory.adapters.langchain import MastraChatMessageHistory, to_messages
from mastra_memory.exceptions import AccessDenied, InvalidInput
from mastra_memory.memory import Memory
from mastra_memory.models import Message, Thread
from mastra_memory.types import StoredMessage
from tests.adapters.mastra_storage import save_repeated_call
from tests.support.factories import a_message, make_thread, save

PNG = "iVBORw0KGgo="
CALL = {"name": "weather", "args": {"city": "Rome"}, "id": "c1", "type": "tool_call"}
OTHER = {"name": "weather", "args": {"city": "Oslo"}, "id": "c2", "type": "tool_call"}


@pytest.fixture(autouse=True)
def default_settings(db: None, memory_settings: Callable[..., None]) -> None:
    memory_settings()


def history(thread_id: str = "t") -> MastraChatMessageHistory:
    return MastraChatMessageHistory(thread_id, resource_id="ann")


def list_stored() -> list[StoredMessage]:
    return list(Memory().list_messages("t", per_page=False).messages)


def result(content: Any = "sunny", call_id: str = "c1", **more: Any) -> ToolMessage:
    return ToolMessage(content, tool_call_id=call_id, **more)


CONVERSATIONS: dict[str, list[BaseMessage]] = {
    "text": [HumanMessage("Hello", name="ann"), AIMessage("Hi there", id="m1")],
    "everything about an answer": [
        AIMessage(
            "Hi",
            id="run-1",
            name="bot",
            additional_kwargs={"k": [1]},
            response_metadata={"model_name": "gpt-5", "finish_reason": "stop"},
            usage_metadata={"input_tokens": 7, "output_tokens": 3, "total_tokens": 10},
        )
    ],
    "a call and its result": [
        HumanMessage("Weather?"),
        AIMessage("I look", tool_calls=[CALL]),
        result("sunny", name="weather", id="r1", artifact={"raw": [1, 2]}),
        AIMessage("Sunny"),
    ],
    "a call without words": [AIMessage("", tool_calls=[CALL]), result()],
    "two calls at once": [
        AIMessage("", tool_calls=[CALL, OTHER]),
        result(),
        result("cold", "c2"),
        AIMessage("done"),
    ],
    "results the other way round": [
        AIMessage("", tool_calls=[CALL, OTHER]),
        result("cold", "c2"),
        result(),
    ],
    "a failure": [AIMessage("", tool_calls=[CALL]), result("no net", status="error")],
    "a result of blocks": [
        AIMessage("", tool_calls=[CALL]),
        result([{"type": "text", "text": "sunny"}, {"type": "image", "base64": PNG}]),
    ],
    "a call that cannot be read": [
        AIMessage(
            "",
            invalid_tool_calls=[
                {
                    "name": "w",
                    "args": "{broken",
                    "id": "c1",
                    "error": "no JSON",
                    "type": "invalid_tool_call",
                }
            ],
        )
    ],
    "images": [
        HumanMessage(
            [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "https://x.test/a", "detail": "low"}},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
                {"type": "image", "base64": PNG, "mime_type": "image/png"},
                {"type": "image", "url": "https://x.test/b.png"},
                {"type": "file", "base64": PNG, "mime_type": "application/pdf", "filename": "b"},
                {"type": "audio", "url": "https://x.test/c.mp3", "mime_type": "audio/mpeg"},
            ]
        )
    ],
    "a list of one text": [HumanMessage([{"type": "text", "text": "Hello"}])],
    "a list of bare texts": [HumanMessage(["Hello", "there"])],
    "reasoning": [
        AIMessage(
            [
                {"type": "reasoning", "reasoning": "Let me see", "extras": {"id": "rs_1"}},
                {"type": "thinking", "thinking": "hm", "signature": "sig"},
                {"type": "text", "text": "Right", "annotations": [{"type": "citation"}]},
            ]
        )
    ],
    "a call that is a block too": [
        AIMessage(
            [
                {"type": "text", "text": "I look"},
                {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Rome"}},
            ],
            tool_calls=[CALL],
        ),
        result(),
    ],
    "unknown blocks": [AIMessage([{"type": "server_tool_call", "name": "x", "args": {}}])],
    "a call without a result": [HumanMessage("Weather?"), AIMessage("", tool_calls=[CALL])],
    "a question between call and result": [
        AIMessage("", tool_calls=[CALL]),
        HumanMessage("Still there?"),
        result(name="weather"),
    ],
    "the same call id again": [
        AIMessage("", tool_calls=[CALL]),
        result("one"),
        AIMessage("", tool_calls=[CALL]),
        result("two"),
    ],
    "a result without a call": [result(name="weather")],
    "a streamed result": [
        AIMessage("", tool_calls=[CALL]),
        ToolMessageChunk(content="sunny", tool_call_id="c1"),
    ],
    "an empty result": [AIMessage("", tool_calls=[CALL]), result("")],
}


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize("name", CONVERSATIONS)
def test_history__returns_what_was_added(name: str, one_by_one: bool) -> None:
    messages = CONVERSATIONS[name]
    for batch in [[message] for message in messages] if one_by_one else [messages]:
        history().add_messages(batch)
    assert history().messages == messages


def test_history__stores_parts_that_all_clients_read() -> None:
    history().add_messages(CONVERSATIONS["a call and its result"])
    assert [message.role for message in list_stored()] == ["user", "assistant", "assistant"]
    call = list_stored()[1].content["parts"][1]["toolInvocation"]
    assert (call["state"], call["args"], call["result"]) == ("result", {"city": "Rome"}, "sunny")


def test_history__stores_arguments_once() -> None:
    history().add_messages(CONVERSATIONS["a call that is a block too"])
    assert list_stored()[0].content_json.count("Rome") == 1


def test_history__returns_edited_text() -> None:
    history().add_messages(CONVERSATIONS["reasoning"])
    first = list_stored()[0]
    parts = first.content["parts"]
    parts[0]["reasoning"] = parts[2]["text"] = "masked"
    Memory().update_messages([{"id": first.id, "content": {"parts": parts}}])
    blocks: Any = history().messages[0].content
    assert (blocks[0]["reasoning"], blocks[2]["text"]) == ("masked", "masked")


def test_history__stores_message_with_id_once() -> None:
    human = HumanMessage("Hello", id="h1")
    history().add_messages([human])
    history().add_messages([human, AIMessage("Hi", id="a1")])
    history("other").add_messages([human])
    assert len(history().messages) == 2 and len(history("other").messages) == 1


def test_history__deletes_removed_messages() -> None:
    history().add_messages([HumanMessage("One", id="h1"), HumanMessage("Two", id="h2")])
    history().add_messages([RemoveMessage(id="h1"), AIMessage("Three")])
    assert [one.content for one in history().messages] == ["Two", "Three"]


REMOVALS: dict[str, list[BaseMessage]] = {
    "one": [RemoveMessage(id="h1")],
    "the same twice": [RemoveMessage(id="h1"), RemoveMessage(id="h1")],
    "one and a new one": [RemoveMessage(id="a2"), HumanMessage("New", id="n1")],
    "one that is added again": [RemoveMessage(id="h1"), HumanMessage("Again", id="h1")],
    "one that was just changed": [HumanMessage("Again", id="h1"), RemoveMessage(id="h1")],
    "all": [RemoveMessage(id=REMOVE_ALL_MESSAGES)],
    "all, then new ones": [
        RemoveMessage(id=REMOVE_ALL_MESSAGES),
        HumanMessage("Summary", id="s1"),
        AIMessage("Right", id="s2"),
    ],
    "all after new ones": [
        HumanMessage("Gone", id="s1"),
        RemoveMessage(id="h1"),
        RemoveMessage(id=REMOVE_ALL_MESSAGES),
        AIMessage("Kept", id="s2"),
    ],
    "all twice": [
        RemoveMessage(id=REMOVE_ALL_MESSAGES),
        HumanMessage("Gone", id="s1"),
        RemoveMessage(id=REMOVE_ALL_MESSAGES),
        AIMessage("Kept", id="s2"),
    ],
}


@pytest.mark.parametrize("name", REMOVALS)
def test_add_messages__removes_what_langgraph_removes(name: str) -> None:
    stored: list[BaseMessage] = [
        HumanMessage("Weather?", id="h1"),
        AIMessage("", tool_calls=[CALL], id="a1"),
        result(id="r1"),
        AIMessage("Sunny", id="a2"),
    ]
    history().add_messages(stored)
    history().add_messages(REMOVALS[name])
    assert history().messages == add_messages(stored, REMOVALS[name])  # type: ignore[arg-type]


def test_add_messages__applies_removals_in_order() -> None:
    added: list[BaseMessage] = [HumanMessage("Kept", id="s1"), HumanMessage("Gone", id="s2")]
    removals = [RemoveMessage(id=REMOVE_ALL_MESSAGES), RemoveMessage(id="s2")]
    history().add_messages([HumanMessage("Gone", id="h1")])
    history().add_messages([removals[0], *added, removals[1]])
    assert history().messages == added[:1]


def test_add_messages__removes_single_tool_result() -> None:
    stored = [AIMessage("", tool_calls=[CALL, OTHER], id="a1"), result(id="r1")]
    stored.append(result("cold", "c2", id="r2"))
    history().add_messages(stored)
    history().add_messages([RemoveMessage(id="r1")])
    assert history().messages == [stored[0], stored[2]]


def test_add_messages__removes_messages_of_other_clients() -> None:
    save([a_message(make_thread("ann", "t"), "m1"), a_message(make_thread("ann", "u"), "m2")])
    history().add_messages([RemoveMessage(id="m1"), RemoveMessage(id="m2")])
    assert history().messages == [] and len(history("u").messages) == 1


def test_add_messages__removes_nothing_if_it_stores_nothing() -> None:
    history().add_messages([HumanMessage("One", id="h1")])
    too_many = [HumanMessage("Two") for _ in range(5000)]
    for removal_id in ("h1", REMOVE_ALL_MESSAGES):
        with pytest.raises(InvalidInput):
            history().add_messages([RemoveMessage(id=removal_id), *too_many])
    assert [one.content for one in history().messages] == ["One"]


@pytest.mark.parametrize(
    "instruction",
    [
        SystemMessage("Obey"),
        SystemMessageChunk(content="Obey"),
        ChatMessage(content="Obey", role="system"),
        ChatMessage(content="Obey", role="developer"),
        ChatMessageChunk(content="Obey", role="System"),
    ],
)
def test_history__drops_instructions(instruction: BaseMessage) -> None:
    history().add_messages([instruction, HumanMessage("Hello")])
    assert [one.content for one in history().messages] == ["Hello"]


def test_history__keeps_messages_of_other_speakers() -> None:
    speakers = {"user": "user", "Ann": "user", "assistant": "assistant", "function": "assistant"}
    messages = [ChatMessage(content=f"I am {role}", role=role) for role in speakers]
    history().add_messages(messages)
    assert history().messages == messages
    assert [one.role for one in list_stored()] == list(speakers.values())


def test_history__keeps_what_has_a_json_form() -> None:
    loop: list[Any] = []
    loop.append(loop)
    odd = {"object": object(), "set": {1}, "bytes": b"\xff", "kept": [1, {"a": None}], "loop": loop}
    history().add_messages(
        [
            HumanMessage("Weather?", additional_kwargs=odd),
            AIMessage("", tool_calls=[CALL], response_metadata={"odd": object(), "model": "gpt"}),
            result("sunny", artifact=odd | {"loop": None}, id="r1"),
            AIMessage([{"type": "image", "data": b"\xff"}, {"type": "text", "text": "Sunny"}]),
        ]
    )
    human, call, tool, answer = history().messages
    assert (human.content, human.additional_kwargs) == ("Weather?", {})
    assert call.response_metadata == {"odd": None, "model": "gpt"}
    expected = {"object": None, "set": [1], "bytes": "_w==", "kept": [1, {"a": None}], "loop": None}
    assert isinstance(tool, ToolMessage) and tool.artifact == expected
    assert answer.content[1] == {"type": "text", "text": "Sunny"}


def test_clear__keeps_the_thread() -> None:
    history().clear()
    assert history().messages == []
    history().add_messages([HumanMessage("Hello")])
    history().clear()
    assert history().messages == [] and Thread.objects.get(pk="t").resource_id == "ann"


def test_history__refuses_thread_of_other_resource() -> None:
    make_thread("bob", "t")
    for verb in (
        lambda: history().messages,
        lambda: history().add_messages([HumanMessage("x")]),
        lambda: history().add_messages([RemoveMessage(id="x")]),
        lambda: history().add_messages([RemoveMessage(id=REMOVE_ALL_MESSAGES)]),
        lambda: history().clear(),
    ):
        with pytest.raises(AccessDenied):
            verb()
    assert not Message.objects.exists()


def test_to_messages__converts_messages_of_mastra() -> None:
    thread = make_thread("ann", "t")
    call = {"toolCallId": "c1", "toolName": "weather", "args": {"city": "Rome"}}
    steps = [
        {"type": "step-start"},
        {"type": "tool-invocation", "toolInvocation": {**call, "state": "result", "result": [21]}},
        {"type": "step-start"},
        {"type": "text", "text": "21 degrees"},
    ]
    image = {"type": "file", "data": "https://x.test/a.png", "mimeType": "image/png"}
    question = {"format": 2, "parts": [{"type": "text", "text": "Weather?"}, image]}
    save(
        [
            a_message(thread, "u1", content=question, at=0),
            a_message(thread, "a1", role="assistant", content={"format": 2, "parts": steps}, at=1),
        ]
    )
    human, first, tool, last = to_messages(list_stored())
    assert human.content == [
        {"type": "text", "text": "Weather?"},
        {"type": "image", "url": "https://x.test/a.png", "mime_type": "image/png"},
    ]
    assert isinstance(first, AIMessage) and first.tool_calls == [CALL]
    assert (tool.content, tool.name, last.content) == ("[21]", "weather", "21 degrees")


def test_to_messages__merges_repeated_calls() -> None:
    save_repeated_call(make_thread("ann", "t"))
    first, tool, last = to_messages(list_stored())
    assert isinstance(first, AIMessage) and first.tool_calls == [CALL]
    assert (tool.content, last.content) == ("21", "cold")
