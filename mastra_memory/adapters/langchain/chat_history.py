"""A chat message history, and its messages as rows."""

import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import (
    BaseMessage,
    RemoveMessage,
    message_to_dict,
    messages_from_dict,
)

from mastra_memory.adapters.assistant_steps import (
    deduplicate_tool_calls,
    get_outcome,
    is_tool_call,
    split_steps,
)
from mastra_memory.adapters.langchain import content_blocks
from mastra_memory.adapters.langchain.content_blocks import LIBRARY
from mastra_memory.adapters.library_metadata import (
    Json,
    attach_metadata,
    build_content,
    get_message_metadata,
    get_part_metadata,
)
from mastra_memory.memory import Memory
from mastra_memory.types import StoredMessage

_NAMES = uuid.UUID("8d1f0f57-3c5b-4f0a-8d0e-0d6f0c7b7f0e")
_ROLES = {"human": "user", "HumanMessageChunk": "user", "ai": "assistant", "tool": "tool"}


class MastraChatMessageHistory(BaseChatMessageHistory):
    """The messages of one thread. A message with an id is kept once, however often it is added."""

    def __init__(
        self, thread_id: str, *, resource_id: str | None = None, memory: Memory | None = None
    ) -> None:
        super().__init__()
        self.thread_id = thread_id
        self.resource_id = resource_id
        self.memory = memory or Memory()

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """Everything said in the thread, oldest first; nothing while there is no thread."""
        return to_messages(self._stored())

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Keep these messages; those that LangGraph marks as removed are deleted."""
        gone = [_row_id(self.thread_id, one.id) for one in messages if _is_removal(one)]
        if gone:
            self.memory.delete_messages(gone)
        rows = from_messages([one for one in messages if not _is_removal(one)], self.thread_id)
        self.memory.save_turn(self.thread_id, rows, resource_id=self.resource_id)

    def clear(self) -> None:
        """Delete all messages of the thread; the thread stays."""
        self.memory.delete_messages([message.id for message in self._stored()])

    def _stored(self) -> Sequence[StoredMessage]:
        if self.memory.get_thread_by_id(self.thread_id) is None:
            return []
        page = self.memory.list_messages(
            self.thread_id, resource_id=self.resource_id, per_page=False
        )
        return page.messages


def _is_removal(message: BaseMessage) -> bool:
    return isinstance(message, RemoveMessage)


def _row_id(thread_id: str, native_id: str | None) -> str:
    return str(uuid.uuid5(_NAMES, f"{thread_id}\n{native_id}"))


def from_messages(messages: Sequence[BaseMessage], thread_id: str) -> list[Json]:
    """Rows for `save_turn`, one for each message; the ids are the messages' own within a thread."""
    rows = []
    for message in messages:
        dumped = message_to_dict(message)
        kind, data = dumped["type"], dumped["data"]
        if kind == "system":
            continue
        row = {"role": _role(kind, data), "content": _content(kind, data)}
        rows.append(row | ({"id": _row_id(thread_id, data["id"])} if data.get("id") else {}))
    return rows


def _role(kind: str, data: Json) -> str:
    if kind == "chat":
        return "assistant" if data.get("role") in ("assistant", "ai") else "user"
    return _ROLES.get(kind, "assistant")


def _content(kind: str, data: Json) -> Json:
    if kind == "tool":
        return _of_tool(data)
    notes = {key: value for key, value in data.items() if key not in ("content", "tool_calls")}
    notes["type"] = kind
    notes["is_list"] = isinstance(data["content"], list) or None
    parts = content_blocks.build_parts(data["content"], data.get("tool_calls") or [])
    parts = parts or [{"type": "text", "text": ""}]
    return build_content(LIBRARY, parts, notes)


def _of_tool(data: Json) -> Json:
    known = ("content", "tool_call_id", "name", "type", "status")
    notes = {key: value for key, value in data.items() if key not in known}
    notes |= {"name": data.get("name"), "order": time.time_ns()}
    failed = data.get("status") == "error"
    invocation = {
        "state": "output-error" if failed else "result",
        "toolCallId": data["tool_call_id"],
        "toolName": data.get("name") or "",
        "args": {},
        "result": data["content"],
    }
    if failed:
        invocation["errorText"] = str(data["content"])
    part = {"type": "tool-invocation", "toolInvocation": invocation}
    return build_content(
        LIBRARY, [attach_metadata(LIBRARY, part, notes, under="return")], {"type": "tool"}
    )


def to_messages(messages: Iterable[StoredMessage]) -> list[BaseMessage]:
    """LangChain's messages, whoever wrote them."""
    return messages_from_dict(
        [one for each in deduplicate_tool_calls(messages) for one in _dumped(each)]
    )


def _dumped(message: StoredMessage) -> Iterator[Json]:
    content = message.content
    notes = get_message_metadata(LIBRARY, content)
    if message.role == "tool":
        for part in content["parts"]:
            if is_tool_call(part):
                yield _tool_message(part)
        return
    if message.role != "assistant":
        yield _message("human", content["parts"], notes, message)
        return
    for step in split_steps(content, library=LIBRARY, whole=notes is not None):
        yield _message("ai", step.said, notes, message)
        for part in step.ended:
            yield _tool_message(part)


def _message(
    kind: str, parts: Sequence[Json], notes: Mapping[str, Any] | None, message: StoredMessage
) -> Json:
    about = dict(notes or {"id": message.id})
    kind = about.pop("type", kind)
    said, called = content_blocks.build_blocks(parts, is_list=about.pop("is_list", False) is True)
    data = {"content": said, **about}
    if called or kind == "ai":
        data["tool_calls"] = called
    return {"type": kind, "data": data}


def _tool_message(part: Json) -> Json:
    call = part["toolInvocation"]
    notes = dict(get_part_metadata(LIBRARY, part).get("return", {}))
    written_here = notes.pop("order", None) is not None
    given, failed = get_outcome(call)
    if not written_here:
        given = given if isinstance(given, str) else content_blocks.dump_json(given)
        notes["name"] = call.get("toolName")
    data = {
        "content": given,
        "tool_call_id": str(call.get("toolCallId")),
        "status": "error" if failed else "success",
        **notes,
    }
    return {"type": "tool", "data": data}
