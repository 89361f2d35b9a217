"""One conversation while it is read: times only grow, and tool results find their calls."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from mastra_memory.content import normalization
from mastra_memory.db import times
from mastra_memory.importers.records import (
    ImportedMessage,
    ImportedThread,
    OmittedRecord,
    SourceItem,
    derive_id,
)

INSTRUCTION_ROLES = frozenset({"system", "developer"})
"""Roles of instructions, which are not part of a conversation."""

_TIME_STEP = timedelta(milliseconds=1)
_MAX_TIME = times.truncate_to_milliseconds(datetime.max)


@dataclass(slots=True)
class _DraftMessage:
    role: str
    parts: list[dict[str, Any]]
    moment: datetime
    metadata: Mapping[str, Any]
    location: str


@dataclass(slots=True)
class _OpenToolCall:
    invocation: dict[str, Any]
    turn: _DraftMessage
    answers: list[Any] = field(default_factory=list)


class ConversationBuilder:
    """Collects the turns of one conversation and yields what is to be stored."""

    def __init__(self, thread_id: str, resource_id: str, start: datetime, location: str) -> None:
        """`start` is the time of a first turn that names none itself."""
        self.thread_id = thread_id
        self.resource_id = resource_id
        self.location = location
        self._start = start
        self._messages: dict[str, _DraftMessage] = {}
        self._tool_calls: list[_OpenToolCall] = []
        self.omitted: list[OmittedRecord] = []

    def add_message(
        self,
        key: str,
        role: str,
        content: Sequence[dict[str, Any]],
        *,
        moment: datetime | None = None,
        metadata: Mapping[str, Any] | None = None,
        location: str = "",
    ) -> None:
        """One more turn. `key` makes its id; one without a time comes right after the last one.

        A turn that claims to be earlier than the one before gets that one's time.
        """
        if self._messages:
            moment = max(moment or _add_time_step(self.last_time), self.last_time)
        turn = _DraftMessage(role, list(content), moment or self._start, metadata or {}, location)
        self._messages[key] = turn
        for part in turn.parts:
            if "toolInvocation" in part:
                self._tool_calls.append(_OpenToolCall(part["toolInvocation"], turn))

    def add_tool_result(
        self,
        result: Any,
        *,
        call_id: str = "",
        tool: str = "",
        failed: bool = False,
        further: Sequence[dict[str, Any]] = (),
    ) -> bool:
        """Give a call its result: the call of this id, else the newest open one of this tool.

        `further` parts (an image that a tool made) join the call's message. Several results of one
        call become a list. False when there is no such call.
        """
        call = self._find_tool_call(call_id, tool)
        if call is None:
            return False
        call.answers.append(result)
        whole = call.answers[0] if len(call.answers) == 1 else list(call.answers)
        normalization.set_result(call.invocation, whole, failed=failed)
        call.turn.parts.extend(further)
        return True

    def _find_tool_call(self, call_id: str, tool: str) -> _OpenToolCall | None:
        newest = reversed(self._tool_calls)
        if call_id:
            return next((c for c in newest if c.invocation["toolCallId"] == call_id), None)
        named = [c for c in newest if not tool or _is_same_tool(c.invocation["toolName"], tool)]
        return next((call for call in named if not call.answers), named[0] if named else None)

    def omit(self, omitted: OmittedRecord) -> None:
        """Remember a turn that is not stored by itself."""
        self.omitted.append(omitted)

    @property
    def last_time(self) -> datetime:
        """The time of the last turn, or of the start."""
        return next(reversed(self._messages.values())).moment if self._messages else self._start

    def get_message_time(self, key: str) -> datetime | None:
        """The time of a turn, None when there is no such turn."""
        return self._messages[key].moment if key in self._messages else None

    def build_items(
        self,
        *,
        title: str = "",
        metadata: Mapping[str, Any] | None = None,
        clone_source_id: str | None = None,
        created_at: datetime | None = None,
        updated_at: datetime | None = None,
        copied: frozenset[str] = frozenset(),
    ) -> Iterator[SourceItem]:
        """The thread, its messages, and what was left out. Turns in `copied` count as copies."""
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
        for key, turn in self._messages.items():
            yield ImportedMessage(
                id=self.message_id(key),
                thread_id=self.thread_id,
                resource_id=self.resource_id,
                role=turn.role,
                content=normalization.content_from_parts(turn.parts, turn.metadata),
                created_at=turn.moment,
                is_copy=key in copied,
                location=turn.location or self.location,
            )
        yield from self.omitted

    def message_id(self, key: str) -> str:
        """The id of a turn, the same at every import."""
        return derive_id(self.thread_id, key)


def _add_time_step(moment: datetime) -> datetime:
    """A tick later, as long as there is time left."""
    return min(moment, _MAX_TIME - _TIME_STEP) + _TIME_STEP


def _is_same_tool(called: str, answering: str) -> bool:
    """`browser` answers for `browser.search`."""
    return called == answering or called.startswith(answering + ".")
