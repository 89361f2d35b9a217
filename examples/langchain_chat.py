"""A LangChain chat with its message history stored in a thread.

python -m examples.langchain_chat
"""

import uuid

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from examples.django_setup import prepare, say


def main() -> None:
    """Chat for two turns. In the second one the model reads the first."""
    prepare()
    from mastra_memory.adapters.langchain import MastraChatMessageHistory

    answers = iter([AIMessage("Hello Ann."), AIMessage("You said that you are Ann.")])
    model = GenericFakeChatModel(messages=answers)
    history = MastraChatMessageHistory(f"thread-{uuid.uuid4().hex[:8]}", resource_id="ann")
    for question in ("I am Ann.", "What did I say?"):
        history.add_messages([HumanMessage(question)])
        answer = model.invoke([SystemMessage("You are kind."), *history.messages])
        history.add_messages([answer])
        say(f"User:  {question}\nModel: {answer.content}\n")
    say(f"{len(history.messages)} messages are stored.")


if __name__ == "__main__":
    main()
