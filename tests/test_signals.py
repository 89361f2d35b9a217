"""Signals to host projects: sent after commit, with ids only."""

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
SIGNAL_NAMES = ("messages_saved", "thread_deleted", "thread_cloned", "thread_transferred")


@pytest.fixture
def received() -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """Return the signals that a host project receives, in order."""
    received: list[tuple[str, dict[str, Any]]] = []

    def make_receiver(name: str) -> Any:
        def receive(signal: Signal, sender: Any, **arguments: Any) -> None:
            received.append((name, arguments))

        return receive

    receivers = {name: make_receiver(name) for name in SIGNAL_NAMES}
    for name, receive in receivers.items():
        getattr(signals, name).connect(receive, weak=False)
    yield received
    for name, receive in receivers.items():
        getattr(signals, name).disconnect(receive)


def test_signals__send_ids_of_what_changed(received: list[Any]) -> None:
    memory, thread = Memory(), make_thread("r")
    memory.save_messages([a_message(thread, "b", at=2), a_message(thread, "a", at=1)])
    clone = memory.copy_thread(thread.id).thread
    memory.transfer_thread(thread.id, "s")
    memory.delete_thread(thread.id)
    assert received == [
        ("messages_saved", {"thread_ids": [thread.id], "message_ids": ["a", "b"]}),
        ("thread_cloned", {"source_thread_id": thread.id, "thread_id": clone.id}),
        (
            "thread_transferred",
            {"thread_id": thread.id, "old_resource_id": "r", "resource_id": "s"},
        ),
        ("thread_deleted", {"thread_id": thread.id, "resource_id": "s"}),
    ]


def test_signals__are_not_sent_without_a_change(received: list[Any]) -> None:
    memory, thread = Memory(), make_thread("r")
    memory.save_messages([])
    memory.save_messages([a_message(thread, role="system")])
    memory.delete_thread("missing")
    with pytest.raises(InvalidInput):
        memory.save_messages([a_message(thread), a_message(thread, role="robot")])
    assert received == []


def test_signals__are_sent_only_after_commit(received: list[Any]) -> None:
    thread = make_thread("r")
    with transaction.atomic():
        Memory().save_messages([a_message(thread)])
        assert received == []
        transaction.set_rollback(True)
    assert received == []
    with transaction.atomic():
        Memory().save_messages([a_message(thread)])
    assert len(received) == 1


def test_signals__a_failing_receiver_does_not_stop_others(received: list[Any]) -> None:
    def fail(**_: Any) -> None:
        raise RuntimeError("an error of the host project")

    signals.messages_saved.connect(fail)
    try:
        Memory().save_messages([a_message(make_thread("r"))])
    finally:
        signals.messages_saved.disconnect(fail)
    assert [name for name, _ in received] == ["messages_saved"]
