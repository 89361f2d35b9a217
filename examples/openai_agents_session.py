"""The OpenAI Agents SDK with its session kept in a thread.

python -m examples.openai_agents_session
"""

import asyncio
import uuid
from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from examples.setting import prepare, say


class Pretended(Model):
    """A model that counts what the user has said so far."""

    async def get_response(
        self, system_instructions: str | None, input: Any, *args: Any, **options: Any
    ) -> ModelResponse:
        said = [input] if isinstance(input, str) else [i for i in input if i.get("role") == "user"]
        entry = ResponseOutputText(
            text=f"You have said {len(said)} things.", type="output_text", annotations=[]
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
        raise NotImplementedError("this example does not stream")


async def talk() -> None:
    """Two runs, the second of which knows the first."""
    from mastra_memory.adapters.openai_agents import MastraSession

    agent = Agent(name="Counter", model=Pretended())
    session = MastraSession(f"thread-{uuid.uuid4().hex[:8]}", resource_id="ann")
    for question in ("Hello", "How much have I said?"):
        quiet = RunConfig(tracing_disabled=True)
        result = await Runner.run(agent, question, session=session, run_config=quiet)
        say(f"User:  {question}\nAgent: {result.final_output}\n")
    say(f"{len(await session.get_items())} items are kept.")


def main() -> None:
    """Talk."""
    prepare()
    asyncio.run(talk())


if __name__ == "__main__":
    main()
