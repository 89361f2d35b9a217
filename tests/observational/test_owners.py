"""No method of `Memory` shows or changes the observations of another resource's thread."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from mastra_memory.exceptions import AccessDenied
from mastra_memory.memory import Memory
from mastra_memory.models import ObservationalRecord
from mastra_memory.observational import generations
from mastra_memory.observational.keys import RecordKey
from mastra_memory.types import StoredThread
from tests.support.factories import a_message, make_thread

pytestmark = pytest.mark.django_db
ARGUMENTS: dict[str, dict[str, Any]] = {
    "delete_observation": {"observation": "0.1"},
    "edit_observation": {"observation": "0.1", "text": "changed"},
    "list_messages_of_observation": {"observation": "0.1"},
    "pin_observation": {"observation": "0.1"},
    "restore_observations": {"generation": 0},
    "trace_message": {"message_id": "m"},
    "update_observational_memory_config": {"config": {"observation": {"messageTokens": 999}}},
    "list_observational_generations": {"page": 7},
    "wait_for_buffering": {"timeout": 0},
}
"""What a method needs besides the thread and the resource."""
MODULES = {
    f"mastra_memory.memory.{name}" for name in ("observational", "corrections", "recall_tool")
}


def list_methods() -> list[str]:
    """Return all methods that take a thread and a resource and are about observations."""
    found = []
    for name, method in inspect.getmembers(Memory, inspect.isfunction):
        parameters = inspect.signature(method).parameters
        is_hidden = name.startswith("_") or inspect.iscoroutinefunction(method)
        takes_both = {"thread_id", "resource_id"} <= set(parameters)
        if takes_both and method.__module__ in MODULES and not is_hidden:
            found.append(name)
    return found


METHODS = list_methods()


@pytest.fixture
def thread(memory_settings: Callable[..., None]) -> StoredThread:
    """Return a thread of alice that has two generations of observations."""
    options = {"observationalMemory": {"retrieval": True}}
    memory_settings(OPTIONS=options)
    thread = make_thread("alice", "t")
    Memory().save_messages([a_message(thread, "m")])
    first = generations.get_or_create_live(RecordKey.about_thread("t", "alice"))
    generations.open_generation(
        None, first, "Date: Jan 1, 2024\n* 🔴 (10:00) A secret", origin="edit", read_log=""
    )
    return thread


def snapshot() -> list[Any]:
    return list(ObservationalRecord.objects.order_by("pk").values())


def test_list_methods__finds_them() -> None:
    assert {"observe", "reflect", "get_observations", "edit_observation"} <= set(METHODS)
    assert len(METHODS) >= 15


@pytest.mark.parametrize("name", METHODS)
def test_method__refuses_the_thread_of_another_resource(thread: StoredThread, name: str) -> None:
    method = getattr(Memory(), name)
    arguments = ARGUMENTS.get(name, {})
    before = snapshot()
    with pytest.raises(AccessDenied) as raised:
        method(thread_id=thread.id, resource_id="bob", **arguments)
    assert "alice" not in str(raised.value)
    assert snapshot() == before


@pytest.mark.parametrize(
    "name", [name for name in METHODS if name.startswith(("get_", "list_observational", "wait_"))]
)
def test_method__answers_the_owner(thread: StoredThread, name: str) -> None:
    method = getattr(Memory(), name)
    assert method(thread_id=thread.id, resource_id="alice", **ARGUMENTS.get(name, {})) is not None
