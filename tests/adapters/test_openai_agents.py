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
from tests.support.factories import Json, a_message, make_thread, save

PNG = "data:image/png;base64,iVBORw0KGgo="


@pytest.fixture(autouse=True)
def nothing_set(db: None, memory_settings: Callable[..., None]) -> Iterator[None]:
    memory_settings()
    yield
    asyncio.run(sync_to_async(lambda: connection.close())())


def session(**more: Any) -> Any:
    return MastraSession("t", resource_id="ann", **more)


def now(work: Coroutine[Any, Any, Any]) -> Any:
    async def wait() -> Any:
        return await work

    return async_to_sync(wait)()


def stored() -> list[StoredMessage]:
    return list(Memory().list_messages("t", per_page=False).messages)


def said(text: str, **more: Any) -> Json:
    entry = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    message = {"type": "message", "role": "assistant", "status": "completed", "id": "msg_1"}
    return {**message, "content": [entry], **more}


def call(call_id: str = "c1", arguments: str = '{"city": "Rome"}') -> Json:
    item = {"type": "function_call", "call_id": call_id, "name": "weather", "id": f"fc_{call_id}"}
    return {**item, "arguments": arguments, "status": "completed"}


def output(call_id: str = "c1", given: Any = "sunny", **more: Any) -> Json:
    return {"type": "function_call_output", "call_id": call_id, "output": given, **more}


ASK = {"role": "user", "content": "Weather?"}
REASONING = {"type": "reasoning", "id": "rs_1", "encrypted_content": "xyz"}
CONVERSATIONS: dict[str, list[Json]] = {
    "text": [ASK, said("Sunny")],
    "text as text": [ASK, {"role": "assistant", "content": "Sunny"}],
    "several entries": [said("", content=[*said("One")["content"], *said("Two")["content"]])],
    "a refusal": [said("", content=[{"type": "refusal", "refusal": "no"}, *said("x")["content"]])],
    "no entries": [said("", content=[])],
    "two messages in a row": [said("One"), said("Two", id="msg_2")],
    "annotations": [
        said(
            "",
            content=[
                {"type": "output_text", "text": "See", "annotations": [{"type": "url_citation"}]}
            ],
        )
    ],
    "a call and its output": [ASK, call(), output(), said("Sunny")],
    "words, then a call": [said("I look"), call(), output(id="o1", status="completed")],
    "two calls at once": [call("c1"), call("c2"), output("c1"), output("c2"), said("done")],
    "outputs the other way round": [call("c1"), call("c2"), output("c2"), output("c1")],
    "one call after the other": [call("c1"), output("c1"), call("c2"), output("c2")],
    "an output of entries": [call(), output(given=[{"type": "input_image", "image_url": PNG}])],
    "arguments that are no JSON": [call(arguments="{broken"), output()],
    "reasoning": [
        ASK,
        {**REASONING, "summary": [{"type": "summary_text", "text": "Let me see"}]},
        call(),
        output(),
        {**REASONING, "id": "rs_2", "summary": []},
        said("Sunny"),
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
    "items nobody knows": [
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}},
        said("Found"),
        {"type": "item_reference", "id": "msg_9"},
    ],
    "a call without an output": [ASK, call()],
    "a question between call and output": [call(), ASK, output()],
    "the same call id again": [call(), output(given="one"), call(), output(given="two")],
}  # fmt: skip


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize("name", CONVERSATIONS)
def test_session__what_went_in_comes_out(name: str, one_by_one: bool) -> None:
    items = CONVERSATIONS[name]
    for batch in [[item] for item in items] if one_by_one else [items]:
        now(session().add_items(batch))
    assert now(session().get_items()) == items


def test_session__is_one_as_the_library_sees_it() -> None:
    assert isinstance(session(), Session)


def test_session__others_can_read_what_was_said_and_done() -> None:
    now(session().add_items(CONVERSATIONS["a call and its output"]))
    assert [one.role for one in stored()] == ["user", "assistant", "assistant"]
    done = stored()[1].content["parts"][0]["toolInvocation"]
    assert (done["state"], done["args"], done["result"]) == ("result", {"city": "Rome"}, "sunny")


def test_session__instructions_are_not_kept() -> None:
    items = [{"role": role, "content": "Obey"} for role in ("system", "developer")]
    now(session().add_items([*items, ASK]))
    assert now(session().get_items()) == [ASK]


def test_session__a_text_that_was_edited_is_the_one_that_counts() -> None:
    now(session().add_items([said("secret"), call()]))
    first = stored()[0]
    parts = first.content["parts"]
    parts[0]["text"], parts[1]["toolInvocation"]["args"] = "masked", {"city": "masked"}
    Memory().update_messages([{"id": first.id, "content": {"parts": parts}}])
    message, function_call = now(session().get_items())
    assert message["content"][0]["text"] == "masked"
    assert function_call["arguments"] == '{"city":"masked"}'


@pytest.mark.parametrize("limit", range(7))
def test_get_items__the_newest_and_no_output_without_its_call(limit: int) -> None:
    items = [ASK, call("c1"), call("c2"), output("c1"), output("c2"), said("done")]
    now(session().add_items(items))
    newest = items[len(items) - limit :] if limit else []
    called = {item["call_id"] for item in newest if item.get("type") == "function_call"}
    wanted = [
        item
        for item in newest
        if item.get("type") != "function_call_output" or item["call_id"] in called
    ]
    assert now(session().get_items(limit)) == wanted
    chosen = session(session_settings=SessionSettings(limit=limit))
    assert now(chosen.get_items()) == wanted


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_pop_item__takes_one_after_the_other(name: str) -> None:
    items = CONVERSATIONS[name]
    now(session().add_items(items))
    for left in range(len(items) - 1, -1, -1):
        assert now(session().pop_item()) == items[left]
        assert now(session().get_items()) == items[:left]
    assert now(session().pop_item()) is None
    assert not Message.objects.exists()


def test_clear_session__leaves_the_thread() -> None:
    now(session().clear_session())
    now(session().add_items([ASK]))
    now(session().clear_session())
    assert now(session().get_items()) == []
    assert Memory().get_thread("t").resource_id == "ann"


def test_to_items__of_messages_that_mastra_wrote() -> None:
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
    assert to_items(stored()) == [
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


class Scripted(Model):
    """A model that answers as told and remembers what it was shown."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.seen: list[Any] = []
        self.instructions: list[str | None] = []

    async def get_response(
        self, system_instructions: str | None, input: Any, *args: Any, **options: Any
    ) -> ModelResponse:
        self.seen.append(input)
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
def test_runner__remembers_over_two_runs_and_writes_its_memory() -> None:
    memory = Memory(options={"workingMemory": {"enabled": True}})
    kept = session(memory=memory)
    make_thread("ann", "t")
    noting = ResponseFunctionToolCall(
        call_id="c1", type="function_call", name="updateWorkingMemory",
        arguments='{"memory": "name: Ann"}',
    )  # fmt: skip
    looking = ResponseFunctionToolCall(
        call_id="c2", type="function_call", name="weather", arguments='{"city": "Rome"}'
    )
    model = Scripted(noting, "Hi Ann", looking, "Sunny")
    tool = working_memory_tool(memory, thread_id="t", resource_id="ann")
    assert tool is not None

    async def talk() -> list[str]:
        answers = []
        for question in ("I am Ann", "Weather in Rome?"):
            agent = Agent(
                name="a",
                model=model,
                tools=[tool, weather],
                instructions=await kept.system_message(),
            )
            quiet = RunConfig(tracing_disabled=True)
            result = await Runner.run(agent, question, session=kept, run_config=quiet)
            answers.append(result.final_output)
        return answers

    assert now(talk()) == ["Hi Ann", "Sunny"]
    assert memory.get_working_memory("t") == "name: Ann"
    assert "name: Ann" in (model.instructions[2] or "")
    shown = [item.get("content") for item in model.seen[2] if item.get("role") == "user"]
    assert shown == ["I am Ann", "Weather in Rome?"]
    kinds = [item.get("type") or item.get("role") for item in now(kept.get_items())]
    assert kinds == [
        "user",
        "message",
        "user",
        "function_call",
        "function_call_output",
        "message",
    ]


def test_to_items__a_call_that_mastra_tells_twice_is_told_once() -> None:
    save_repeated_call(make_thread("ann", "t"))
    told = to_items(stored())
    assert [item.get("type", "message") for item in told] == [
        "function_call",
        "function_call_output",
        "message",
    ]
    assert told[0]["arguments"] == '{"city":"Rome"}'
