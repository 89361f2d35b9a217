"""Run an agent with a memory: build its context, run it, save the turn."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

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
from mastra_memory.types import AgentTool

Prompt = str | Sequence[UserContent]
Output = TypeVar("Output")


@dataclass(frozen=True, slots=True)
class AgentTurn(Generic[Output]):
    """A saved turn, and the result of the agent's run."""

    turn: Turn
    result: AgentRunResult[Output] | None
    """None if the turn was repeated and the agent was not run."""

    @property
    def output(self) -> Output | str:
        """Return the output of the run, or the text of the stored answer of a repeated turn."""
        if self.result is not None:
            return self.result.output
        return message_text.get_text(self.turn.answer[-1].content)


def run_sync(
    agent: Agent[Any, Output],
    prompt: Prompt,
    *,
    thread_id: str,
    resource_id: str | None = None,
    memory: Memory | None = None,
    turn_id: str | None = None,
    **run_options: Any,
) -> AgentTurn[Output]:
    """Run the agent in a thread. The prompt is stored even if the run fails.

    The agent gets the text of the memory as instructions, the history, and the tools that update
    working memory and read the messages behind observations.

    Args:
        agent: The agent.
        prompt: The user's message.
        thread_id: The thread. It is created if it is missing.
        resource_id: The owner of the thread.
        memory: The memory; by default one with the options of the settings.
        turn_id: The id of the turn. If it has a stored answer, the agent is not run again.
        **run_options: Arguments of `agent.run`.

    Raises:
        AccessDenied: The thread belongs to another resource.
        RuntimeError: Called inside a transaction.
    """
    memory = memory or Memory()
    results: list[AgentRunResult[Output]] = []

    def answer(context: Context) -> list[Json]:
        arguments = _build_run_arguments(memory, context, run_options)
        # `agent.run_sync` would leave an event loop open in this thread.
        results.append(asyncio.run(agent.run(prompt, **arguments)))
        return _convert_new_messages(results[0])

    turn = memory.save_turn(
        thread_id, _convert_prompt(prompt), resource_id=resource_id, answer=answer, turn_id=turn_id
    )
    return AgentTurn(turn, results[0] if results else None)


async def run(
    agent: Agent[Any, Output],
    prompt: Prompt,
    *,
    thread_id: str,
    resource_id: str | None = None,
    memory: Memory | None = None,
    turn_id: str | None = None,
    **run_options: Any,
) -> AgentTurn[Output]:
    """Run the agent as `run_sync` does, in async code."""
    memory = memory or await sync_to_async(Memory)()
    results: list[AgentRunResult[Output]] = []

    async def answer(context: Context) -> list[Json]:
        arguments = _build_run_arguments(memory, context, run_options)
        results.append(await agent.run(prompt, **arguments))
        return _convert_new_messages(results[0])

    turn = await memory.asave_turn(
        thread_id, _convert_prompt(prompt), resource_id=resource_id, answer=answer, turn_id=turn_id
    )
    return AgentTurn(turn, results[0] if results else None)


def _convert_prompt(prompt: Prompt) -> list[Json]:
    return from_messages([ModelRequest([UserPromptPart(prompt)])])


def _build_run_arguments(memory: Memory, context: Context, run_options: Json) -> Json:
    """Return the arguments of `agent.run`: those of the caller, and those for the memory."""
    blocks = [context.block("continuation"), context.block("history")]
    history = [message for block in blocks if block for message in block.messages]
    about = {"thread_id": context.thread_id, "resource_id": context.resource_id}
    tools = [
        tool
        for tool in (working_memory_tool(memory, **about), recall_tool(memory, **about))
        if tool is not None
    ]
    toolsets = [*run_options.get("toolsets", ()), *([FunctionToolset(tools)] if tools else [])]
    given = run_options.get("instructions") or ()
    instructions = [given] if isinstance(given, str) or callable(given) else list(given)
    if context.system_message:
        instructions.append(context.system_message)
    return run_options | {
        "message_history": to_messages(history) if history else None,
        "instructions": instructions,
        "toolsets": toolsets,
    }


def _convert_new_messages(result: AgentRunResult[Any]) -> list[Json]:
    """Return rows for the messages of the run, without the prompt, which is stored already."""
    messages = result.new_messages()
    return from_messages(messages[1:] if isinstance(messages[0], ModelRequest) else messages)


def working_memory_tool(
    memory: Memory, *, thread_id: str, resource_id: str | None = None
) -> Tool[Any] | None:
    """Return the tool that updates working memory, or None if the agent may not update it."""
    tool = memory.working_memory_tool(thread_id, resource_id=resource_id)
    return None if tool is None else _make_tool(tool)


def recall_tool(
    memory: Memory, *, thread_id: str, resource_id: str | None = None
) -> Tool[Any] | None:
    """Return the tool that reads the messages behind observations, or None without `retrieval`."""
    tool = memory.recall_tool(thread_id, resource_id=resource_id)
    return None if tool is None else _make_tool(tool)


def _make_tool(tool: AgentTool) -> Tool[Any]:
    async def call(**arguments: Any) -> Json:
        answer: Json = await sync_to_async(tool.handler)(arguments)
        return answer

    return Tool.from_schema(
        call, name=tool.name, description=tool.description, json_schema=tool.parameters
    )
