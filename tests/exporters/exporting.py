"""Export in a test."""

from typing import Any

from mastra_memory.exporters.output import Counts
from mastra_memory.exporters.selection import Selection, one_moment
from mastra_memory.types import StoredThread
from tests.support.factories import a_message, make_thread, save


def export(format: Any, selection: Selection | None = None) -> tuple[str, Counts]:
    """What a format writes, and how much that is."""
    written: list[bytes] = []
    with one_moment():
        counts = format.export(selection or Selection(), written.append, lambda: None)
    return b"".join(written).decode(), counts


def tool(name: str, args: Any, **outcome: Any) -> dict[str, Any]:
    """A part for a tool call, with its result where there is one."""
    state = "result" if outcome else "call"
    call = {"state": state, "toolCallId": name, "toolName": name, "args": args, **outcome}
    return {"type": "tool-invocation", "toolInvocation": call}


def talk(*turns: tuple[str, Any], thread: StoredThread | None = None) -> StoredThread:
    """A thread with these roles and texts, or lists of parts, a second apart."""
    thread = thread or make_thread("alice", "t1", title="A talk")
    for number, (role, said) in enumerate(turns):
        parts = said if isinstance(said, list) else [{"type": "text", "text": said}]
        content = {"format": 2, "parts": parts}
        save([a_message(thread, f"{thread.id}:{number}", role=role, content=content, at=number)])
    return thread
