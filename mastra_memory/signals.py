"""Signals we send to host projects, always after commit; we never listen to them ourselves."""

from typing import Any

from django.dispatch import Signal

from mastra_memory.db import routing

messages_saved = Signal()
"""Messages were stored. Arguments: `thread_ids`, `message_ids`."""

thread_deleted = Signal()
"""A thread and all that hangs on it is gone. Arguments: `thread_id`, `resource_id`."""

thread_cloned = Signal()
"""A thread was copied. Arguments: `source_thread_id`, `thread_id`."""

thread_transferred = Signal()
"""A thread changed hands. Arguments: `thread_id`, `old_resource_id`, `resource_id`."""


def send(signal: Signal, **facts: Any) -> None:
    """Send after commit; a receiver that fails is logged and hurts nobody else."""
    if signal.receivers:
        routing.on_commit(lambda: signal.send_robust(sender=None, **facts))
