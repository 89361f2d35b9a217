"""LangChain: a chat message history that is stored in a thread, for chains and LangGraph nodes.

    history = MastraChatMessageHistory("thread-1", resource_id="ann")
    history.add_messages([HumanMessage("Hello"), AIMessage("Hi")])
    history.messages

System messages belong to the application and are not stored.
"""

from mastra_memory.adapters.langchain.chat_history import (
    MastraChatMessageHistory,
    from_messages,
    to_messages,
)

__all__ = ["MastraChatMessageHistory", "from_messages", "to_messages"]
