"""Working memory that the Observer keeps."""

from collections.abc import Callable
from typing import Any

import pytest

from mastra_memory.memory import Memory
from mastra_memory.observational import managed_memory, observer
from mastra_memory.observational.config import ObservationSettings
from mastra_memory.observational.managed_memory import ManagedMemory
from mastra_memory.observational.observer import ThreadMessages
from mastra_memory.options import MemoryOptions
from mastra_memory.testing import FakeLLM
from tests.support.factories import a_message, make_thread, save

pytestmark = pytest.mark.django_db
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


@pytest.fixture(autouse=True)
def default_settings(memory_settings: Callable[..., None]) -> None:
    memory_settings()


def read_memory(**options: Any) -> ManagedMemory:
    parsed = MemoryOptions.parse({"workingMemory": {"enabled": True, **options}})
    memory = managed_memory.read_memory(parsed.working_memory, thread_id="t", resource_id="ann")
    assert memory is not None
    return memory


def observe(memory: ManagedMemory, *answers: Any) -> tuple[Any, Any]:
    messages = save([a_message(make_thread("ann", "t"), text="My name is Ann", at=0)])
    with FakeLLM(*answers) as model:
        found = observer.observe_messages(
            messages,
            settings=ObservationSettings(),
            working_memory=memory,
            thread_id="t",
            resource_id="ann",
        )
    return found, model.requests


def test_observe_messages__asks_for_the_whole_new_text() -> None:
    found, [request] = observe(
        read_memory(template="# Name: "), "* a\n<working-memory>\n# Name: Ann\n</working-memory>"
    )
    assert (found.text, found.working_memory, found.extracted) == ("* a", "# Name: Ann", {})
    assert "<working_memory_template>\n# Name:\n</working_memory_template>" in request.instructions
    assert (
        "<working_memory_data>\nNothing is stored yet.\n</working_memory_data>"
        in request.instructions
    )


def test_observe_messages__a_schema_takes_a_second_call() -> None:
    found, requests = observe(read_memory(schema=SCHEMA), "* a", {"name": "Ann"})
    assert found.working_memory == '{"name":"Ann"}' and requests[1].output == SCHEMA


@pytest.mark.parametrize("answer", ["* a", "* a\n<working-memory> </working-memory>"])
def test_observe_messages__empty_answer_changes_nothing(answer: str) -> None:
    assert observe(read_memory(), answer)[0].working_memory is None


def test_save_memory__replaces_the_text_and_adds_a_revision() -> None:
    make_thread("ann", "t")
    assert managed_memory.save_memory(read_memory(), "# Name: Ann") is not None
    memory = Memory(options={"workingMemory": {"enabled": True}})
    assert memory.get_working_memory("t") == "# Name: Ann"
    [revision] = memory.list_working_memory_revisions("t").revisions
    assert revision.source == "observer"


@pytest.mark.parametrize("text", ["", " ", "# Name: Ann", "# Name:"])
def test_save_memory__empty_or_unchanged_text_wipes_nothing(text: str) -> None:
    make_thread("ann", "t")
    managed_memory.save_memory(read_memory(template="# Name:"), "# Name: Ann")
    assert managed_memory.save_memory(read_memory(template="# Name:"), text) is None
    memory = Memory(options={"workingMemory": {"enabled": True}})
    assert memory.get_working_memory("t") == "# Name: Ann"


def test_save_memory__value_that_does_not_match_the_schema_is_refused() -> None:
    make_thread("ann", "t")
    assert managed_memory.save_memory(read_memory(schema=SCHEMA), '{"name": 5}') is None


def test_observe_threads__each_thread_continues_from_the_new_text() -> None:
    threads = [
        ThreadMessages(
            thread_id=thread_id, messages=save([a_message(make_thread("ann", thread_id), at=0)])
        )
        for thread_id in ("t1", "t2")
    ]
    answers = [f"* a\n<working-memory>\ntext {n}\n</working-memory>" for n in (1, 2)]
    with FakeLLM(*answers) as model:
        found = observer.observe_threads(
            threads,
            settings=ObservationSettings(scope="resource"),
            working_memory=read_memory(),
            resource_id="ann",
        )
    assert [item.working_memory for item in found.values()] == ["text 1", "text 2"]
    assert "<working_memory_data>\ntext 1\n" in model.requests[1].instructions


@pytest.mark.parametrize(
    ("options", "thread_id"), [({"enabled": False}, "t"), ({"scope": "thread"}, None)]
)
def test_read_memory__none_if_it_is_off(options: dict[str, Any], thread_id: str | None) -> None:
    parsed = MemoryOptions.parse({"workingMemory": {"enabled": True, **options}}).working_memory
    assert managed_memory.read_memory(parsed, thread_id=thread_id, resource_id="ann") is None
