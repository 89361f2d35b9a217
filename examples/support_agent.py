"""A support agent in pydantic-ai that remembers a customer in a second conversation.

    python -m examples.support_agent

The model is a fake one. To use a real one, set EXAMPLE_MODEL=openai:gpt-5-mini and OPENAI_API_KEY.
"""

import os
import re
import uuid

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel

from examples.django_setup import prepare, say


def fake_model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Answer three sentences as a model might."""
    text = " ".join(str(part.content) for part in messages[-1].parts if hasattr(part, "content"))
    instructions = info.instructions or ""
    if match := re.search(r"I am (\w+), and my tent has a broken pole", text):
        notes = f"# User Information\n- **First Name**: {match[1]}\n- **Facts**: broken tent pole"
        return ModelResponse([ToolCallPart("updateWorkingMemory", {"memory": notes})])
    if "success" in text:
        return ModelResponse([TextPart("I am sorry to hear that. A new pole is on its way.")])
    if "Who am I" in text and (name := re.search(r"\*\*First Name\*\*: (\w+)", instructions)):
        return ModelResponse([TextPart(f"You are {name[1]}; last time it was about a tent pole.")])
    return ModelResponse([TextPart("How can I help you?")])


def main() -> None:
    """Hold two conversations with one customer."""
    prepare()
    from django.core.management import call_command

    from mastra_memory.adapters.pydantic_ai import run_sync
    from mastra_memory.memory import Memory

    model: Model | str = os.environ.get("EXAMPLE_MODEL") or FunctionModel(fake_model)
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
    call_command("mastra_catch_up", verbosity=0)  # Generates the titles, as a Celery worker would.
    for thread in memory.list_threads(resource_id=customer).threads:
        say(f"{thread.id}: {thread.title}")
    notes = memory.get_working_memory("", resource_id=customer)
    say(f"\nWhat is known about the customer:\n{notes}")


if __name__ == "__main__":
    main()
