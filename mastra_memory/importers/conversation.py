"""Build a thread from the messages of a conversation, in the order of the source."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from mastra_memory.content import normalization
from mastra_memory.db import times
from mastra_memory.importers import coercion
from mastra_memory.importers.records import (
    ImportedMessage,
    ImportedThread,
    OmittedRecord,
    SourceItem,
    derive_id,
)

INSTRUCTION_ROLES = frozenset({"system", "developer"})
"""Roles of messages that are skipped: instructions are not part of a conversation."""

PartDict = dict[str, Any]
"""A part of a message's content in Mastra's format 2."""

NO_MESSAGES = "none of its messages can be stored"
"""The reason for skipping a thread that would stay empty."""

_TIME_STEP = timedelta(milliseconds=1)
_MAX_TIME = times.truncate_to_milliseconds(datetime.max)


@dataclass(slots=True)
class _DraftMessage:
    role: str
    parts: list[PartDict]
    time: datetime
    metadata: Mapping[str, Any]
    location: str


@dataclass(slots=True)
class _DraftToolCall:
    invocation: dict[str, Any]
    message: _DraftMessage
    results: list[Any] = field(default_factory=list)


class ConversationBuilder:
    """Collect the messages of one conversation, then yield a thread and its messages.

    Times never decrease, so that messages ordered by time keep the order of the source.
    """

    def __init__(
        self,
        thread_id: str,
        resource_id: str,
        start: datetime,
        location: str,
        *,
        keeps_keys: bool = False,
    ) -> None:
        """Create an empty conversation.

        Args:
            thread_id: The id of the thread.
            resource_id: The resource of the thread.
            start: The time of the first message if it has none.
            location: Where the conversation is in the source, for the report.
            keeps_keys: Use the keys of messages as their ids.
        """
        self._keeps_keys = keeps_keys
        self.thread_id = thread_id
        self.resource_id = resource_id
        self.location = location
        self.omitted: list[OmittedRecord] = []
        self._start = start
        self._messages: dict[str, _DraftMessage] = {}
        self._tool_calls: list[_DraftToolCall] = []

    def add_message(
        self,
        key: str,
        role: str,
        parts: Sequence[PartDict],
        *,
        time: datetime | None = None,
        metadata: Mapping[str, Any] | None = None,
        location: str = "",
    ) -> None:
        """Add a message.

        Args:
            key: Identifies the message in its conversation. The id is derived from it.
            role: The role of the message.
            parts: The parts of the content, in Mastra's format 2.
            time: When it was created. The default is one millisecond after the previous message.
                A time before the previous message is replaced by the time of that message.
            metadata: The metadata of the content.
            location: Where it is in the source; default: the location of the conversation.
        """
        if self._messages:
            time = max(time or _add_time_step(self.last_time), self.last_time)
        message = _DraftMessage(role, list(parts), time or self._start, metadata or {}, location)
        self._messages[key] = message
        for part in message.parts:
            if "toolInvocation" in part:
                self._tool_calls.append(_DraftToolCall(part["toolInvocation"], message))

    def add_tool_result(
        self,
        result: Any,
        *,
        call_id: str = "",
        tool: str = "",
        failed: bool = False,
        extra_parts: Sequence[PartDict] = (),
    ) -> bool:
        """Store the result of a tool call, and return False if there is no such call.

        Several results of one call become a list.

        Args:
            result: The result as a JSON value.
            call_id: The id of the call. Without it the newest call of `tool` without a result
                gets the result.
            tool: The name of the tool; empty for any tool.
            failed: Whether the result is an error.
            extra_parts: Parts that are added to the message of the call, such as an image.
        """
        call = self._find_tool_call(call_id, tool)
        if call is None:
            return False
        call.results.append(result)
        value = call.results[0] if len(call.results) == 1 else list(call.results)
        normalization.set_result(call.invocation, value, failed=failed)
        call.message.parts.extend(extra_parts)
        return True

    def _find_tool_call(self, call_id: str, tool: str) -> _DraftToolCall | None:
        newest_first = reversed(self._tool_calls)
        if call_id:
            return next((c for c in newest_first if c.invocation["toolCallId"] == call_id), None)
        calls = [
            call
            for call in newest_first
            if not tool or _is_same_tool(call.invocation["toolName"], tool)
        ]
        return next((call for call in calls if not call.results), calls[0] if calls else None)

    def omit(self, omitted: OmittedRecord) -> None:
        """Report a message that is not stored."""
        self.omitted.append(omitted)

    @property
    def last_time(self) -> datetime:
        """The time of the last message, or the start time if there is none."""
        return next(reversed(self._messages.values())).time if self._messages else self._start

    def get_message_time(self, key: str) -> datetime | None:
        """Return the time of a message, or None if it was not added."""
        return self._messages[key].time if key in self._messages else None

    def get_message_id(self, key: str) -> str:
        """Return the id of a message, which is the same in every import."""
        return key if self._keeps_keys else derive_id(self.thread_id, key)

    def build_items(
        self,
        *,
        title: str = "",
        metadata: Mapping[str, Any] | None = None,
        clone_source_id: str | None = None,
        created_at: datetime | None = None,
        updated_at: datetime | None = None,
        copied: frozenset[str] = frozenset(),
        keep_empty: bool = False,
    ) -> Iterator[SourceItem]:
        """Yield the thread, its messages, and the omitted records.

        If no message of the source can be stored, the thread is not stored either, and is reported
        as skipped. A conversation that is empty in the source becomes an empty thread.

        Args:
            title: The title of the thread.
            metadata: The metadata of the thread.
            clone_source_id: The thread that this one is a clone of.
            created_at: Default: the start time.
            updated_at: A time before the last message is replaced by the time of that message.
            copied: The keys of messages that are counted as branch copies.
            keep_empty: Store the thread although no message can be stored.
        """
        if self.omitted and not self._messages and not keep_empty:
            yield OmittedRecord("threads", "skipped", self.location, NO_MESSAGES)
            yield from self.omitted
            return
        yield ImportedThread(
            id=self.thread_id,
            resource_id=self.resource_id,
            title=title,
            title_source="manual" if title else "",
            metadata=metadata,
            clone_source_id=clone_source_id,
            created_at=created_at or self._start,
            updated_at=max(updated_at or self.last_time, self.last_time),
            location=self.location,
        )
        yield from self._iter_messages(copied)
        yield from self.omitted

    def _iter_messages(self, copied: frozenset[str]) -> Iterator[ImportedMessage]:
        for key, message in self._messages.items():
            yield ImportedMessage(
                id=self.get_message_id(key),
                thread_id=self.thread_id,
                resource_id=self.resource_id,
                role=message.role,
                content=normalization.content_from_parts(message.parts, message.metadata),
                created_at=message.time,
                is_copy=key in copied,
                location=message.location or self.location,
            )


def build_upload_part(name: str, mime_type: str = "", **details: Any) -> PartDict:
    """Return a part for an uploaded file of which the source contains only the name.

    Args:
        name: The name of the file.
        mime_type: The MIME type, if the source has it.
        details: Metadata of the part, such as the id of the file; empty values are left out.
    """
    metadata = coercion.drop_empty(**details)
    return {
        "type": "file",
        "filename": name,
        **coercion.drop_empty(mimeType=mime_type, metadata=metadata),
    }


def build_source_part(url: str, title: str = "") -> PartDict:
    """Return a part for a web page that a message cites, or for a document without a URL."""
    if url:
        return {"type": "source", "source": {"sourceType": "url", "url": url, "title": title}}
    return {"type": "source", "source": {"sourceType": "document", "title": title}}


def _add_time_step(time: datetime) -> datetime:
    """Return the time one millisecond later, or the last possible time."""
    return min(time, _MAX_TIME - _TIME_STEP) + _TIME_STEP


def _is_same_tool(called: str, responding: str) -> bool:
    """Return whether a tool can answer a call; `browser` answers calls of `browser.search`."""
    return called == responding or called.startswith(responding + ".")
