"""Items of the OpenAI Agents SDK go in and come out unchanged; its runner keeps them here."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, function_tool
from agents.memory import Session, SessionSettings
from asgiref.sync import async_to_sync, sync_to_async
from django.db import connection
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from mastra_memory.adapters.openai_agents import MastraSession, to_items, working_memory_tool
from mastra_memory.memory import Memory
from mastra_memory.models import Message
from mastra_memory.types import StoredMessage
from tests.adapters.mastra_storage import save_repeated_call
from tests.support.factories import Json, a_message, make_record, make_thread, save

PNG = "data:image/png;base64,iVBORw0KGgo="


@pytest.fixture(autouse=True)
def default_settings(db: None, memory_settings: Callable[..., None]) -> Iterator[None]:
    memory_settings()
    yield
    asyncio.run(sync_to_async(lambda: connection.close())())


def session(**more: Any) -> Any:
    return MastraSession("t", resource_id="ann", **more)


def run_async(work: Coroutine[Any, Any, Any]) -> Any:
    async def wait() -> Any:
        return await work

    return async_to_sync(wait)()


def list_stored() -> list[StoredMessage]:
    return list(Memory().list_messages("t", per_page=False).messages)


def assistant_item(text: str, **more: Any) -> Json:
    entry = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    message = {"type": "message", "role": "assistant", "status": "completed", "id": "msg_1"}
    return {**message, "content": [entry], **more}


def call(call_id: str = "c1", arguments: str = '{"city": "Rome"}') -> Json:
    item = {"type": "function_call", "call_id": call_id, "name": "weather", "id": f"fc_{call_id}"}
    return {**item, "arguments": arguments, "status": "completed"}


def output(call_id: str = "c1", value: Any = "sunny", **more: Any) -> Json:
    return {"type": "function_call_output", "call_id": call_id, "output": value, **more}


ASK = {"role": "user", "content": "Weather?"}
REASONING = {"type": "reasoning", "id": "rs_1", "encrypted_content": "xyz"}
CONVERSATIONS: dict[str, list[Json]] = {
    "text": [ASK, assistant_item("Sunny")],
    "text as text": [ASK, {"role": "assistant", "content": "Sunny"}],
    "several entries": [
        assistant_item(
            "", content=[*assistant_item("One")["content"], *assistant_item("Two")["content"]]
        )
    ],
    "a refusal": [
        assistant_item(
            "",
            content=[{"type": "refusal", "refusal": "no"}, *assistant_item("x")["content"]],
        )
    ],
    "no entries": [assistant_item("", content=[])],
    "two messages in a row": [assistant_item("One"), assistant_item("Two", id="msg_2")],
    "annotations": [
        assistant_item(
            "",
            content=[
                {"type": "output_text", "text": "See", "annotations": [{"type": "url_citation"}]}
            ],
        )
    ],
    "a call and its output": [ASK, call(), output(), assistant_item("Sunny")],
    "words, then a call": [assistant_item("I look"), call(), output(id="o1", status="completed")],
    "two calls at once": [
        call("c1"),
        call("c2"),
        output("c1"),
        output("c2"),
        assistant_item("done"),
    ],
    "outputs the other way round": [call("c1"), call("c2"), output("c2"), output("c1")],
    "one call after the other": [call("c1"), output("c1"), call("c2"), output("c2")],
    "an output of entries": [call(), output(value=[{"type": "input_image", "image_url": PNG}])],
    "arguments that are not JSON": [call(arguments="{broken"), output()],
    "reasoning": [
        ASK,
        {**REASONING, "summary": [{"type": "summary_text", "text": "Let me see"}]},
        call(),
        output(),
        {**REASONING, "id": "rs_2", "summary": []},
        assistant_item("Sunny"),
    ],
    "images": [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "What is this?"},
                {"type": "input_image", "image_url": PNG, "detail": "high"},
                {"type": "input_image", "file_id": "file_1", "detail": "auto"},
                {"type": "input_file", "file_data": "data:application/pdf;base64,QQ==",
                 "filename": "b.pdf"},
            ],
        }
    ],
    "an image first": [
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_image", "image_url": PNG, "detail": "auto"},
                {"type": "input_text", "text": "What is this?"},
            ],
        }
    ],
    "unknown items": [
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}},
        assistant_item("Found"),
        {"type": "item_reference", "id": "msg_9"},
    ],
    "a call without an output": [ASK, call()],
    "a question between call and output": [call(), ASK, output()],
    "the same call id again": [call(), output(value="one"), call(), output(value="two")],
}  # fmt: skip


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize("name", CONVERSATIONS)
def test_session__returns_what_was_added(name: str, one_by_one: bool) -> None:
    items = CONVERSATIONS[name]
    for batch in [[item] for item in items] if one_by_one else [items]:
        run_async(session().add_items(batch))
    assert run_async(session().get_items()) == items


def test_session__has_the_type_of_the_library() -> None:
    assert isinstance(session(), Session)


def test_session__stores_parts_that_all_clients_read() -> None:
    run_async(session().add_items(CONVERSATIONS["a call and its output"]))
    assert [message.role for message in list_stored()] == ["user", "assistant", "assistant"]
    done = list_stored()[1].content["parts"][0]["toolInvocation"]
    assert (done["state"], done["args"], done["result"]) == ("result", {"city": "Rome"}, "sunny")


def test_session__drops_instructions() -> None:
    items = [{"role": role, "content": "Obey"} for role in ("system", "developer")]
    run_async(session().add_items([*items, ASK]))
    assert run_async(session().get_items()) == [ASK]


def test_session__returns_edited_text() -> None:
    run_async(session().add_items([assistant_item("secret"), call()]))
    first = list_stored()[0]
    parts = first.content["parts"]
    parts[0]["text"], parts[1]["toolInvocation"]["args"] = "masked", {"city": "masked"}
    Memory().update_messages([{"id": first.id, "content": {"parts": parts}}])
    message, function_call = run_async(session().get_items())
    assert message["content"][0]["text"] == "masked"
    assert function_call["arguments"] == '{"city":"masked"}'


@pytest.mark.parametrize("limit", range(7))
def test_get_items__limit_drops_outputs_without_call(limit: int) -> None:
    items = [ASK, call("c1"), call("c2"), output("c1"), output("c2"), assistant_item("done")]
    run_async(session().add_items(items))
    newest = items[len(items) - limit :] if limit else []
    called = {item["call_id"] for item in newest if item.get("type") == "function_call"}
    wanted = [
        item
        for item in newest
        if item.get("type") != "function_call_output" or item["call_id"] in called
    ]
    assert run_async(session().get_items(limit)) == wanted
    chosen = session(session_settings=SessionSettings(limit=limit))
    assert run_async(chosen.get_items()) == wanted


TOOLS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "computer_call": "computer_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "tool_search_call": "tool_search_output",
    "program": "program_output",
}


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize("kind", TOOLS)
def test_get_items__limit_drops_outputs_of_all_tools(kind: str, one_by_one: bool) -> None:
    done = {"type": TOOLS[kind], "call_id": "c1", "output": {"type": "computer_screenshot"}}
    items: list[Json] = [ASK, {"type": kind, "call_id": "c1"}, done, assistant_item("done")]
    for batch in [[item] for item in items] if one_by_one else [items]:
        run_async(session().add_items(batch))
    kinds = [
        [item.get("type", "message") for item in run_async(session().get_items(limit))]
        for limit in range(5)
    ]
    whole = ["message", kind, TOOLS[kind], "message"]
    assert kinds == [[], ["message"], ["message"], whole[1:], whole]


def test_get_items__limit_drops_outputs_of_other_calls() -> None:
    items = [call(), output(value="one"), call(), output(value="two")]
    run_async(session().add_items(items))
    assert run_async(session().get_items(3)) == items[2:]
    approval = {"type": "mcp_approval_request", "id": "m1", "name": "x"}
    answer = {"type": "mcp_approval_response", "approval_request_id": "m1", "approve": True}
    run_async(session().add_items([approval, answer]))
    assert run_async(session().get_items(2)) == [approval, answer]
    assert run_async(session().get_items(1)) == []


def test_get_items__observed_calls_leave_no_outputs() -> None:
    thread = make_thread("ann", "t")
    memory = Memory(options={"observationalMemory": True})
    for items in ([{"type": "computer_call", "call_id": "c1"}], [ASK]):
        run_async(session().add_items(items))
    seen = list_stored()
    run_async(session().add_items([{"type": "computer_call_output", "call_id": "c1"}, ASK]))
    record = make_record(thread, active_observations="* looked", last_observed_at=seen[1].created)
    record.observed_message_ids = [message.id for message in seen]
    record.save()
    assert run_async(session(memory=memory).get_items()) == [ASK]


def test_session__returns_null_output() -> None:
    items = [call(), output(value=None)]
    run_async(session().add_items(items))
    assert run_async(session().get_items()) == items


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_pop_item__removes_items_one_by_one(name: str) -> None:
    items = CONVERSATIONS[name]
    run_async(session().add_items(items))
    for count in range(len(items) - 1, -1, -1):
        assert run_async(session().pop_item()) == items[count]
        assert run_async(session().get_items()) == items[:count]
    assert run_async(session().pop_item()) is None
    assert not Message.objects.exists()


def test_clear_session__keeps_the_thread() -> None:
    run_async(session().clear_session())
    run_async(session().add_items([ASK]))
    run_async(session().clear_session())
    assert run_async(session().get_items()) == []
    assert Memory().get_thread("t").resource_id == "ann"


def test_to_items__converts_messages_of_mastra() -> None:
    thread = make_thread("ann", "t")
    invocation = {"toolCallId": "c1", "toolName": "weather", "args": {"city": "Rome"}}
    steps = [
        {"type": "step-start"},
        {"type": "reasoning", "reasoning": "hm"},
        {"type": "tool-invocation",
         "toolInvocation": {**invocation, "state": "result", "result": {"temp": 21}}},
        {"type": "step-start"},
        {"type": "text", "text": "21 degrees"},
    ]  # fmt: skip
    image = {"type": "file", "data": PNG, "mimeType": "image/png"}
    question = {"format": 2, "parts": [{"type": "text", "text": "Weather?"}, image]}
    save(
        [
            a_message(thread, content=question, at=0),
            a_message(thread, role="assistant", content={"format": 2, "parts": steps}, at=1),
        ]
    )
    assert to_items(list_stored()) == [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "Weather?"},
                {"type": "input_image", "image_url": PNG, "detail": "auto"},
            ],
        },
        {
            "type": "function_call",
            "call_id": "c1",
            "name": "weather",
            "arguments": '{"city":"Rome"}',
        },
        {"type": "function_call_output", "call_id": "c1", "output": '{"temp":21}'},
        {
            "role": "assistant",
            "content": [{"type": "output_text", "text": "21 degrees", "annotations": []}],
        },
    ]


class ScriptedModel(Model):
    """A model with fixed answers that records its inputs."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.inputs: list[Any] = []
        self.instructions: list[str | None] = []

    async def get_response(
        self, system_instructions: str | None, input: Any, *args: Any, **options: Any
    ) -> ModelResponse:
        self.inputs.append(input)
        self.instructions.append(system_instructions)
        answer = self.answers.pop(0)
        if isinstance(answer, str):
            entry = ResponseOutputText(text=answer, type="output_text", annotations=[])
            answer = ResponseOutputMessage(
                id="msg_1", type="message", role="assistant", status="completed", content=[entry]
            )
        return ModelResponse(output=[answer], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError


@function_tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


@pytest.mark.django_db(transaction=True)
def test_runner__remembers_and_updates_working_memory() -> None:
    memory = Memory(options={"workingMemory": {"enabled": True}})
    memory_session = session(memory=memory)
    make_thread("ann", "t")
    update_call = ResponseFunctionToolCall(
        call_id="c1", type="function_call", name="updateWorkingMemory",
        arguments='{"memory": "name: Ann"}',
    )  # fmt: skip
    weather_call = ResponseFunctionToolCall(
        call_id="c2", type="function_call", name="weather", arguments='{"city": "Rome"}'
    )
    model = ScriptedModel(update_call, "Hi Ann", weather_call, "Sunny")
    tool = working_memory_tool(memory, thread_id="t", resource_id="ann")
    assert tool is not None

    async def talk() -> list[str]:
        answers = []
        for question in ("I am Ann", "Weather in Rome?"):
            agent = Agent(
                name="a",
                model=model,
                tools=[tool, weather],
                instructions=await memory_session.system_message(),
            )
            quiet = RunConfig(tracing_disabled=True)
            result = await Runner.run(agent, question, session=memory_session, run_config=quiet)
            answers.append(result.final_output)
        return answers

    assert run_async(talk()) == ["Hi Ann", "Sunny"]
    assert memory.get_working_memory("t") == "name: Ann"
    assert "name: Ann" in (model.instructions[2] or "")
    user_texts = [item.get("content") for item in model.inputs[2] if item.get("role") == "user"]
    assert user_texts == ["I am Ann", "Weather in Rome?"]
    kinds = [item.get("type") or item.get("role") for item in run_async(memory_session.get_items())]
    assert kinds == [
        "user",
        "message",
        "user",
        "function_call",
        "function_call_output",
        "message",
    ]


def test_to_items__merges_repeated_calls() -> None:
    save_repeated_call(make_thread("ann", "t"))
    items = to_items(list_stored())
    assert [item.get("type", "message") for item in items] == [
        "function_call",
        "function_call_output",
        "message",
    ]
    assert items[0]["arguments"] == '{"city":"Rome"}'
