"""A session of the Agents SDK, and the tool for working memory."""

import json
from collections.abc import Sequence
from typing import Any

from agents import FunctionTool
from agents.items import TResponseInputItem
from agents.memory.session import SessionABC
from agents.memory.session_settings import SessionSettings, resolve_session_limit
from asgiref.sync import sync_to_async

from mastra_memory.adapters.library_metadata import Json
from mastra_memory.adapters.openai_agents.items import drop_orphan_outputs, from_items, to_items
from mastra_memory.content import tool_calls
from mastra_memory.db import json_text
from mastra_memory.exceptions import InvalidInput
from mastra_memory.memory import Memory
from mastra_memory.types import AgentTool, StoredMessage


class MastraSession(SessionABC):
    """A session whose items are stored in one thread."""

    session_settings: SessionSettings | None

    def __init__(
        self,
        session_id: str,
        *,
        resource_id: str | None = None,
        memory: Memory | None = None,
        session_settings: SessionSettings | None = None,
    ) -> None:
        """Create a session. Nothing is read or written yet.

        Args:
            session_id: The id of the thread. A missing thread is created with the first items.
            resource_id: The owner of the thread.
            memory: The memory; by default one with the options of the settings.
            session_settings: Settings of the SDK, such as a default limit.
        """
        self.session_id = session_id
        self.resource_id = resource_id
        self.memory = memory or Memory()
        self.session_settings = session_settings or SessionSettings()

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the items, oldest first; with a limit the newest ones.

        With observational memory, items that are observed are left out: `system_message` has
        what was observed of them. An output is omitted if its call is outside of the limit, because
        OpenAI would refuse it.
        """
        limit = resolve_session_limit(limit, self.session_settings)
        return await sync_to_async(self._get_items)(limit)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Store items."""
        await sync_to_async(self._add_items)(items)

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the newest item and return it, or None if there are no items."""
        item: TResponseInputItem | None = await sync_to_async(self._pop_item)()
        return item

    async def clear_session(self) -> None:
        """Delete all items, but not the thread."""
        await sync_to_async(self._clear)()

    async def system_message(self) -> str:
        """Return working memory and observations as text for the instructions; empty if none."""
        if self.memory.options.observational_memory is None:
            message = await self.memory.aget_system_message(
                self.session_id, resource_id=self.resource_id
            )
        else:
            built = await self.memory.acontext(self.session_id, resource_id=self.resource_id)
            message = built.system_message
        return message or ""

    def _get_items(self, limit: int | None) -> list[Any]:
        observed_history = self._read_observed_history()
        if limit is None and observed_history is None:
            return to_items(self._read_newest(None))
        messages = self._read_newest(limit) if observed_history is None else observed_history
        items = to_items(messages)
        return drop_orphan_outputs(items[-limit:] if limit else items if limit is None else [])

    def _read_observed_history(self) -> Sequence[StoredMessage] | None:
        """Return the messages that are not observed yet, or None if there are no observations."""
        if self.memory.options.observational_memory is None:
            return None
        built = self.memory.context(self.session_id, resource_id=self.resource_id)
        if not built.has_observations:
            return None
        history = built.block("history")
        return history.messages if history else ()

    def _read_newest(self, count: int | None) -> list[StoredMessage]:
        """Return the last `count` messages, which contain at least `count` items."""
        if self.memory.get_thread_by_id(self.session_id) is None:
            return []
        page = self.memory.list_messages(
            self.session_id,
            resource_id=self.resource_id,
            per_page=False if count is None else count,
            newest_page=count is not None,
        )
        return list(page.messages)

    def _add_items(self, items: Any) -> None:
        self.memory.save_turn(self.session_id, from_items(items), resource_id=self.resource_id)

    def _pop_item(self) -> Any:
        for message in reversed(self._read_newest(1)):
            items = to_items([message])
            if items:
                self._replace_items(message, items[:-1])
                return items[-1]
        return None

    def _replace_items(self, message: StoredMessage, items: list[Json]) -> None:
        """Save the message with these items, or delete it if there are none."""
        if not items:
            self.memory.delete_messages([message.id])
            return
        contents = tool_calls.merge_tool_results([row["content"] for row in from_items(items)])
        row = {
            "id": message.id,
            "threadId": message.thread_id,
            "resourceId": message.resource_id,
            "role": message.role,
            "content": contents[0],
        }
        self.memory.save_messages([row])

    def _clear(self) -> None:
        self.memory.delete_messages([message.id for message in self._read_newest(None)])


def working_memory_tool(
    memory: Memory, *, thread_id: str, resource_id: str | None = None
) -> FunctionTool | None:
    """Return the tool that updates working memory, or None if the agent may not update it."""
    tool = memory.working_memory_tool(thread_id, resource_id=resource_id)
    return None if tool is None else _make_function_tool(tool)


def recall_tool(
    memory: Memory, *, thread_id: str, resource_id: str | None = None
) -> FunctionTool | None:
    """Return the tool that reads the messages behind observations, or None without `retrieval`."""
    tool = memory.recall_tool(thread_id, resource_id=resource_id)
    return None if tool is None else _make_function_tool(tool)


def _make_function_tool(tool: AgentTool) -> FunctionTool:
    async def invoke(_: Any, arguments: str) -> str:
        try:
            values = json_text.loads(arguments or "{}")
        except InvalidInput:
            values = {}  # The handler then reports the missing argument to the model.
        return json.dumps(await sync_to_async(tool.handler)(values))

    return FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=tool.parameters,
        on_invoke_tool=invoke,
        strict_json_schema=False,
    )
