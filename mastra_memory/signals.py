"""Signals we send to host projects, always after commit; we never listen to them ourselves."""

from django.dispatch import Signal

messages_saved = Signal()
"""Messages were stored. Arguments: `thread_ids`, `message_ids`."""

thread_deleted = Signal()
"""A thread and all that hangs on it is gone. Arguments: `thread_id`, `resource_id`."""

thread_cloned = Signal()
"""A thread was copied. Arguments: `source_thread_id`, `thread_id`."""

thread_transferred = Signal()
"""A thread changed hands. Arguments: `thread_id`, `old_resource_id`, `resource_id`."""
