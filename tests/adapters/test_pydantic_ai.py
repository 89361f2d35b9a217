"""pydantic-ai's messages go in and come out unchanged; its agents remember."""

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db import connection
from pydantic_ai import Agent, ToolReturn
from pydantic_ai.messages import (
    BinaryContent,
    BinaryImage,
    DocumentUrl,
    FilePart,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryFeedbackPart,
    RetryPromptPart,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage

from mastra_memory.adapters import pydantic_ai as adapter
from mastra_memory.memory import Memory
from mastra_memory.models import Message, Thread
from mastra_memory.types import StoredMessage
from tests.adapters.mastra_storage import save_repeated_call
from tests.support.factories import a_message, make_record, make_thread, moment, save

NOW = datetime(2026, 3, 1, 12, 30, 15, 123456, tzinfo=UTC)
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))


@pytest.fixture(autouse=True)
def default_settings(memory_settings: Callable[..., None]) -> None:
    memory_settings()


@pytest.fixture(autouse=True)
def close_connections(default_settings: None) -> Iterator[None]:
    """Close the connection of the thread in which tools of an agent reach the database."""
    yield
    asyncio.run(sync_to_async(lambda: connection.close())())


def list_stored(thread_id: str = "t") -> list[StoredMessage]:
    return list(Memory().list_messages(thread_id, per_page=False).messages)


def round_trip(messages: list[ModelMessage], *, one_by_one: bool = False) -> list[ModelMessage]:
    """Save the messages, and return them as they are read again."""
    batches = [[message] for message in messages] if one_by_one else [messages]
    for batch in batches:
        Memory().save_turn("t", adapter.from_messages(batch), resource_id="ann")
    return adapter.to_messages(list_stored())


def ask(*content: Any, **more: Any) -> ModelRequest:
    prompt = content[0] if len(content) == 1 else list(content)
    return ModelRequest([UserPromptPart(prompt, timestamp=NOW)], **more)


def reply(*parts: Any, **more: Any) -> ModelResponse:
    return ModelResponse(list(parts), timestamp=NOW, **more)


def make_return(call_id: str, content: Any, **more: Any) -> ToolReturnPart:
    return ToolReturnPart("weather", content, call_id, timestamp=NOW, **more)


CALL = ToolCallPart("weather", {"city": "Rome"}, "c1")
ERROR_DETAILS = {"type": "missing", "loc": ["city"], "msg": "Field required", "input": {}}
CONVERSATIONS: dict[str, list[ModelMessage]] = {
    "text": [ask("Hello"), reply(TextPart("Hi there"))],
    "everything about a response": [
        ask("Hello", timestamp=NOW, run_id="r1", conversation_id="v1", metadata={"k": 1}),
        reply(
            TextPart("Hi", id="p1", provider_name="openai", provider_details={"x": [1]}),
            usage=RequestUsage(input_tokens=7, output_tokens=3),
            model_name="gpt-5",
            provider_name="openai",
            provider_response_id="resp_1",
            finish_reason="stop",
            run_id="r1",
            metadata={"m": True},
        ),
    ],
    "a call and its result": [
        ask("Weather?"),
        reply(TextPart("I look"), CALL),
        ModelRequest([make_return("c1", {"temp": 21, "sky": ["clear"]})], timestamp=NOW),
        reply(TextPart("21 degrees")),
    ],
    "text after a call": [
        reply(CALL, TextPart("calling now")),
        ModelRequest([make_return("c1", "warm")]),
    ],
    "two calls at once": [
        reply(CALL, ToolCallPart("weather", {"city": "Oslo"}, "c2")),
        ModelRequest([make_return("c1", 21), make_return("c2", -3)]),
        reply(TextPart("done")),
    ],
    "results in two requests": [
        reply(CALL, ToolCallPart("weather", {"city": "Oslo"}, "c2")),
        ModelRequest([make_return("c1", 21)]),
        ModelRequest([make_return("c2", -3)]),
    ],
    "arguments as text": [
        reply(
            ToolCallPart("weather", '{ "city" : "Rome" }', "c1"),
            ToolCallPart("weather", "{broken", "c2"),
            ToolCallPart("weather", None, "c3"),
        )
    ],
    "outcomes": [
        reply(CALL, ToolCallPart("weather", {}, "c2"), ToolCallPart("weather", {}, "c3")),
        ModelRequest(
            [
                make_return("c1", "no net", outcome="failed", metadata={"try": 1}),
                make_return("c2", "too expensive", outcome="denied"),
                make_return("c3", "again", outcome="retried"),
            ]
        ),
    ],
    "a result and a question in one request": [
        reply(CALL),
        ModelRequest(
            [make_return("c1", "warm"), UserPromptPart("And Oslo?", timestamp=NOW)], timestamp=NOW
        ),
        reply(TextPart("cold")),
    ],
    "two prompts in one request": [
        ModelRequest([UserPromptPart("One", timestamp=NOW), UserPromptPart("Two", timestamp=NOW)])
    ],
    "images": [
        ask(
            "What is this?",
            ImageUrl("https://x.test/a.png"),
            BinaryImage(PNG, media_type="image/png", vendor_metadata={"detail": "high"}),
            BinaryContent(b"RIFF", media_type="audio/wav"),
            DocumentUrl("https://x.test/b.pdf", media_type="application/pdf"),
        ),
        reply(FilePart(BinaryImage(PNG, media_type="image/png"), id="f1", provider_name="google")),
    ],
    "a list of one text": [ModelRequest([UserPromptPart(["Hello"], timestamp=NOW)])],
    "text with metadata": [ask(TextContent("Hello", metadata={"k": 1}), "there")],
    "reasoning": [
        reply(
            ThinkingPart("Let me see", id="t1", signature="sig", provider_name="anthropic"),
            TextPart("Right"),
        ),
        reply(ThinkingPart("", signature="redacted", provider_name="anthropic"), TextPart("So")),
    ],
    "a file that a tool returned": [
        reply(CALL),
        ModelRequest([make_return("c1", [BinaryImage(PNG, media_type="image/png"), "a map"])]),
    ],
    "the same call id again": [
        reply(CALL),
        ModelRequest([make_return("c1", 1)]),
        reply(CALL),
        ModelRequest([make_return("c1", 2)]),
    ],
    "a call without a result": [ask("Weather?"), reply(CALL)],
    "a question between call and result": [
        reply(CALL),
        ask("Still there?"),
        ModelRequest([make_return("c1", "warm")]),
    ],
    "a result that is null": [reply(CALL), ModelRequest([make_return("c1", None)])],
}


@pytest.mark.django_db
@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize("name", CONVERSATIONS)
def test_to_messages__returns_what_was_saved(name: str, one_by_one: bool) -> None:
    assert round_trip(CONVERSATIONS[name], one_by_one=one_by_one) == CONVERSATIONS[name]


@pytest.mark.django_db
@pytest.mark.filterwarnings("ignore:.*RetryPromptPart")
@pytest.mark.parametrize("content", ["again", [ERROR_DETAILS]])
def test_from_messages__keeps_call_of_deprecated_retry_part(content: Any) -> None:
    retry = RetryPromptPart(content, tool_name="weather", tool_call_id="c1", timestamp=NOW)
    feedback = RetryPromptPart("Shorter", timestamp=NOW)
    for message in (ask("Weather?"), reply(CALL), ModelRequest([retry]), ModelRequest([feedback])):
        Memory().save_turn("t", adapter.from_messages([message]), resource_id="ann")
    history = Memory().context("t").messages
    _, call, answer, request = adapter.to_messages(history)
    assert call.parts == [CALL]
    assert isinstance(answer.parts[0], ToolReturnPart)
    assert (answer.parts[0].outcome, answer.parts[0].content) == ("retried", content)
    assert isinstance(request.parts[0], RetryFeedbackPart)


@pytest.mark.django_db
def test_from_messages__keeps_what_has_a_json_form() -> None:
    part = make_return("c1", "warm", metadata={"object": object(), "set": {1}, "bytes": b"\xff"})
    _, request = round_trip([reply(CALL), ModelRequest([part])])
    assert isinstance(request.parts[0], ToolReturnPart)
    assert request.parts[0].content == "warm"
    assert request.parts[0].metadata == {"object": None, "set": [1], "bytes": "_w=="}


@pytest.mark.django_db
def test_from_messages__builds_parts_that_all_clients_read() -> None:
    round_trip(CONVERSATIONS["a call and its result"])
    stored_rows = [(one.role, one.content["parts"]) for one in list_stored()]
    assert [role for role, _ in stored_rows] == ["user", "assistant", "assistant"]
    call = stored_rows[1][1][1]["toolInvocation"]
    assert (call["state"], call["toolName"], call["args"], call["result"]) == (
        "result",
        "weather",
        {"city": "Rome"},
        {"temp": 21, "sky": ["clear"]},
    )
    assert stored_rows[2][1][0]["text"] == "21 degrees"


@pytest.mark.django_db
def test_to_messages__returns_edited_text() -> None:
    round_trip(CONVERSATIONS["reasoning"] + CONVERSATIONS["arguments as text"])
    first = list_stored()[0]
    parts = first.content["parts"]
    parts[0]["reasoning"], parts[1]["text"] = "masked", "masked"
    Memory().update_messages([{"id": first.id, "content": {"parts": parts}}])
    call = list_stored()[-1]
    parts = call.content["parts"]
    parts[0]["toolInvocation"]["args"] = {"city": "masked"}
    Memory().update_messages([{"id": call.id, "content": {"parts": parts}}])
    converted = adapter.to_messages(list_stored())
    assert [part.content for part in converted[0].parts] == ["masked", "masked"]  # type: ignore[union-attr]
    assert converted[-1].parts[0].args == {"city": "masked"}  # type: ignore[union-attr]


@pytest.mark.django_db
def test_from_messages__drops_instructions() -> None:
    request = ModelRequest(
        [SystemPromptPart("Obey"), UserPromptPart("Hello", timestamp=NOW)], instructions="Be brief"
    )
    assert round_trip([request]) == [ask("Hello")]
    assert "Obey" not in str(list(Message.objects.values())) and "brief" not in str(list_stored())


@pytest.mark.django_db
def test_to_messages__converts_messages_of_mastra() -> None:
    thread = make_thread("ann", "t")
    call = {"toolCallId": "c1", "toolName": "weather", "args": {"city": "Rome"}}
    steps = [
        {"type": "step-start"},
        {"type": "reasoning", "details": [{"type": "text", "text": "hm"}]},
        {"type": "tool-invocation", "toolInvocation": {**call, "state": "result", "result": 21}},
        {"type": "step-start"},
        {"type": "text", "text": "21 degrees"},
        {"type": "data-chart", "data": {}},
    ]
    image = {"type": "file", "data": "https://x.test/a.png", "mimeType": "image/png"}
    save(
        [
            a_message(
                thread,
                content={"format": 2, "parts": [{"type": "text", "text": "Weather?"}, image]},
                at=0,
            ),
            a_message(thread, role="assistant", content={"format": 2, "parts": steps}, at=1),
        ]
    )
    converted = adapter.to_messages(list_stored())
    kinds = [[type(part).__name__ for part in message.parts] for message in converted]
    assert kinds == [
        ["UserPromptPart"],
        ["ThinkingPart", "ToolCallPart"],
        ["ToolReturnPart"],
        ["TextPart"],
    ]
    assert converted[2].parts[0].content == 21  # type: ignore[union-attr]


# Agents


def make_scripted_agent(*steps: Any) -> tuple[Agent[None, str], list[Any]]:
    """Return an agent whose model has fixed answers, and the requests that it gets."""
    requests: list[Any] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        requests.append((messages, info))
        step = steps[min(len(requests), len(steps)) - 1]
        if isinstance(step, Exception):
            raise step
        return ModelResponse([step if not isinstance(step, str) else TextPart(step)])

    agent: Agent[None, str] = Agent(FunctionModel(answer), instructions="You are kind.")

    @agent.tool_plain
    def weather(city: str) -> ToolReturn[str]:
        return ToolReturn(f"sunny in {city}", metadata={"source": "test"})

    return agent, requests


MEMORY: dict[str, Any] = {"lastMessages": 20, "workingMemory": {"enabled": True}}


@pytest.mark.django_db(transaction=True)
def test_run_sync__remembers_and_updates_working_memory() -> None:
    memory = Memory(options=MEMORY)
    update_call = ToolCallPart("updateWorkingMemory", {"memory": "name: Ann"})
    agent, requests = make_scripted_agent(update_call, "Hi Ann", CALL, "Sunny")
    first = adapter.run_sync(
        agent, "I am Ann", thread_id="t", resource_id="ann", memory=memory, turn_id="1"
    )
    assert first.output == "Hi Ann"
    assert memory.get_working_memory("t") == "name: Ann"
    second = adapter.run_sync(agent, "Weather in Rome?", thread_id="t", memory=memory)
    assert second.output == "Sunny"
    texts = [part.content for message in requests[2][0] for part in message.parts]
    assert texts == ["I am Ann", "Hi Ann", "Weather in Rome?"]
    instructions = requests[2][0][-1].instructions
    assert "You are kind." in instructions and "name: Ann" in instructions
    stored_rows = [
        (row.role, row.text) for row in Message.objects.order_by("created_at", "sequence")
    ]
    assert stored_rows == [
        ("user", "I am Ann"),
        ("assistant", "Hi Ann"),
        ("user", "Weather in Rome?"),
        ("assistant", ""),
        ("assistant", "Sunny"),
    ]
    again = adapter.run_sync(agent, "I am Ann", thread_id="t", memory=memory, turn_id="1")
    assert (again.output, again.result, len(requests)) == ("Hi Ann", None, 4)


@pytest.mark.django_db(transaction=True)
def test_run_sync__keeps_prompt_if_run_fails() -> None:
    agent, _ = make_scripted_agent(RuntimeError("no model"), "Hi")
    for _ in range(2):
        try:
            adapter.run_sync(agent, "Hello", thread_id="t", turn_id="1")
        except RuntimeError:
            assert [row.text for row in Message.objects.all()] == ["Hello"]
    assert [row.text for row in Message.objects.order_by("sequence")] == ["Hello", "Hi"]


@pytest.mark.django_db(transaction=True)
def test_run_sync__agent_reads_observations_in_place_of_messages() -> None:
    thread = make_thread("ann", "t")
    save([a_message(thread, f"m{n}", text=f"Said {n}", at=n) for n in range(2)])
    make_record(thread, active_observations="* likes tea", last_observed_at=moment(0))
    memory = Memory(options={"observationalMemory": True})
    agent, requests = make_scripted_agent("Tea it is")
    adapter.run_sync(agent, "A drink?", thread_id="t", memory=memory)
    texts = [part.content for message in requests[0][0] for part in message.parts]
    assert texts[0].startswith("<system-reminder>") and texts[1:] == ["Said 1", "A drink?"]
    assert "* likes tea" in requests[0][0][-1].instructions
    assert [row.text for row in Message.objects.order_by("created_at", "sequence")] == [
        "Said 0",
        "Said 1",
        "A drink?",
        "Tea it is",
    ]


@pytest.mark.django_db(transaction=True)
def test_run__works_in_async_code() -> None:
    memory = Memory(options=MEMORY)
    agent, requests = make_scripted_agent(
        ToolCallPart("updateWorkingMemory", {"memory": "name: Bo"}), "Hi Bo"
    )

    async def turn() -> adapter.AgentTurn[str]:
        return await adapter.run(agent, "I am Bo", thread_id="t", resource_id="bo", memory=memory)

    assert async_to_sync(turn)().output == "Hi Bo"
    assert memory.get_working_memory("t") == "name: Bo"
    assert Thread.objects.get(pk="t").resource_id == "bo"
    names = {tool.name for tool in requests[0][1].function_tools}
    assert names == {"weather", "updateWorkingMemory"}


@pytest.mark.django_db(transaction=True)
def test_run_sync__read_only_has_no_tool_and_stores_nothing() -> None:
    agent, requests = make_scripted_agent("Hi")
    memory = Memory(options=MEMORY | {"readOnly": True})
    assert adapter.run_sync(agent, "Hello", thread_id="t", memory=memory).output == "Hi"
    assert {tool.name for tool in requests[0][1].function_tools} == {"weather"}
    assert not Message.objects.exists()


@pytest.mark.django_db
def test_to_messages__merges_repeated_calls() -> None:
    save_repeated_call(make_thread("ann", "t"))
    kinds = [part.part_kind for one in adapter.to_messages(list_stored()) for part in one.parts]
    assert kinds == ["tool-call", "tool-return", "text"]
