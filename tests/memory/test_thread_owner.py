"""Methods with `resource_id` refuse threads of other resources."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from mastra_memory.exceptions import AccessDenied, Conflict
from mastra_memory.memory import Memory
from mastra_memory.models import ObservationalRecord, Thread, WorkingMemory
from tests.support.factories import make_record, make_thread, save, some_messages

ARGUMENTS: dict[str, Any] = {
    "content": "stolen",
    "version": 1,
    "query": "Message",
    "messages": ["Hello"],
    "config": {"observation": {"messageTokens": 5}},
    "observation": "0.0",
    "text": "stolen",
    "message_id": "m0",
    "generation": 0,
}
"""Values of required arguments. A new method that needs another one is added here."""
OTHER_ANSWERS: dict[str, Any] = {
    "get_thread_by_id": None,  # documented: a thread of another resource counts as missing
    "create_thread": Conflict,  # `resource_id` is the owner of a new thread
    "save_thread": Conflict,
    "transfer_thread": "bob",  # `resource_id` is the new owner
    "update_thread_resource_id": "bob",
}


def list_methods() -> list[str]:
    """Return the synchronous methods with `resource_id` and the id of a thread."""
    return [
        name
        for name, method in inspect.getmembers(Memory, inspect.isfunction)
        if not name.startswith("_")
        and not inspect.iscoroutinefunction(method)
        and {"resource_id", "thread_id"} <= inspect.signature(method).parameters.keys()
    ]


@pytest.fixture(params=["thread", "resource"])
def memory(request: Any, db: None, memory_settings: Callable[..., None]) -> Memory:
    memory_settings()
    thread = make_thread("alice", "t-alice")
    make_thread("bob", "t-bob")
    save(some_messages(thread, 2))
    made = Memory(
        options={
            "workingMemory": {"enabled": True, "scope": request.param},
            "observationalMemory": {"scope": request.param, "retrieval": True},
            "semanticRecall": {"scope": request.param},
        }
    )
    for owner in ("alice", "bob"):
        made.update_working_memory(f"t-{owner}", f"about {owner}", resource_id=owner)
        about = made.get_thread(f"t-{owner}") if request.param == "thread" else None
        make_record(about, resource_id=owner, active_observations=f"* about {owner}")
    return made


def call(memory: Memory, name: str, **given: Any) -> Any:
    method = getattr(memory, name)
    required = {
        parameter.name: ARGUMENTS[parameter.name]
        for parameter in inspect.signature(method).parameters.values()
        if parameter.default is parameter.empty and parameter.name not in given
    }
    result = method(**required, **given)
    return result.handler({"memory": "stolen"}) if name == "working_memory_tool" else result


@pytest.mark.parametrize("name", list_methods())
def test_memory__refuses_thread_of_other_resource(memory: Memory, name: str) -> None:
    before = list(WorkingMemory.objects.order_by("pk").values())
    records = list(ObservationalRecord.objects.order_by("pk").values())
    answer: Any = OTHER_ANSWERS.get(name, AccessDenied)
    if isinstance(answer, type) and issubclass(answer, Exception):
        with pytest.raises(answer):
            call(memory, name, thread_id="t-alice", resource_id="bob")
    else:
        result = call(memory, name, thread_id="t-alice", resource_id="bob")
        assert getattr(result, "resource_id", result) == answer
        return
    assert list(WorkingMemory.objects.order_by("pk").values()) == before
    assert list(ObservationalRecord.objects.order_by("pk").values()) == records
    assert Thread.objects.get(pk="t-alice").resource_id == "alice"


def test_memory__refuses_thread_of_other_resource_without_record(memory: Memory) -> None:
    ObservationalRecord.objects.all().delete()
    for name in (
        "get_observational_record",
        "get_observations",
        "list_observational_history",
        "list_observational_generations",
        "wait_for_buffering",
    ):
        with pytest.raises(AccessDenied):
            call(memory, name, thread_id="t-alice", resource_id="bob")
        assert not getattr(call(memory, name, thread_id="t-alice", resource_id="alice"), "pk", None)


def test_working_memory_tool__refuses_thread_of_other_resource(memory: Memory) -> None:
    tool = memory.working_memory_tool("new", resource_id="bob")
    assert tool is not None
    make_thread("alice", "new")
    with pytest.raises(AccessDenied):
        tool.handler({"memory": "stolen"})


def test_get_working_memory__resource_needs_no_thread(memory: Memory) -> None:
    by_resource = Memory(options={"workingMemory": {"enabled": True}})
    by_resource.update_working_memory("", "about carl", resource_id="carl")
    assert by_resource.get_working_memory("missing", resource_id="carl") == "about carl"
    assert memory.get_working_memory("t-alice") == "about alice"
