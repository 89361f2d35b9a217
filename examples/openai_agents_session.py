"""An agent of the OpenAI Agents SDK with its session stored in a thread.

python -m examples.openai_agents_session
"""

import asyncio
import uuid
from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from examples.django_setup import prepare, say


class CountingModel(Model):
    """A fake model that counts the messages of the user."""

    async def get_response(
        self, system_instructions: str | None, input: Any, *args: Any, **options: Any
    ) -> ModelResponse:
        """Return a reply that says how many messages the user has sent."""
        items = [{"role": "user"}] if isinstance(input, str) else input
        count = sum(item.get("role") == "user" for item in items)
        entry = ResponseOutputText(
            text=f"You have said {count} things.", type="output_text", annotations=[]
        )
        message = ResponseOutputMessage(
            id=f"msg_{uuid.uuid4().hex}",
            type="message",
            role="assistant",
            status="completed",
            content=[entry],
        )
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        """Raise NotImplementedError."""
        raise NotImplementedError("this example does not stream")


async def talk() -> None:
    """Run the agent twice. In the second run it reads the first."""
    from mastra_memory.adapters.openai_agents import MastraSession

    agent = Agent(name="Counter", model=CountingModel())
    session = MastraSession(f"thread-{uuid.uuid4().hex[:8]}", resource_id="ann")
    for question in ("Hello", "How much have I said?"):
        config = RunConfig(tracing_disabled=True)
        result = await Runner.run(agent, question, session=session, run_config=config)
        say(f"User:  {question}\nAgent: {result.final_output}\n")
    say(f"{len(await session.get_items())} items are stored.")


def main() -> None:
    """Run the example."""
    prepare()
    asyncio.run(talk())


if __name__ == "__main__":
    main()
