"""Validate and store messages.

`validate_messages` checks a batch, and `save_messages` stores it. `Memory` then queues the work
that follows, such as embedding.
"""

from mastra_memory.messages.queries import MESSAGE_COLUMNS
from mastra_memory.messages.storage import (
    delete_messages,
    get_messages,
    parse_message_ids,
    save_and_extend,
    save_messages,
)
from mastra_memory.messages.updates import update_messages
from mastra_memory.messages.validation import validate_messages

__all__ = [
    "MESSAGE_COLUMNS",
    "delete_messages",
    "get_messages",
    "parse_message_ids",
    "save_and_extend",
    "save_messages",
    "update_messages",
    "validate_messages",
]
