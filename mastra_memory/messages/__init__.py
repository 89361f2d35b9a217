"""Validate and store messages."""

from mastra_memory.messages.storage import (
    COLUMNS,
    delete_messages,
    draft_messages,
    get_messages,
    ids_of,
    save_messages,
    update_messages,
)

__all__ = [
    "draft_messages",
    "COLUMNS",
    "delete_messages",
    "get_messages",
    "ids_of",
    "save_messages",
    "update_messages",
]
