"""A LangGraph graph with its conversation stored in a thread.

One node reads the history, and another one stores the new messages.

python -m examples.langgraph_chat
"""

import uuid

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph

from examples.django_setup import prepare, say


def main() -> None:
    """Run a graph twice. It has no checkpointer: the thread is its only memory."""
    prepare()
    from mastra_memory.adapters.langchain import MastraChatMessageHistory

    answers = iter([AIMessage("Hello Ann."), AIMessage("You said that you are Ann.")])
    model = GenericFakeChatModel(messages=answers)
    history = MastraChatMessageHistory(f"thread-{uuid.uuid4().hex[:8]}", resource_id="ann")

    def answer(state: MessagesState) -> dict[str, list[BaseMessage]]:
        return {"messages": [model.invoke([*history.messages, *state["messages"]])]}

    def remember(state: MessagesState) -> dict[str, list[BaseMessage]]:
        # Messages of a graph have ids, so those that are stored already are not stored twice.
        history.add_messages(state["messages"])
        return {"messages": []}

    graph = StateGraph(MessagesState)
    graph.add_node("answer", answer)
    graph.add_node("remember", remember)
    graph.add_edge(START, "answer")
    graph.add_edge("answer", "remember")
    graph.add_edge("remember", END)
    app = graph.compile()
    for question in ("I am Ann.", "What did I say?"):
        result = app.invoke({"messages": [HumanMessage(question)]})
        say(f"User:  {question}\nGraph: {result['messages'][-1].content}\n")
    say(f"{len(history.messages)} messages are stored.")


if __name__ == "__main__":
    main()
