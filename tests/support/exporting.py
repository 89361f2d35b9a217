"""Helpers for tests of exports."""

from typing import Any

from mastra_memory.exporters.output import ExportCounts
from mastra_memory.exporters.selection import ExportSelection, consistent_snapshot
from mastra_memory.types import StoredThread
from tests.support.factories import a_message, make_thread, save


def run_export(format: Any, selection: ExportSelection | None = None) -> tuple[str, ExportCounts]:
    """Return what the format module writes, and its counts."""
    chunks: list[bytes] = []
    with consistent_snapshot():
        counts = format.export(selection or ExportSelection(), chunks.append, lambda: None)
    return b"".join(chunks).decode(), counts


def tool_part(name: str, args: Any, **outcome: Any) -> dict[str, Any]:
    """Return the part of a tool call; `outcome` is added to it as its result."""
    state = "result" if outcome else "call"
    call = {"state": state, "toolCallId": name, "toolName": name, "args": args, **outcome}
    return {"type": "tool-invocation", "toolInvocation": call}


def make_conversation(*turns: tuple[str, Any], thread: StoredThread | None = None) -> StoredThread:
    """Save a thread with messages one second apart, given as role and text or list of parts."""
    thread = thread or make_thread("alice", "t1", title="A talk")
    for number, (role, content) in enumerate(turns):
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        body = {"format": 2, "parts": parts}
        save([a_message(thread, f"{thread.id}:{number}", role=role, content=body, at=number)])
    return thread
