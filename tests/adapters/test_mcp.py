"""The memory over MCP: the same things, under the same rules."""

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

from mastra_memory.adapters.mcp import Caller, make_server
from mastra_memory.exceptions import InvalidInput
from mastra_memory.memory import Memory
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


def use(caller: Caller, tool: str, **arguments: Any) -> Any:
    """What a tool gives; the text of a refusal."""

    async def call() -> Any:
        async with Client(make_server(caller)) as client:
            answer = await client.call_tool(tool, arguments)
            if answer.is_error:
                return getattr(answer.content[0], "text", "")
            return (answer.structured_content or {}).get("result", answer.structured_content)

    return asyncio.run(call())


def talk(thread_id: str, resource_id: str, *texts: str) -> None:
    thread = make_thread(resource_id, thread_id, title=f"About {thread_id}")
    save([a_message(thread, f"{thread_id}{n}", text=text, at=n) for n, text in enumerate(texts)])


def test_tools__are_listed_with_a_description() -> None:
    async def listed() -> Any:
        async with Client(make_server(ANN)) as client:
            return (await client.list_tools()).tools

    tools = asyncio.run(listed())
    assert [tool.name for tool in tools] == [
        "recall",
        "list_conversations",
        "read_conversation",
        "read_working_memory",
        "update_working_memory",
    ]
    assert all(tool.description for tool in tools)


def test_recall__finds_what_was_said() -> None:
    talk("t", "ann", "My cat is called Mimi", "The weather is fine")
    (hit,) = use(ANN, "recall", query="Mimi")
    assert (hit["thread_id"], hit["message_id"], hit["role"]) == ("t", "t0", "user")
    assert (hit["thread_title"], hit["text"]) == ("About t", "My cat is called Mimi")
    assert use(ANN, "recall", query="nothing like it") == []


def test_recall__by_meaning_where_that_is_on(memory_settings: Callable[..., None]) -> None:
    memory_settings(OPTIONS=OPTIONS | {"semanticRecall": True})
    thread = make_thread("ann", "t")
    Memory().save_messages([a_message(thread, "t0", text="I adopted a small kitten")])
    (hit,) = use(ANN, "recall", query="small kitten adoption", thread_id="t")
    assert hit["message_id"] == "t0"


def test_read_conversation__the_last_messages_oldest_first() -> None:
    talk("t", "ann", "One", "Two", "Three")
    told = use(ANN, "read_conversation", thread_id="t", last=2)
    assert [one["text"] for one in told] == ["Two", "Three"]


def test_list_conversations__the_latest_first() -> None:
    for thread_id, resource_id in (("a", "ann"), ("b", "ann"), ("c", "bob")):
        talk(thread_id, resource_id, "Hello")
    save([a_message(Memory().get_thread("a"), text="again")])
    assert [one["thread_id"] for one in use(ANN, "list_conversations")] == ["a", "b"]


def test_working_memory__is_read_and_written() -> None:
    assert use(ANN, "read_working_memory") is None
    assert use(ANN, "update_working_memory", memory_text="name: Ann")["success"] is True
    assert use(ANN, "read_working_memory") == "name: Ann"
    assert WorkingMemoryRevision.objects.get().source == "agent"
    make_thread("ann", "t")
    use(ANN, "update_working_memory", memory_text="name: Bea", thread_id="t")
    assert Memory().get_working_memory("t") == "name: Bea"


def test_working_memory__by_schema_is_merged(memory_settings: Callable[..., None]) -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    memory_settings(OPTIONS={"workingMemory": {"enabled": True, "schema": schema}})
    use(ANN, "update_working_memory", memory_text='{"name": "Ann"}')
    use(ANN, "update_working_memory", memory_text='{"city": "Rome"}')
    assert json.loads(use(ANN, "read_working_memory")) == {"name": "Ann", "city": "Rome"}
    assert "workingMemory.name" in use(ANN, "update_working_memory", memory_text='{"name": 5}')


def test_working_memory__of_one_conversation(memory_settings: Callable[..., None]) -> None:
    memory_settings(OPTIONS={"workingMemory": {"enabled": True, "scope": "thread"}})
    talk("t", "ann", "Hello")
    assert "thread_id" in use(ANN, "update_working_memory", memory_text="x")
    use(ANN, "update_working_memory", memory_text="about t", thread_id="t")
    assert use(ANN, "read_working_memory", thread_id="t") == "about t"


@pytest.mark.parametrize("more", [{"readOnly": True}, {"workingMemory": {"enabled": False}}])
def test_working_memory__may_be_forbidden(
    more: dict[str, Any], memory_settings: Callable[..., None]
) -> None:
    memory_settings(OPTIONS=OPTIONS | more)
    assert "may not be written" in use(ANN, "update_working_memory", memory_text="x")
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
def test_tools__nothing_of_another_resource_is_read_or_changed(
    tool: str, arguments: dict[str, Any]
) -> None:
    talk("b", "bob", "SECRET")
    Memory().update_working_memory("b", "SECRET")
    assert "SECRET" not in str(use(ANN, tool, **arguments))
    assert Memory().get_working_memory("b") == "SECRET"


def test_tools__an_unbound_server_wants_a_resource_named() -> None:
    talk("b", "bob", "SECRET")
    assert "resource_id" in use(ALL, "recall", query="SECRET")
    assert len(use(ALL, "recall", query="SECRET", resource_id="bob")) == 1
    assert use(ALL, "read_conversation", thread_id="b", resource_id="ann").count("Access denied")


def test_tools__a_refusal_says_why() -> None:
    assert use(ANN, "read_conversation", thread_id="nobody").endswith("Thread not found")
    assert use(ANN, "recall", query="").endswith('"searchQuery" is required')


def test_caller__is_who_the_http_api_would_see() -> None:
    ann, boss = make_user("ann"), make_user("boss", unscoped=True)
    assert Caller.of_user(ann) == Caller(str(ann.pk))
    assert Caller.of_user(boss) == Caller(None)


def nobody(_: Any) -> None:
    """A host's rule that gives nobody a resource."""


def test_caller__without_a_resource_is_nobody(memory_settings: Callable[..., None]) -> None:
    memory_settings(RESOURCE_FOR_REQUEST="tests.adapters.test_mcp.nobody")
    with pytest.raises(InvalidInput):
        Caller.of_user(make_user("ann"))


@pytest.mark.parametrize("words", [["--user", "nobody"], ["--resource", "ann", "--agent", "x"]])
def test_command__what_it_does_not_know_is_told(
    words: list[str], memory_settings: Callable[..., None]
) -> None:
    memory_settings(AGENTS={"support": {}})
    with pytest.raises(CommandError):
        call_command("mastra_mcp", *words)


@pytest.mark.slow
def test_command__speaks_over_standard_input_and_output(tmp_path: Path) -> None:
    prepared = manage(tmp_path, "migrate", "-v", "0")
    assert prepared.returncode == 0, prepared.stderr
    variables = environment(tmp_path) | {"PYTHONWARNINGS": "default"}
    words = [str(ROOT / "manage.py"), "mastra_mcp", "--resource", "ann"]
    server = StdioServerParameters(command=sys.executable, args=words, env=variables, cwd=ROOT)

    async def talk_to_it() -> Any:
        async with Client(server) as client:
            await client.call_tool("update_working_memory", {"memory_text": "name: Ann"})
            answer = await client.call_tool("read_working_memory", {})
            return (answer.structured_content or {})["result"]

    assert asyncio.run(talk_to_it()) == "name: Ann"
