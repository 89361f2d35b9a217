"""The MCP server: its tools, and the rights of its callers."""

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core.management import CommandError, call_command
from django.db import connection
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from mastra_memory.adapters.mcp import make_server
from mastra_memory.exceptions import AccessDenied
from mastra_memory.memory import Memory
from mastra_memory.memory.callers import Caller, get_caller_of_user
from mastra_memory.models import WorkingMemoryRevision
from tests.project.commands import ROOT, environment, manage
from tests.support.factories import a_message, make_thread, make_user, save

pytestmark = pytest.mark.django_db(transaction=True)

OPTIONS = {"workingMemory": {"enabled": True}}
ANN, ALL = Caller("ann"), Caller(None)


@pytest.fixture(autouse=True)
def agents(memory_settings: Callable[..., None]) -> Iterator[None]:
    memory_settings(OPTIONS=OPTIONS)
    yield
    asyncio.run(sync_to_async(lambda: connection.close())())


def call_tool(caller: Caller, tool: str, **arguments: Any) -> Any:
    """Call a tool, and return its result or the text of its error."""

    async def call() -> Any:
        async with Client(make_server(caller)) as client:
            answer = await client.call_tool(tool, arguments)
            if answer.is_error:
                return getattr(answer.content[0], "text", "")
            return (answer.structured_content or {}).get("result", answer.structured_content)

    return asyncio.run(call())


def save_conversation(thread_id: str, resource_id: str, *texts: str) -> None:
    thread = make_thread(resource_id, thread_id, title=f"About {thread_id}")
    save([a_message(thread, f"{thread_id}{n}", text=text, at=n) for n, text in enumerate(texts)])


def test_tools__are_listed_with_a_description() -> None:
    async def list_tools() -> Any:
        async with Client(make_server(ANN)) as client:
            return (await client.list_tools()).tools

    tools = asyncio.run(list_tools())
    assert [tool.name for tool in tools] == [
        "recall",
        "list_conversations",
        "read_conversation",
        "read_working_memory",
        "update_working_memory",
    ]
    assert all(tool.description for tool in tools)


def test_recall__finds_words_in_messages() -> None:
    save_conversation("t", "ann", "My cat is called Mimi", "The weather is fine")
    (hit,) = call_tool(ANN, "recall", query="Mimi")
    assert (hit["thread_id"], hit["message_id"], hit["role"]) == ("t", "t0", "user")
    assert (hit["thread_title"], hit["text"]) == ("About t", "My cat is called Mimi")
    assert call_tool(ANN, "recall", query="nothing like it") == []


def test_recall__uses_semantic_recall_if_enabled(memory_settings: Callable[..., None]) -> None:
    memory_settings(OPTIONS=OPTIONS | {"semanticRecall": True})
    thread = make_thread("ann", "t")
    Memory().save_messages([a_message(thread, "t0", text="I adopted a small kitten")])
    (hit,) = call_tool(ANN, "recall", query="small kitten adoption", thread_id="t")
    assert hit["message_id"] == "t0"


def test_read_conversation__returns_last_messages_oldest_first() -> None:
    save_conversation("t", "ann", "One", "Two", "Three")
    messages = call_tool(ANN, "read_conversation", thread_id="t", last=2)
    assert [message["text"] for message in messages] == ["Two", "Three"]


def test_list_conversations__sorts_by_latest_activity() -> None:
    for thread_id, resource_id in (("a", "ann"), ("b", "ann"), ("c", "bob")):
        save_conversation(thread_id, resource_id, "Hello")
    save([a_message(Memory().get_thread("a"), text="again")])
    assert [item["thread_id"] for item in call_tool(ANN, "list_conversations")] == ["a", "b"]


def test_working_memory__is_read_and_written() -> None:
    assert call_tool(ANN, "read_working_memory") is None
    assert call_tool(ANN, "update_working_memory", memory_text="name: Ann")["success"] is True
    assert call_tool(ANN, "read_working_memory") == "name: Ann"
    assert WorkingMemoryRevision.objects.get().source == "agent"
    make_thread("ann", "t")
    call_tool(ANN, "update_working_memory", memory_text="name: Bea", thread_id="t")
    assert Memory().get_working_memory("t") == "name: Bea"


def test_update_working_memory__merges_json_with_schema(
    memory_settings: Callable[..., None],
) -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    memory_settings(OPTIONS={"workingMemory": {"enabled": True, "schema": schema}})
    call_tool(ANN, "update_working_memory", memory_text='{"name": "Ann"}')
    call_tool(ANN, "update_working_memory", memory_text='{"city": "Rome"}')
    assert json.loads(call_tool(ANN, "read_working_memory")) == {"name": "Ann", "city": "Rome"}
    assert "workingMemory.name" in call_tool(
        ANN, "update_working_memory", memory_text='{"name": 5}'
    )


def test_working_memory__of_one_conversation(memory_settings: Callable[..., None]) -> None:
    memory_settings(OPTIONS={"workingMemory": {"enabled": True, "scope": "thread"}})
    save_conversation("t", "ann", "Hello")
    assert "thread_id" in call_tool(ANN, "update_working_memory", memory_text="x")
    call_tool(ANN, "update_working_memory", memory_text="about t", thread_id="t")
    assert call_tool(ANN, "read_working_memory", thread_id="t") == "about t"


@pytest.mark.parametrize("more", [{"readOnly": True}, {"workingMemory": {"enabled": False}}])
def test_update_working_memory__refused_if_off_or_read_only(
    more: dict[str, Any], memory_settings: Callable[..., None]
) -> None:
    memory_settings(OPTIONS=OPTIONS | more)
    assert "cannot update working memory" in call_tool(
        ANN, "update_working_memory", memory_text="x"
    )
    assert not WorkingMemoryRevision.objects.exists()


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("recall", {"query": "SECRET", "thread_id": "b"}),
        ("recall", {"query": "SECRET", "resource_id": "bob"}),
        ("recall", {"query": "SECRET"}),
        ("list_conversations", {"resource_id": "bob"}),
        ("read_conversation", {"thread_id": "b"}),
        ("read_conversation", {"thread_id": "b", "resource_id": "bob"}),
        ("read_working_memory", {"thread_id": "b"}),
        ("read_working_memory", {"resource_id": "bob"}),
        ("update_working_memory", {"memory_text": "mine", "thread_id": "b"}),
        ("update_working_memory", {"memory_text": "mine", "resource_id": "bob"}),
    ],
)
def test_tools__cannot_reach_other_resources(tool: str, arguments: dict[str, Any]) -> None:
    save_conversation("b", "bob", "SECRET")
    Memory().update_working_memory("b", "SECRET")
    assert "SECRET" not in str(call_tool(ANN, tool, **arguments))
    assert Memory().get_working_memory("b") == "SECRET"


def test_tools__unscoped_server_requires_resource_id() -> None:
    save_conversation("b", "bob", "SECRET")
    assert "resource_id" in call_tool(ALL, "recall", query="SECRET")
    assert len(call_tool(ALL, "recall", query="SECRET", resource_id="bob")) == 1
    assert call_tool(ALL, "read_conversation", thread_id="b", resource_id="ann").count(
        "Access denied"
    )


def test_tools__return_error_messages() -> None:
    assert call_tool(ANN, "read_conversation", thread_id="missing").endswith("Thread not found")
    assert call_tool(ANN, "recall", query="").endswith('"searchQuery" is required')


def test_get_caller_of_user__has_the_rights_of_the_http_api() -> None:
    ann, boss = make_user("ann"), make_user("boss", unscoped=True)
    assert get_caller_of_user(ann) == Caller(str(ann.pk))
    assert get_caller_of_user(boss) == Caller(None)


def no_resource(_: Any) -> None:
    """A host's function that returns no resource for any user."""


def test_get_caller_of_user__refuses_user_without_resource(
    memory_settings: Callable[..., None],
) -> None:
    memory_settings(RESOURCE_FOR_REQUEST="tests.adapters.test_mcp.no_resource")
    with pytest.raises(AccessDenied):
        get_caller_of_user(make_user("ann"))


@pytest.mark.parametrize("words", [["--user", "missing"], ["--resource", "ann", "--agent", "x"]])
def test_command__rejects_unknown_user_and_agent(
    words: list[str], memory_settings: Callable[..., None]
) -> None:
    memory_settings(AGENTS={"support": {}})
    with pytest.raises(CommandError):
        call_command("mastra_mcp", *words)


@pytest.mark.slow
def test_command__serves_over_stdio(tmp_path: Path) -> None:
    prepared = manage(tmp_path, "migrate", "-v", "0")
    assert prepared.returncode == 0, prepared.stderr
    variables = environment(tmp_path) | {"PYTHONWARNINGS": "default"}
    words = [str(ROOT / "manage.py"), "mastra_mcp", "--resource", "ann"]
    server = StdioServerParameters(command=sys.executable, args=words, env=variables, cwd=ROOT)

    async def use_server() -> Any:
        async with Client(server) as client:
            await client.call_tool("update_working_memory", {"memory_text": "name: Ann"})
            answer = await client.call_tool("read_working_memory", {})
            return (answer.structured_content or {})["result"]

    assert asyncio.run(use_server()) == "name: Ann"
