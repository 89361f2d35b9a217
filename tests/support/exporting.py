"""Export in a test."""

from typing import Any

from mastra_memory.exporters.output import ExportCounts
from mastra_memory.exporters.selection import ExportSelection, consistent_snapshot
from mastra_memory.types import StoredThread
from tests.support.factories import a_message, make_thread, save


def run_export(format: Any, selection: ExportSelection | None = None) -> tuple[str, ExportCounts]:
    """What a format writes, and how much that is."""
    written: list[bytes] = []
    with consistent_snapshot():
        counts = format.export(selection or ExportSelection(), written.append, lambda: None)
    return b"".join(written).decode(), counts


def tool_part(name: str, args: Any, **outcome: Any) -> dict[str, Any]:
    """A part for a tool call, with its result where there is one."""
    state = "result" if outcome else "call"
    call = {"state": state, "toolCallId": name, "toolName": name, "args": args, **outcome}
    return {"type": "tool-invocation", "toolInvocation": call}


def make_conversation(*turns: tuple[str, Any], thread: StoredThread | None = None) -> StoredThread:
    """A thread with these roles and texts, or lists of parts, a second apart."""
    thread = thread or make_thread("alice", "t1", title="A talk")
    for number, (role, said) in enumerate(turns):
        parts = said if isinstance(said, list) else [{"type": "text", "text": said}]
        content = {"format": 2, "parts": parts}
        save([a_message(thread, f"{thread.id}:{number}", role=role, content=content, at=number)])
    return thread
