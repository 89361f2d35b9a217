"""All adapters use observational memory without further code."""

import asyncio
from collections.abc import Callable

import pytest
from asgiref.sync import async_to_sync
from langchain_core.messages import SystemMessage
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from mastra_memory.adapters import openai_agents, pydantic_ai
from mastra_memory.adapters.langchain import MastraChatMessageHistory
from mastra_memory.adapters.mcp import MemoryTools, make_server
from mastra_memory.adapters.openai_agents import MastraSession
from mastra_memory.memory import Memory
from mastra_memory.memory.callers import Caller
from tests.observational.engine import observer, say
from tests.support.factories import make_thread

pytestmark = pytest.mark.django_db(transaction=True)
NOTES = "<observations>\nDate: Jan 1, 2024\n* 🔴 (10:00) Lives in Rome\n</observations>"


@pytest.fixture
def memory(memory_settings: Callable[..., None]) -> Memory:
    """A memory with a thread of which one message is observed and one is not."""
    memory_settings(OPTIONS={"observationalMemory": {"retrieval": True}})
    made = Memory()
    thread = make_thread("alice", "t")
    say(made, thread, 10, message_id="m1", at=1)
    with observer(NOTES):
        made.observe(thread_id="t")
    say(made, thread, 10, message_id="m2", at=2)
    return made


def test_pydantic_ai__reads_observations_and_only_raw_messages(memory: Memory) -> None:
    seen: list[tuple[list[ModelMessage], AgentInfo]] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append((messages, info))
        return ModelResponse([TextPart("Hello")])

    agent = Agent(FunctionModel(answer))
    pydantic_ai.run_sync(agent, "Where do I live?", thread_id="t", memory=memory)
    messages, info = seen[0]
    assert "Lives in Rome" in str(info.instructions)
    assert [tool.name for tool in info.function_tools] == ["recall"]
    texts = [part.content for message in messages for part in message.parts
             if part.part_kind == "user-prompt"]  # fmt: skip
    # The first one explains that earlier messages are not shown.
    assert len(texts) == 3 and texts[-1] == "Where do I live?"


def test_openai_agents__session_leaves_observed_items_out(memory: Memory) -> None:
    session = MastraSession("t", memory=memory)
    items = async_to_sync(session.get_items)()
    assert len(items) == 1
    assert "Lives in Rome" in async_to_sync(session.system_message)()
    assert len(async_to_sync(session.get_items)(5)) == 1
    tool = openai_agents.recall_tool(memory, thread_id="t")
    assert tool is not None and tool.name == "recall"
    async_to_sync(session.clear_session)()
    assert memory.list_messages("t").total == 0


def test_langchain__history_begins_with_the_observations(memory: Memory) -> None:
    history = MastraChatMessageHistory("t", memory=memory)
    first, *rest = history.messages
    assert isinstance(first, SystemMessage) and "Lives in Rome" in str(first.content)
    assert len(rest) == 1
    history.add_messages(history.messages)
    assert memory.list_messages("t").total == 3
    history.clear()
    assert memory.list_messages("t").total == 0


def test_mcp__reads_observations(memory: Memory) -> None:
    tools = MemoryTools(Caller("alice"), memory)
    (note,) = tools.read_observations("t")
    assert note["text"] == "* 🔴 (10:00) Lives in Rome" and note["message_ids"] == ["m1"]
    names = {tool.name for tool in asyncio.run(make_server(Caller("alice")).list_tools())}
    assert "read_observations" in names
