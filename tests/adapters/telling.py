"""Conversations as Mastra's own stores keep them."""

from mastra_memory.types import StoredThread
from tests.support.factories import a_message, save


def save_call_told_twice(thread: StoredThread) -> None:
    """A call, its result in a message of the assistant's that tells it again, and an answer."""
    call = {"toolCallId": "c1", "toolName": "weather", "args": {"city": "Rome"}}
    told = [
        [{"type": "tool-invocation", "toolInvocation": {**call, "state": "call"}}],
        [{"type": "tool-invocation",
          "toolInvocation": {**call, "args": {}, "state": "result", "result": 21}}],
        [{"type": "text", "text": "cold"}],
    ]  # fmt: skip
    save(
        [
            a_message(thread, f"a{at}", role="assistant", content={"format": 2, "parts": p}, at=at)
            for at, p in enumerate(told)
        ]
    )
