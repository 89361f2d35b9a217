"""Signals for host projects. Inside a transaction, they are sent after it commits.

This app does not receive them itself.
"""

from typing import Any

from django.dispatch import Signal

from mastra_memory.db import routing

messages_saved = Signal()
"""Messages were stored. Arguments: `thread_ids`, `message_ids`."""

thread_deleted = Signal()
"""A thread was deleted with everything in it. Arguments: `thread_id`, `resource_id`."""

thread_cloned = Signal()
"""A thread was copied. Arguments: `source_thread_id`, `thread_id`."""

thread_transferred = Signal()
"""A thread was given to a resource. Arguments: `thread_id`, `old_resource_id`, `resource_id`."""

observation_started = Signal()
"""The Observer is about to read messages. Arguments: `thread_ids`, `resource_id`, `message_ids`."""

observation_finished = Signal()
"""The Observer has answered or failed; nothing is stored yet. Arguments: `thread_ids`,
`resource_id`, `message_ids`, `error` (the exception, or None)."""

reflection_started = Signal()
"""The Reflector is about to read a log. Arguments: `thread_id`, `resource_id`."""

reflection_finished = Signal()
"""The Reflector has answered or failed; nothing is stored yet. Arguments: `thread_id`,
`resource_id`, `error` (the exception, or None)."""


def send(signal: Signal, **facts: Any) -> None:
    """Send the signal after commit. A receiver that fails is logged; the others still run."""
    if signal.receivers:
        routing.on_commit(lambda: signal.send_robust(sender=None, **facts))
