"""Conversations as Mastra's own stores save them."""

from mastra_memory.types import StoredThread
from tests.support.factories import a_message, save


def save_repeated_call(thread: StoredThread) -> None:
    """Save a call, a second message with the same call and its result, and an answer."""
    call = {"toolCallId": "c1", "toolName": "weather", "args": {"city": "Rome"}}
    contents = [
        [{"type": "tool-invocation", "toolInvocation": {**call, "state": "call"}}],
        [{"type": "tool-invocation",
          "toolInvocation": {**call, "args": {}, "state": "result", "result": 21}}],
        [{"type": "text", "text": "cold"}],
    ]  # fmt: skip
    save(
        [
            a_message(thread, f"a{at}", role="assistant", content={"format": 2, "parts": p}, at=at)
            for at, p in enumerate(contents)
        ]
    )
