"""Merge tool results into their calls, and remove calls without an outcome.

An outcome is a result, an error or a denial.

Mastra stores a call and its result in one part. Clients also send the result in a later message,
or the same call again in a later state.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, Self, TypeVar

from mastra_memory.content.normalization import Content
from mastra_memory.db import json_text

STATE_RANKS = {
    "partial-call": 0,
    "call": 1,
    "approval-requested": 2,
    "approval-responded": 3,
    "result": 4,
    "output-error": 4,
    "output-denied": 4,
}
FINISHED_RANK = 4
_PART_TYPE = "tool-invocation"


def may_contain_calls(content_json: str) -> bool:
    """Return False if the content has no tool call.

    This searches the JSON text without parsing it, so True may be wrong.
    """
    return _PART_TYPE in content_json


def iter_tool_calls(content: Mapping[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each tool call of the content with the index of its part."""
    for place, part in enumerate(content.get("parts", ())):
        found = part.get("toolInvocation") if part.get("type") == _PART_TYPE else None
        if isinstance(found, dict):
            yield place, found


def get_state_rank(invocation: Mapping[str, Any]) -> int:
    """Return the rank of the state of a call. A call with `FINISHED_RANK` has an outcome."""
    return STATE_RANKS.get(str(invocation.get("state")), 0)


def get_finished_call_ids(content: Mapping[str, Any]) -> set[str]:
    """Return the ids of the calls that have an outcome in the content."""
    return {
        _get_call_id(call)
        for _, call in iter_tool_calls(content)
        if get_state_rank(call) >= FINISHED_RANK
    }


def get_pending_call_ids(content: Mapping[str, Any]) -> set[str]:
    """Return the ids of the calls that have no outcome."""
    return {
        _get_call_id(call)
        for _, call in iter_tool_calls(content)
        if get_state_rank(call) < FINISHED_RANK
    }


def _get_call_id(invocation: Mapping[str, Any]) -> str:
    return str(invocation.get("toolCallId"))


class ToolPart(NamedTuple):
    """What a message contains of one tool call."""

    call_id: str
    is_finished: bool
    """Whether it has the outcome."""
    is_call: bool
    """Whether it has the call. Parts with an outcome in messages of other roles than the assistant
    contain only the outcome."""
    has_arguments: bool


Need = Literal["call", "result", "arguments"]


class Unpaired(NamedTuple):
    """A tool call without its result, a result without its call, or one without arguments."""

    message_index: int
    call_id: str
    need: Need
    """What is missing. A result in the part of its call may repeat a call without its arguments."""


def list_tool_parts(role: str, content: Mapping[str, Any]) -> list[ToolPart]:
    """Return the tool calls and results of a message, in order."""
    return [
        build_tool_part(role, call.get("toolCallId"), call.get("state"), bool(call.get("args")))
        for _, call in iter_tool_calls(content)
    ]


def build_tool_part(role: str, call_id: Any, state: Any, has_arguments: bool) -> ToolPart:
    """Return the `ToolPart` of a stored part in a message of this role."""
    is_finished = get_state_rank({"state": state}) >= FINISHED_RANK
    is_call = not is_finished or role == "assistant"
    return ToolPart(str(call_id), is_finished, is_call, has_arguments)


class Pairing(NamedTuple):
    """Which calls and results of some messages of one thread belong together."""

    pairs: list[tuple[int, int]]
    """The indexes of the messages with a call and with its result, if they are two messages."""
    unpaired: list[Unpaired]
    """Calls and results whose other half is in none of the messages."""


def pair_tool_calls(messages: Sequence[Sequence[ToolPart]]) -> Pairing:
    """Match the calls and results in messages of one thread.

    A result belongs to the last call with its id before it. Calls with an outcome are not
    considered, because some providers use an id again for another call.

    Args:
        messages: The tool calls of each message, oldest message first.
    """
    pairs: list[tuple[int, int]] = []
    unpaired: list[Unpaired] = []
    pending: dict[str, int] = {}
    for index, parts in enumerate(messages):
        for part in parts:
            call_index = pending.get(part.call_id)
            if call_index is not None and call_index != index:
                pairs.append((call_index, index))
            if not part.is_finished:
                pending[part.call_id] = index
            elif call_index is not None:
                del pending[part.call_id]
            elif not part.is_call:
                unpaired.append(Unpaired(index, part.call_id, "call"))
            elif not part.has_arguments:
                unpaired.append(Unpaired(index, part.call_id, "arguments"))
    unpaired += [Unpaired(index, call_id, "result") for call_id, index in pending.items()]
    return Pairing(pairs, unpaired)


def merge_call_states(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two states of one tool call. The more advanced state wins; known arguments are kept."""
    if get_state_rank(new) < get_state_rank(old):
        old, new = new, old
    both = {**old, **new}
    for key in ("args", "rawInput", "toolName"):
        if not new.get(key) and old.get(key):
            both[key] = old[key]
    return both


def _merge_parts(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two parts with states of one tool call, and the metadata of providers in both."""
    both = {
        **old,
        **new,
        "toolInvocation": merge_call_states(old["toolInvocation"], new["toolInvocation"]),
    }
    before, after = old.get("providerMetadata"), new.get("providerMetadata")
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        both["providerMetadata"] = json_text.merge_objects(before, after)
    return both


def merge_stored_calls(old: Content, new: Content) -> Content:
    """Return the new content of a message, with its tool calls merged into the stored ones."""
    stored = {_get_call_id(call): old["parts"][index] for index, call in iter_tool_calls(old)}
    parts = list(new["parts"])
    for index, call in iter_tool_calls(new):
        if _get_call_id(call) in stored:
            parts[index] = _merge_parts(stored[_get_call_id(call)], parts[index])
    return {**new, "parts": parts}


def merge_tool_results(contents: Sequence[Content | None]) -> list[Content | None]:
    """Return the contents of consecutive messages, with each tool result in the part of its call.

    A result in a later message moves to the first message with its call. A message that contained
    nothing else becomes None. Calls with an outcome do not change, because some providers use an
    id again for another call.

    Args:
        contents: The contents of messages of one thread, oldest first. None is skipped.
    """
    result = list(contents)
    pending: dict[str, tuple[int, int]] = {}
    for index, content in enumerate(contents):
        moved: set[int] = set()
        for place, call in iter_tool_calls(content or {}):
            if (target := pending.get(_get_call_id(call))) and target[0] != index:
                merged = _merge_into(result, target, (content or {})["parts"][place])
                moved.add(place)
                if get_state_rank(merged["toolInvocation"]) >= FINISHED_RANK:
                    del pending[_get_call_id(call)]
            elif get_state_rank(call) < FINISHED_RANK:
                pending[_get_call_id(call)] = (index, place)
        if moved:
            result[index] = _remove_parts(content or {}, moved)
    return result


class MessageRow(Protocol):
    """A named tuple of a stored message, such as `StoredMessage`."""

    @property
    def role(self) -> str:
        """The role."""

    @property
    def content_json(self) -> str:
        """The content as JSON text."""

    @property
    def content(self) -> Any:
        """The content, parsed."""

    def _replace(self, *args: Any, **kwargs: Any) -> Self: ...


AnyMessageRow = TypeVar("AnyMessageRow", bound=MessageRow)


def merge_stored_tool_results(
    messages: Sequence[AnyMessageRow],
    *,
    roles: Collection[str] | None = None,
    drop_pending: bool = False,
    answered: Collection[str] = (),
) -> list[AnyMessageRow]:
    """Return the messages with each tool result inside the part of its call.

    See `merge_tool_results`. Messages that contain only moved results are left out. Messages
    without tool calls are returned unchanged, and their content is not parsed.

    Args:
        messages: Messages of one thread, oldest first.
        roles: Merge only in messages of these roles; None means all.
        drop_pending: Leave out calls that have no outcome.
        answered: Ids of calls to keep with `drop_pending`, because a newer message has their
            outcome.
    """
    contents = [
        message.content
        if may_contain_calls(message.content_json) and (roles is None or message.role in roles)
        else None
        for message in messages
    ]
    if not any(contents):
        return list(messages)
    result = []
    for message, before, after in zip(
        messages, contents, merge_tool_results(contents), strict=True
    ):
        if drop_pending and after is not None:
            after = remove_pending_calls(after, answered)
        if after is before:
            result.append(message)
        elif after is not None:
            result.append(message._replace(content_json=json_text.dumps(after)))
    return result


def _merge_into(
    contents: list[Content | None], target: tuple[int, int], part: Mapping[str, Any]
) -> dict[str, Any]:
    """Merge a part into the part at `target` (index of the message, index of the part)."""
    message_index, part_index = target
    content = contents[message_index]
    assert content is not None
    parts = list(content["parts"])
    merged = _merge_parts(parts[part_index], part)
    parts[part_index] = merged
    contents[message_index] = {**content, "parts": parts}
    return merged


def _remove_parts(content: Content, places: Collection[int]) -> Content | None:
    parts = [part for place, part in enumerate(content["parts"]) if place not in places]
    has_content = any(part.get("type") != "step-start" for part in parts)
    return {**content, "parts": parts} if has_content else None


def remove_pending_calls(content: Content, answered: Collection[str] = ()) -> Content | None:
    """Return the content without calls that have no outcome, or None if nothing is left.

    Calls with the ids `answered` are kept.
    """
    places = {
        place
        for place, call in iter_tool_calls(content)
        if get_state_rank(call) < FINISHED_RANK and _get_call_id(call) not in answered
    }
    return _remove_parts(content, places) if places else content


def pair_stored_tool_calls(messages: Sequence[AnyMessageRow]) -> Pairing:
    """Match the calls and results in stored messages of one thread, oldest first."""
    return pair_tool_calls(
        [
            list_tool_parts(message.role, message.content)
            if may_contain_calls(message.content_json)
            else ()
            for message in messages
        ]
    )


def drop_lone_results(messages: Sequence[AnyMessageRow]) -> list[AnyMessageRow]:
    """Return the messages of one thread without the results whose calls are not before them.

    Providers refuse such results. Messages with nothing else are left out. The messages are
    ordered, oldest first.
    """
    lone: dict[int, set[str]] = {}
    for index, call_id, need in pair_stored_tool_calls(messages).unpaired:
        if need == "call":
            lone.setdefault(index, set()).add(call_id)
    if not lone:
        return list(messages)
    result = []
    for index, message in enumerate(messages):
        if index not in lone:
            result.append(message)
        elif (content := _remove_results(message.content, lone[index])) is not None:
            result.append(message._replace(content_json=json_text.dumps(content)))
    return result


def _remove_results(content: Content, call_ids: Collection[str]) -> Content | None:
    return _remove_parts(
        content,
        {
            place
            for place, call in iter_tool_calls(content)
            if get_state_rank(call) >= FINISHED_RANK and _get_call_id(call) in call_ids
        },
    )


def get_unpaired_result_ids(role: str, content: Mapping[str, Any]) -> set[str]:
    """Return the ids of the tool results in a message that does not contain their calls.

    Messages of the assistant contain their calls. Messages of other roles contain only results.
    """
    return set() if role == "assistant" else get_finished_call_ids(content)
