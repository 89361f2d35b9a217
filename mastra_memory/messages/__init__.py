"""Validate and store messages."""

from mastra_memory.messages.storage import (
    MESSAGE_COLUMNS,
    delete_messages,
    get_messages,
    parse_message_ids,
    save_messages,
    update_messages,
    validate_messages,
)

__all__ = [
    "validate_messages",
    "MESSAGE_COLUMNS",
    "delete_messages",
    "get_messages",
    "parse_message_ids",
    "save_messages",
    "update_messages",
]
