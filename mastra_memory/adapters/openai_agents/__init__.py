"""OpenAI Agents SDK: a `Session` that is stored in a thread.

    session = MastraSession("thread-1", resource_id="ann")
    await Runner.run(agent, "Hello", session=session)

Items with the roles `system` and `developer` belong to the application and are not stored.
"""

from mastra_memory.adapters.openai_agents.items import from_items, to_items
from mastra_memory.adapters.openai_agents.session import (
    MastraSession,
    recall_tool,
    working_memory_tool,
)

__all__ = ["MastraSession", "from_items", "recall_tool", "to_items", "working_memory_tool"]
