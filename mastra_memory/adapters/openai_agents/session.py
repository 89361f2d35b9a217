"""A session, and the tool for working memory."""

import json
from typing import Any

from agents import FunctionTool
from agents.items import TResponseInputItem
from agents.memory.session import SessionABC
from agents.memory.session_settings import SessionSettings, resolve_session_limit
from asgiref.sync import sync_to_async

from mastra_memory.adapters.openai_agents import items
from mastra_memory.content import tool_calls
from mastra_memory.db import json_text
from mastra_memory.exceptions import InvalidInput
from mastra_memory.memory import Memory
from mastra_memory.types import StoredMessage

Item = dict[str, Any]


class MastraSession(SessionABC):
    """The items of one thread."""

    session_settings: SessionSettings | None

    def __init__(
        self,
        session_id: str,
        *,
        resource_id: str | None = None,
        memory: Memory | None = None,
        session_settings: SessionSettings | None = None,
    ) -> None:
        """`session_id` is the thread's id; a missing thread is made for the resource."""
        self.session_id = session_id
        self.resource_id = resource_id
        self.memory = memory or Memory()
        self.session_settings = session_settings or SessionSettings()

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The items, oldest first; with a limit the newest, no output without its call."""
        limit = resolve_session_limit(limit, self.session_settings)
        return await sync_to_async(self._get)(limit)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Keep these items."""
        await sync_to_async(self._add)(items)

    async def pop_item(self) -> TResponseInputItem | None:
        """Take the newest item out."""
        return await sync_to_async(self._pop)()

    async def clear_session(self) -> None:
        """Delete all items; the thread stays."""
        await sync_to_async(self._clear)()

    async def system_message(self) -> str:
        """Working memory for the agent's instructions; empty where there is none."""
        verb = sync_to_async(self.memory.get_system_message)
        return await verb(self.session_id, resource_id=self.resource_id) or ""

    def _get(self, limit: int | None) -> list[Any]:
        found = items.to_items(self._newest(limit))
        if limit is None:
            return found
        return items.drop_orphan_outputs(found[len(found) - limit :] if limit else [])

    def _newest(self, count: int | None) -> list[StoredMessage]:
        """The last `count` messages: each is one item at least, or else shows nothing."""
        if self.memory.get_thread_by_id(self.session_id) is None:
            return []
        page = self.memory.list_messages(
            self.session_id,
            resource_id=self.resource_id,
            per_page=False if count is None else count,
            newest_page=count is not None,
        )
        return list(page.messages)

    def _add(self, given: Any) -> None:
        rows = items.from_items(given)
        self.memory.save_turn(self.session_id, rows, resource_id=self.resource_id)

    def _pop(self) -> Any:
        for message in reversed(self._newest(1)):
            found = items.to_items([message])
            if found:
                self._shorten(message, found[:-1])
                return found[-1]
        return None

    def _shorten(self, message: StoredMessage, left: list[Item]) -> None:
        """Leave these items of a message; without any it is deleted."""
        if not left:
            self.memory.delete_messages([message.id])
            return
        contents = tool_calls.fold_tool_calls([row["content"] for row in items.from_items(left)])
        owner = {"threadId": message.thread_id, "resourceId": message.resource_id}
        row = {"id": message.id, "role": message.role, "content": contents[0], **owner}
        self.memory.save_messages([row])

    def _clear(self) -> None:
        self.memory.delete_messages([message.id for message in self._newest(None)])


def working_memory_tool(
    memory: Memory, *, thread_id: str, resource_id: str | None = None
) -> FunctionTool | None:
    """The tool that updates working memory; None where the agent may not."""
    tool = memory.working_memory_tool(thread_id, resource_id=resource_id)
    if tool is None:
        return None

    async def invoke(_: Any, arguments: str) -> str:
        try:
            given = json_text.loads(arguments or "{}")
        except InvalidInput:
            given = {}
        return json.dumps(await sync_to_async(tool.handler)(given))

    return FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=tool.parameters,
        on_invoke_tool=invoke,
        strict_json_schema=False,
    )
