"""LangGraph with its conversation kept in a thread: loaded by the first node, saved by the last.

python -m examples.langgraph_chat
"""

import uuid

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph

from examples.setting import prepare, say


def main() -> None:
    """Two runs of a graph that keeps nothing itself."""
    prepare()
    from mastra_memory.adapters.langchain import MastraChatMessageHistory

    answers = iter([AIMessage("Hello Ann."), AIMessage("You said that you are Ann.")])
    model = GenericFakeChatModel(messages=answers)
    history = MastraChatMessageHistory(f"thread-{uuid.uuid4().hex[:8]}", resource_id="ann")

    def answer(state: MessagesState) -> dict[str, list[BaseMessage]]:
        return {"messages": [model.invoke([*history.messages, *state["messages"]])]}

    def remember(state: MessagesState) -> dict[str, list[BaseMessage]]:
        # Every message has an id in a graph: what is kept already is not kept twice.
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
    say(f"{len(history.messages)} messages are kept.")


if __name__ == "__main__":
    main()
