"""`Memory`: what its methods decide themselves, and the async twins."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections

from mastra_memory import working_memory
from mastra_memory.exceptions import (
    AccessDenied,
    AgentNotFound,
    FeatureDisabled,
    InvalidInput,
    MemoryNotConfigured,
    ThreadNotFound,
)
from mastra_memory.memory import Memory
from mastra_memory.models import Message, WorkingMemory
from tests.support.factories import (
    a_message,
    make_record,
    make_thread,
    save,
    some_messages,
    text_content,
)

pytestmark = pytest.mark.django_db
BY_RESOURCE = {"workingMemory": {"enabled": True}}
BY_THREAD = {"workingMemory": {"enabled": True, "scope": "thread"}}
OFF = {"workingMemory": {"enabled": False}}


def test_memory__requires_configured_agent(memory_settings: Callable[..., None]) -> None:
    memory_settings(AGENTS={"known": {"lastMessages": 3}, "none": None})
    assert Memory("known").options.last_messages == 3
    assert Memory("known", options={"lastMessages": 5}).options.last_messages == 5
    assert Memory().options.last_messages == 10
    with pytest.raises(AgentNotFound):
        Memory("unknown")
    with pytest.raises(MemoryNotConfigured):
        Memory("none")


def test_memory__life_of_a_thread() -> None:
    memory = Memory(options={"lastMessages": 2})
    thread = memory.create_thread("r", thread_id="t", title="Trip", metadata={"a": 1})
    saved = memory.save_messages(some_messages(thread, 5))
    assert [message.id for message in saved.messages] == [f"m{n}" for n in range(5)]
    assert [m.id for m in memory.recall("t").messages] == ["m3", "m4"]
    assert [m.id for m in memory.recall("t", options={"lastMessages": 1}).messages] == ["m4"]
    assert memory.list_messages("t", per_page=2).total == 5
    assert memory.update_thread("t", metadata={"b": 2}).metadata == {"a": 1, "b": 2}
    assert memory.update_thread("t", metadata={}, replace_metadata=True).metadata == {}
    memory.update_messages([{"id": "m0", "content": text_content("changed")}])
    assert memory.get_messages(["m0"])[0].content == text_content("changed")
    assert memory.delete_messages(["m0", {"id": "m1"}]) == 2
    assert memory.transfer_thread("t", "s").resource_id == "s"
    assert memory.update_thread_resource_id("t", "r").resource_id == "r"
    assert memory.list_threads(resource_id="r").total == 1
    assert memory.delete_thread("t") is True and memory.delete_thread("t") is False


def test_get_thread_by_id__returns_none_if_get_thread_raises() -> None:
    thread, memory = make_thread("r"), Memory()
    assert memory.get_thread_by_id(thread.id, resource_id="r") == thread
    assert memory.get_thread_by_id(thread.id, resource_id="s") is None
    assert memory.get_thread_by_id("missing") is None
    with pytest.raises(AccessDenied):
        memory.get_thread(thread.id, resource_id="s")
    with pytest.raises(ThreadNotFound):
        memory.get_thread("missing")


def test_list_messages__reads_several_threads() -> None:
    memory = Memory()
    for at, name in enumerate("abc"):
        thread = make_thread("s" if name == "c" else "r", name)
        save([a_message(thread, f"{name}{n}", at=n * 3 + at) for n in range(2)])
    page = memory.list_messages(thread_ids=["a", "b", "c", "missing"], per_page=4)
    assert [message.id for message in page.messages] == ["a0", "b0", "c0", "a1"]
    assert (page.total, page.has_more) == (6, True)
    newest = memory.list_messages(thread_ids=["a", "b"], per_page=1, newest_page=True)
    assert [message.id for message in newest.messages] == ["b1"]
    owned = memory.list_messages(thread_ids=["a", "c"], resource_id="r", direction="DESC")
    assert [message.id for message in owned.messages] == ["a1", "a0"]
    assert memory.list_messages(thread_ids=[]).total == 0


def test_persist_messages__keeps_working_memory_tags() -> None:
    thread, tagged = make_thread(), "<working_memory>x</working_memory>"
    Memory().persist_messages([a_message(thread, "m", text=tagged)])
    assert Message.objects.get().text == tagged


def test_save_messages__returns_only_stored_messages() -> None:
    thread = make_thread()
    batch = [a_message(thread, role="system"), a_message(thread, "kept")]
    saved = Memory().save_messages(batch)
    assert [message.id for message in saved.messages] == ["kept"] and saved.usage_tokens == 0


@pytest.mark.parametrize("options", [BY_RESOURCE, BY_THREAD, OFF])
def test_create_thread__stores_working_memory_of_metadata(options: dict[str, Any]) -> None:
    memory = Memory(options=options)
    memory.create_thread("r", thread_id="t", metadata={"workingMemory": "given", "k": 1})
    assert working_memory.find_for_thread("t") == "given"
    shared = "given" if options is BY_RESOURCE else None
    assert working_memory.find_for_resource("r") == shared


def test_create_thread__existing_thread_stays_unchanged() -> None:
    memory = Memory(options=BY_RESOURCE)
    memory.create_thread("r", thread_id="t", metadata={"workingMemory": "first"})
    memory.create_thread("r", thread_id="t", metadata={"workingMemory": "second"})
    assert set(WorkingMemory.objects.values_list("content", flat=True)) == {"first"}


def test_clone_thread__clone_knows_its_source() -> None:
    memory = Memory(options=BY_THREAD)
    source = memory.create_thread("r", title="Trip", metadata={"workingMemory": "x"})
    save(some_messages(source, 3))
    clone = memory.clone_thread(source.id)
    copy = memory.copy_thread(clone.thread.id, resource_id="s")
    assert len(clone.messages) == 3 and not copy.messages and len(copy.message_id_map) == 3
    assert memory.get_working_memory(copy.thread.id) == "x"
    assert memory.is_clone(clone.thread) and not memory.is_clone(source)
    assert not memory.is_clone(None) and memory.get_clone_metadata(None) is None
    origin = memory.get_clone_metadata(copy.thread)
    assert origin is not None and origin["sourceThreadId"] == clone.thread.id
    found = memory.get_source_thread(copy.thread.id)
    assert found is not None and found.id == clone.thread.id
    assert [t.id for t in memory.list_clones(source.id)] == [clone.thread.id]
    assert [t.id for t in memory.get_clone_history(copy.thread.id)] == [
        source.id,
        clone.thread.id,
        copy.thread.id,
    ]


def test_working_memory__disabled_or_without_owner() -> None:
    thread, off = make_thread("r"), Memory(options=OFF)
    assert off.get_working_memory(thread.id) is None
    assert off.get_working_memory_template() is None
    with pytest.raises(FeatureDisabled):
        off.update_working_memory(thread.id, "x")
    with pytest.raises(InvalidInput):
        Memory(options=BY_RESOURCE).get_working_memory("missing")
    with pytest.raises(ThreadNotFound):
        Memory(options=BY_THREAD).update_working_memory("missing", "x")
    assert Memory(options=BY_THREAD).get_working_memory("no\x00body") is None


def test_observational_memory__requires_the_feature() -> None:
    thread = make_thread("r")
    record = make_record(thread)
    on, off = Memory(options={"observationalMemory": True}), Memory(options={})
    about: dict[str, Any] = {"thread_id": thread.id, "resource_id": "r"}
    assert on.get_observational_record(**about) == record
    assert on.list_observational_history(**about) == [record]
    assert on.wait_for_buffering(**about) == record
    config = on.update_observational_memory_config({"a": 1}, **about).config
    assert config == {"_overrides": {"a": 1}}
    for name in ("get_observational_record", "list_observational_history", "wait_for_buffering"):
        with pytest.raises(FeatureDisabled):
            getattr(off, name)(**about)


@pytest.mark.django_db(transaction=True)
def test_async__twins_do_the_same() -> None:
    async def use_twins() -> list[str]:
        memory = Memory(options={"lastMessages": 2})
        thread = await memory.acreate_thread("r")
        await memory.asave_messages(some_messages(thread, 3))
        clone = await memory.aclone_thread(thread.id)
        assert len(clone.messages) == 3
        assert await memory.adelete_messages(["m0"]) == 1
        with pytest.raises(ThreadNotFound):
            await memory.aget_thread("missing")
        recalled = await memory.arecall(thread.id)
        await sync_to_async(connections.close_all)()
        return [message.id for message in recalled.messages]

    assert asyncio.run(use_twins()) == ["m1", "m2"]


def test_async__every_method_with_queries_has_a_twin() -> None:
    plain = {
        "update_thread_resource_id",
        "is_clone",
        "get_clone_metadata",
        "get_working_memory_template",
    }
    methods = {name for name, method in inspect.getmembers(Memory, inspect.isfunction)}
    methods = {name for name in methods if not name.startswith(("_", "a"))} - plain
    twins = {name[1:] for name in dir(Memory) if name.startswith("a") and name[1:] in methods}
    assert methods - twins <= {"working_memory_tool", "recall_tool", "start_export"}
    assert {"save_messages", "recall", "search", "delete_thread"} <= twins
