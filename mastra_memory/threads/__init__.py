"""Store, copy and title conversation threads."""

from mastra_memory.threads.storage import (
    THREAD_COLUMNS,
    create_thread,
    delete_thread,
    find_thread,
    get_thread,
    list_threads,
    save_thread,
    touch_thread,
    transfer_thread,
    update_thread,
)

__all__ = [
    "THREAD_COLUMNS",
    "create_thread",
    "delete_thread",
    "find_thread",
    "get_thread",
    "list_threads",
    "save_thread",
    "touch_thread",
    "transfer_thread",
    "update_thread",
]
