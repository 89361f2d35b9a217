"""pydantic-ai: store its message history in threads, and run its agents with a memory.

    turn = run_sync(agent, "Hello", thread_id="t", resource_id="ann", memory=Memory("support"))
    turn.output

Instructions and system prompts belong to the agent and are not stored.
"""

from mastra_memory.adapters.pydantic_ai.from_library import from_messages
from mastra_memory.adapters.pydantic_ai.run import (
    AgentTurn,
    recall_tool,
    run,
    run_sync,
    working_memory_tool,
)
from mastra_memory.adapters.pydantic_ai.to_library import to_messages

__all__ = [
    "AgentTurn",
    "from_messages",
    "recall_tool",
    "run",
    "run_sync",
    "to_messages",
    "working_memory_tool",
]
