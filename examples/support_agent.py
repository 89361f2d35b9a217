"""A support agent in pydantic-ai: remembers a customer over two conversations, names them both.

    python -m examples.support_agent

The model is a pretended one, so that nothing is needed; EXAMPLE_MODEL=openai:gpt-5-mini and
OPENAI_API_KEY put a real one in its place.
"""

import os
import re
import uuid

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel

from examples.setting import prepare, say


def pretend(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Answer like a model that understands three sentences."""
    said = " ".join(str(part.content) for part in messages[-1].parts if hasattr(part, "content"))
    known = info.instructions or ""
    if told := re.search(r"I am (\w+), and my tent has a broken pole", said):
        noted = f"# User Information\n- **First Name**: {told[1]}\n- **Facts**: broken tent pole"
        return ModelResponse([ToolCallPart("updateWorkingMemory", {"memory": noted})])
    if "success" in said:
        return ModelResponse([TextPart("I am sorry to hear that. A new pole is on its way.")])
    if "Who am I" in said and (name := re.search(r"\*\*First Name\*\*: (\w+)", known)):
        return ModelResponse([TextPart(f"You are {name[1]}; last time it was about a tent pole.")])
    return ModelResponse([TextPart("How can I help you?")])


def main() -> None:
    """Two conversations of one customer."""
    prepare()
    from django.core.management import call_command

    from mastra_memory.adapters.pydantic_ai import run_sync
    from mastra_memory.memory import Memory

    model: Model | str = os.environ.get("EXAMPLE_MODEL") or FunctionModel(pretend)
    agent = Agent(model, instructions="You are the support of a shop for tents.")
    memory = Memory(options={"workingMemory": {"enabled": True}, "generateTitle": True})
    customer, questions = (
        f"customer-{uuid.uuid4().hex[:8]}",
        ("Hello, I am Mara, and my tent has a broken pole.", "Hello again. Who am I?"),
    )
    for number, question in enumerate(questions, 1):
        turn = run_sync(
            agent, question, thread_id=f"{customer}-{number}", resource_id=customer, memory=memory
        )
        say(f"Customer: {question}\nAgent:    {turn.output}\n")
    call_command("mastra_catch_up", verbosity=0)  # what a Celery worker would have done by now
    for thread in memory.list_threads(resource_id=customer).threads:
        say(f"{thread.id}: {thread.title}")
    say(f"\nWhat is known of the customer:\n{memory.get_working_memory('', resource_id=customer)}")


if __name__ == "__main__":
    main()
