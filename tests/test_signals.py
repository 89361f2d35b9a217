"""Signals to host projects: after commit, with names alone, and hurting nobody."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction
from django.dispatch import Signal

from mastra_memory import signals
from mastra_memory.exceptions import InvalidInput
from mastra_memory.memory import Memory
from tests.support.factories import a_message, make_thread

pytestmark = pytest.mark.django_db(transaction=True)
EVERY = ("messages_saved", "thread_deleted", "thread_cloned", "thread_transferred")


@pytest.fixture
def heard() -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """What a host project hears, in order."""
    told: list[tuple[str, dict[str, Any]]] = []

    def listener(name: str) -> Any:
        def listen(signal: Signal, sender: Any, **facts: Any) -> None:
            told.append((name, facts))

        return listen

    listeners = {name: listener(name) for name in EVERY}
    for name, listen in listeners.items():
        getattr(signals, name).connect(listen, weak=False)
    yield told
    for name, listen in listeners.items():
        getattr(signals, name).disconnect(listen)


def test_send__names_what_happened(heard: list[Any]) -> None:
    memory, thread = Memory(), make_thread("r")
    memory.save_messages([a_message(thread, "b", at=2), a_message(thread, "a", at=1)])
    clone = memory.copy_thread(thread.id).thread
    memory.transfer_thread(thread.id, "s")
    memory.delete_thread(thread.id)
    assert heard == [
        ("messages_saved", {"thread_ids": [thread.id], "message_ids": ["a", "b"]}),
        ("thread_cloned", {"source_thread_id": thread.id, "thread_id": clone.id}),
        (
            "thread_transferred",
            {"thread_id": thread.id, "old_resource_id": "r", "resource_id": "s"},
        ),
        ("thread_deleted", {"thread_id": thread.id, "resource_id": "s"}),
    ]


def test_send__nothing_happened_nothing_is_told(heard: list[Any]) -> None:
    memory, thread = Memory(), make_thread("r")
    memory.save_messages([])
    memory.save_messages([a_message(thread, role="system")])
    memory.delete_thread("nobody")
    with pytest.raises(InvalidInput):
        memory.save_messages([a_message(thread), a_message(thread, role="robot")])
    assert heard == []


def test_send__only_after_commit(heard: list[Any]) -> None:
    thread = make_thread("r")
    with transaction.atomic():
        Memory().save_messages([a_message(thread)])
        assert heard == []
        transaction.set_rollback(True)
    assert heard == []
    with transaction.atomic():
        Memory().save_messages([a_message(thread)])
    assert len(heard) == 1


def test_send__a_receiver_that_fails_hurts_nobody(heard: list[Any]) -> None:
    def fail(**_: Any) -> None:
        raise RuntimeError("a host's fault")

    signals.messages_saved.connect(fail)
    try:
        Memory().save_messages([a_message(make_thread("r"))])
    finally:
        signals.messages_saved.disconnect(fail)
    assert [name for name, _ in heard] == ["messages_saved"]
