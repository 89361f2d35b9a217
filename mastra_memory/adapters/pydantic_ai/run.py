"""Run an agent with a memory: context in, turn saved."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from asgiref.sync import sync_to_async
from pydantic_ai import Agent, AgentRunResult, FunctionToolset, Tool
from pydantic_ai.messages import ModelRequest, UserContent, UserPromptPart

from mastra_memory.adapters.library_metadata import Json
from mastra_memory.adapters.pydantic_ai.from_library import from_messages
from mastra_memory.adapters.pydantic_ai.to_library import to_messages
from mastra_memory.content import message_text
from mastra_memory.context import Context
from mastra_memory.context.turns import Turn
from mastra_memory.memory import Memory

Prompt = str | Sequence[UserContent]


@dataclass(frozen=True, slots=True)
class AgentTurn:
    """A turn with what the agent's run gave."""

    turn: Turn
    result: AgentRunResult[Any] | None
    """None when the turn had its answer already and the agent was not run again."""

    @property
    def output(self) -> Any:
        """The run's output; of a turn that was repeated, the text of the stored answer."""
        if self.result is not None:
            return self.result.output
        return message_text.get_text(self.turn.answer[-1].content)


def run_sync(
    agent: Agent[Any, Any],
    prompt: Prompt,
    *,
    thread_id: str,
    resource_id: str | None = None,
    memory: Memory | None = None,
    turn_id: str | None = None,
    **options: Any,
) -> AgentTurn:
    """Run the agent in a thread; what the user said is kept even if the run fails.

    The agent sees the memory's system text, the history and the tool that updates working memory.
    With a `turn_id`, a turn that has its answer is not run again. `options` go to `agent.run`.
    """
    memory = memory or Memory()
    results: list[AgentRunResult[Any]] = []

    def answer(context: Context) -> list[Json]:
        prepared = _prepared(memory, context, options)
        # A loop of its own, closed afterwards; `agent.run_sync` leaves one behind in the thread.
        results.append(asyncio.run(agent.run(prompt, **prepared)))
        return _answer_of(results[0])

    turn = memory.save_turn(
        thread_id, _said(prompt), resource_id=resource_id, answer=answer, turn_id=turn_id
    )
    return AgentTurn(turn, results[0] if results else None)


async def run(
    agent: Agent[Any, Any],
    prompt: Prompt,
    *,
    thread_id: str,
    resource_id: str | None = None,
    memory: Memory | None = None,
    turn_id: str | None = None,
    **options: Any,
) -> AgentTurn:
    """The same for async code."""
    memory = memory or await sync_to_async(Memory)()
    results: list[AgentRunResult[Any]] = []

    async def answer(context: Context) -> list[Json]:
        prepared = _prepared(memory, context, options)
        results.append(await agent.run(prompt, **prepared))
        return _answer_of(results[0])

    turn = await memory.asave_turn(
        thread_id, _said(prompt), resource_id=resource_id, answer=answer, turn_id=turn_id
    )
    return AgentTurn(turn, results[0] if results else None)


def _said(prompt: Prompt) -> list[Json]:
    return from_messages([ModelRequest([UserPromptPart(prompt)])])


def _prepared(memory: Memory, context: Context, options: Json) -> Json:
    history = context.block("history")
    tool = working_memory_tool(memory, thread_id=context.thread_id, resource_id=context.resource_id)
    toolsets = [*options.get("toolsets", ()), *([FunctionToolset([tool])] if tool else [])]
    given = options.get("instructions") or ()
    own = [given] if isinstance(given, str) or callable(given) else list(given)
    return options | {
        "message_history": to_messages(history.messages) if history else None,
        "instructions": [*own, *([context.system_message] if context.system_message else [])],
        "toolsets": toolsets,
    }


def _answer_of(result: AgentRunResult[Any]) -> list[Json]:
    """What the run added besides the prompt, which is kept already."""
    new = result.new_messages()
    return from_messages(new[1:] if isinstance(new[0], ModelRequest) else new)


def working_memory_tool(
    memory: Memory, *, thread_id: str, resource_id: str | None = None
) -> Tool[Any] | None:
    """The tool that updates working memory; None where the agent may not."""
    tool = memory.working_memory_tool(thread_id, resource_id=resource_id)
    if tool is None:
        return None

    async def update(**arguments: Any) -> Json:
        answer: Json = await sync_to_async(tool.handler)(arguments)
        return answer

    return Tool.from_schema(
        update, name=tool.name, description=tool.description, json_schema=tool.parameters
    )
