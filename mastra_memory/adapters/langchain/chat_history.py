"""A LangChain chat message history, and the conversion of its messages.

All functions work on LangChain's JSON form, `{"type": ..., "data": ...}`.
"""

import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import (
    BaseMessage,
    RemoveMessage,
    SystemMessage,
    message_to_dict,
    messages_from_dict,
)

from mastra_memory.adapters.assistant_steps import (
    OUTCOME_KEYS,
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
    make_jsonable,
)
from mastra_memory.db import routing
from mastra_memory.memory import Memory
from mastra_memory.types import StoredMessage

_ID_NAMESPACE = uuid.UUID("8d1f0f57-3c5b-4f0a-8d0e-0d6f0c7b7f0e")
REMOVE_ALL_ID = "__remove_all__"
"""LangGraph's id of a `RemoveMessage` that removes everything before it. The constant is defined
here because LangGraph need not be installed."""
INSTRUCTION_KINDS = ("system", "SystemMessageChunk")
INSTRUCTION_ROLES = ("system", "developer")
"""Roles of a `ChatMessage` that is an instruction of the application."""
TOOL_KINDS = ("tool", "ToolMessageChunk")
_USER_KINDS = ("human", "HumanMessageChunk")
_CHAT_KINDS = ("chat", "ChatMessageChunk")
_ANSWER_ROLES = ("assistant", "ai", "model", "tool", "function")
"""Roles of a `ChatMessage` that is not a message of a person."""


class MastraChatMessageHistory(BaseChatMessageHistory):
    """The messages of one thread. A message with an id is stored only once."""

    def __init__(
        self, thread_id: str, *, resource_id: str | None = None, memory: Memory | None = None
    ) -> None:
        """Create a history. Nothing is read or written yet.

        Args:
            thread_id: The thread. A missing thread is created with the first messages.
            resource_id: The owner of the thread.
            memory: The memory; by default one with the options of the settings.
        """
        super().__init__()
        self.thread_id = thread_id
        self.resource_id = resource_id
        self.memory = memory or Memory()

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """Return all messages of the thread, oldest first; empty if the thread does not exist.

        With observational memory, the messages that are observed are replaced by one system message
        with the observations.
        """
        if self.memory.options.observational_memory is None:
            return to_messages(self._read_messages())
        built = self.memory.context(self.thread_id, resource_id=self.resource_id)
        observations, history = built.block("observations"), built.block("history")
        if observations is None:
            return to_messages(self._read_messages())
        return [
            SystemMessage(observations.text),
            *to_messages(history.messages if history else ()),
        ]

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Store messages, and delete those that LangGraph names in a `RemoveMessage`.

        As in LangGraph, a `RemoveMessage` with the id `__remove_all__` deletes all messages of the
        thread, and the messages before it are not stored.
        """
        removed_ids, added, removes_all = _apply_removals(messages)
        with routing.atomic():
            if removes_all:
                self.clear()
            elif removed_ids:
                self._delete_messages(removed_ids)
            rows = from_messages(added, self.thread_id)
            self.memory.save_turn(self.thread_id, rows, resource_id=self.resource_id)

    def _delete_messages(self, library_ids: set[str]) -> None:
        """Delete messages of the thread by their ids in LangChain.

        The result of a tool is stored in the message with its call, so it is removed from there.
        """
        row_ids = {_make_row_id(self.thread_id, library_id) for library_id in library_ids}
        deleted, changed = [], []
        for message in self._read_messages():
            if message.id in row_ids or message.id in library_ids:
                deleted.append(message.id)
            elif (content := _remove_results(message, library_ids)) is not None:
                changed.append({"id": message.id, "content": content})
        if deleted:
            self.memory.delete_messages(deleted)
        if changed:
            self.memory.update_messages(changed)

    def clear(self) -> None:
        """Delete all messages of the thread, but not the thread."""
        self.memory.delete_messages([message.id for message in self._read_messages()])

    def _read_messages(self) -> Sequence[StoredMessage]:
        if self.memory.get_thread_by_id(self.thread_id) is None:
            return []
        page = self.memory.list_messages(
            self.thread_id, resource_id=self.resource_id, per_page=False
        )
        return page.messages


def _apply_removals(
    messages: Sequence[BaseMessage],
) -> tuple[set[str], list[BaseMessage], bool]:
    """Return the ids to remove, the messages to store, and whether to remove all stored ones.

    Removals apply in order: a message that comes after the removal of its id replaces the stored
    message, and one that comes before it is not stored.
    """
    removed_ids: set[str] = set()
    added: list[BaseMessage] = []
    removes_all = False
    for message in messages:
        if not isinstance(message, RemoveMessage):
            removed_ids.discard(message.id or "")
            added.append(message)
        elif message.id == REMOVE_ALL_ID:
            removed_ids, added, removes_all = set(), [], True
        elif message.id:
            added = [one for one in added if one.id != message.id]
            removed_ids.add(message.id)
    return removed_ids, added, removes_all


def _remove_results(message: StoredMessage, library_ids: set[str]) -> Json | None:
    """Return the content without the tool results that have these ids; None if it has none."""
    changed = False
    parts = []
    for part in message.content.get("parts", ()):
        metadata = get_part_metadata(LIBRARY, part)
        if metadata.get("return", {}).get("id") in library_ids and is_tool_call(part):
            call = {k: v for k, v in part["toolInvocation"].items() if k not in OUTCOME_KEYS}
            part = {**part, "toolInvocation": {**call, "state": "call"}}
            part["providerMetadata"] = {
                **part["providerMetadata"],
                LIBRARY: {key: value for key, value in metadata.items() if key != "return"},
            }
            changed = True
        parts.append(part)
    return {**message.content, "parts": parts} if changed else None


def _make_row_id(thread_id: str, message_id: str | None) -> str:
    """Return the id of a stored message. LangChain's ids are unique within a thread only."""
    return str(uuid.uuid5(_ID_NAMESPACE, f"{thread_id}\n{message_id}"))


def from_messages(messages: Sequence[BaseMessage], thread_id: str) -> list[Json]:
    """Return messages for `save_turn`, without the system messages.

    Args:
        messages: LangChain's messages.
        thread_id: The thread. The returned ids are made from it and LangChain's ids.
    """
    rows = []
    for message in messages:
        dumped = message_to_dict(message)
        kind, data = dumped["type"], make_jsonable(dumped["data"])
        if _is_instruction(kind, data):
            continue
        row = {"role": _get_role(kind, data), "content": _convert_content(kind, data)}
        if data.get("id"):
            row["id"] = _make_row_id(thread_id, data["id"])
        rows.append(row)
    return rows


def _is_instruction(kind: str, data: Json) -> bool:
    if kind in INSTRUCTION_KINDS:
        return True
    return kind in _CHAT_KINDS and str(data.get("role")).strip().lower() in INSTRUCTION_ROLES


def _get_role(kind: str, data: Json) -> str:
    if kind in TOOL_KINDS:
        return "tool"
    if kind in _CHAT_KINDS:
        is_answer = str(data.get("role")).strip().lower() in _ANSWER_ROLES
        return "assistant" if is_answer else "user"
    return "user" if kind in _USER_KINDS else "assistant"


def _convert_content(kind: str, data: Json) -> Json:
    content = "" if data.get("content") is None else data["content"]
    if kind in TOOL_KINDS:
        return _convert_tool_result(kind, data | {"content": content})
    metadata = {key: value for key, value in data.items() if key not in ("content", "tool_calls")}
    metadata["type"] = kind
    metadata["is_list"] = isinstance(content, list) or None
    parts = content_blocks.build_parts(content, data.get("tool_calls") or [])
    parts = parts or [{"type": "text", "text": ""}]
    return build_content(LIBRARY, parts, metadata)


def _convert_tool_result(kind: str, data: Json) -> Json:
    converted_keys = ("content", "tool_call_id", "name", "type", "status")
    metadata = {key: value for key, value in data.items() if key not in converted_keys}
    metadata |= {"name": data.get("name"), "order": time.time_ns()}
    if kind != "tool":
        metadata["type"] = kind
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
    part = attach_metadata(LIBRARY, part, metadata, under="return")
    return build_content(LIBRARY, [part], {"type": "tool"})


def to_messages(messages: Iterable[StoredMessage]) -> list[BaseMessage]:
    """Return stored messages, from any client, as LangChain's messages."""
    return messages_from_dict(
        [
            dumped
            for message in deduplicate_tool_calls(messages)
            for dumped in _dump_message(message)
        ]
    )


def _dump_message(message: StoredMessage) -> Iterator[Json]:
    content = message.content
    metadata = get_message_metadata(LIBRARY, content)
    if message.role == "tool":
        for part in content["parts"]:
            if is_tool_call(part):
                yield _build_tool_message(part)
        return
    if message.role != "assistant":
        yield _build_message("human", content["parts"], metadata, message)
        return
    for step in split_steps(content, library=LIBRARY, single_step=metadata is not None):
        yield _build_message("ai", step.parts, metadata, message)
        for part in step.results:
            yield _build_tool_message(part)


def _build_message(
    kind: str, parts: Sequence[Json], metadata: Mapping[str, Any] | None, message: StoredMessage
) -> Json:
    fields = dict(metadata or {"id": message.id})
    kind = fields.pop("type", kind)
    is_list = fields.pop("is_list", False) is True
    content, tool_calls = content_blocks.build_blocks(parts, is_list=is_list)
    data = {"content": content, **fields}
    if tool_calls or kind == "ai":
        data["tool_calls"] = tool_calls
    return {"type": kind, "data": data}


def _build_tool_message(part: Json) -> Json:
    call = part["toolInvocation"]
    metadata = dict(get_part_metadata(LIBRARY, part).get("return", {}))
    is_own = metadata.pop("order", None) is not None
    content, failed = get_outcome(call)
    if not is_own:
        content = content if isinstance(content, str) else content_blocks.dump_json(content)
        metadata["name"] = call.get("toolName")
    kind = metadata.pop("type", "tool")
    data = {
        "content": content,
        "tool_call_id": str(call.get("toolCallId")),
        "status": "error" if failed else "success",
        **metadata,
    }
    return {"type": kind, "data": data}
