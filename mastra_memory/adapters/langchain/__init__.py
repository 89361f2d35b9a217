"""LangChain: a chat message history kept in a thread, for chains and for LangGraph's nodes.

    history = MastraChatMessageHistory("thread-1", resource_id="ann")
    history.add_messages([HumanMessage("Hello"), AIMessage("Hi")])
    history.messages

System messages are the application's and are not kept.
"""

from mastra_memory.adapters.langchain.chat_history import (
    MastraChatMessageHistory,
    from_messages,
    to_messages,
)

__all__ = ["MastraChatMessageHistory", "from_messages", "to_messages"]
