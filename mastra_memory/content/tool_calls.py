"""Tool calls inside message content: join a call and its result, leave out what never ended."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from mastra_memory.content.normalization import Content
from mastra_memory.db import json_text
from mastra_memory.types import StoredMessage

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
_KIND = "tool-invocation"


def may_contain_calls(content_json: str) -> bool:
    """False for content that surely has no tool call; cheap, nothing is parsed."""
    return _KIND in content_json


def iter_invocations(content: Mapping[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Every tool call of the content with the place of its part."""
    for place, part in enumerate(content.get("parts", ())):
        found = part.get("toolInvocation") if part.get("type") == _KIND else None
        if isinstance(found, dict):
            yield place, found


def get_state_rank(invocation: Mapping[str, Any]) -> int:
    """How far a call has come; from `FINISHED_RANK` on it has a result, an error or a refusal."""
    return STATE_RANKS.get(str(invocation.get("state")), 0)


def get_finished_ids(content: Mapping[str, Any]) -> set[str]:
    """The ids of the calls whose outcome the content tells."""
    return {
        _id(call) for _, call in iter_invocations(content) if get_state_rank(call) >= FINISHED_RANK
    }


def get_open_ids(content: Mapping[str, Any]) -> set[str]:
    """The ids of the calls that wait for an outcome."""
    return {
        _id(call) for _, call in iter_invocations(content) if get_state_rank(call) < FINISHED_RANK
    }


def _id(invocation: Mapping[str, Any]) -> str:
    return str(invocation.get("toolCallId"))


def merge_call_states(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """One call as told twice: the later word counts, but arguments stay, and nothing goes back."""
    if get_state_rank(new) < get_state_rank(old):
        old, new = new, old
    both = {**old, **new}
    for key in ("args", "rawInput", "toolName"):
        if not new.get(key) and old.get(key):
            both[key] = old[key]
    return both


def _joined_parts(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a call told twice; what libraries noted beside it is kept from both."""
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
    """A message as it is sent again: its calls keep what only the stored ones know."""
    known = {_id(call): old["parts"][place] for place, call in iter_invocations(old)}
    parts = list(new["parts"])
    for place, call in iter_invocations(new):
        if _id(call) in known:
            parts[place] = _joined_parts(known[_id(call)], parts[place])
    return {**new, "parts": parts}


def fold_tool_calls(contents: Sequence[Content | None]) -> list[Content | None]:
    """The messages of a conversation, each result inside its call's part.

    A result that came in a later message moves to the first message with its call; a message that
    held nothing else becomes None. A call that has ended is left alone: some providers use an id
    again.
    """
    result = list(contents)
    open_at: dict[str, tuple[int, int]] = {}
    for index, content in enumerate(contents):
        taken: set[int] = set()
        for place, call in iter_invocations(content or {}):
            if (home := open_at.get(_id(call))) and home[0] != index:
                whole = _put(result, home, (content or {})["parts"][place])
                taken.add(place)
                if get_state_rank(whole["toolInvocation"]) >= FINISHED_RANK:
                    del open_at[_id(call)]
            elif get_state_rank(call) < FINISHED_RANK:
                open_at[_id(call)] = (index, place)
        if taken:
            result[index] = _without(content or {}, taken)
    return result


def fold_stored_messages(
    messages: Sequence[StoredMessage],
    *,
    roles: Collection[str] | None = None,
    drop_open: bool = False,
    answered: Collection[str] = (),
) -> list[StoredMessage]:
    """Return the messages with each tool result inside the part of its call.

    See `fold_tool_calls`. Messages that hold nothing else are left out; those without tool calls
    are returned as they are, and their content is not parsed.

    Args:
        messages: Messages of one thread, oldest first.
        roles: Fold only the messages of these roles; None means all.
        drop_open: Leave out calls that have no outcome.
        answered: Ids of calls that `drop_open` keeps, because a newer message has their outcome.
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
    for message, before, after in zip(messages, contents, fold_tool_calls(contents), strict=True):
        if drop_open and after is not None:
            after = drop_open_calls(after, answered)
        if after is before:
            result.append(message)
        elif after is not None:
            result.append(message._replace(content_json=json_text.dumps(after)))
    return result


def _put(
    contents: list[Content | None], home: tuple[int, int], part: Mapping[str, Any]
) -> dict[str, Any]:
    """Join a part to the one at message and place `home`; the joined part."""
    index, place = home
    target = contents[index]
    assert target is not None
    parts = list(target["parts"])
    parts[place] = _joined_parts(parts[place], part)
    contents[index] = {**target, "parts": parts}
    return parts[place]


def _without(content: Content, places: Collection[int]) -> Content | None:
    parts = [part for place, part in enumerate(content["parts"]) if place not in places]
    says_something = any(part.get("type") != "step-start" for part in parts)
    return {**content, "parts": parts} if says_something else None


def drop_open_calls(content: Content, answered: Collection[str] = ()) -> Content | None:
    """The content without calls that have no outcome, except the `answered`; None for nothing."""
    places = {
        place
        for place, call in iter_invocations(content)
        if get_state_rank(call) < FINISHED_RANK and _id(call) not in answered
    }
    return _without(content, places) if places else content


def get_lone_result_ids(role: str, content: Mapping[str, Any]) -> set[str]:
    """The ids of results whose calls are in an earlier message.

    An assistant's message holds its calls itself; any other role can only bring results.
    """
    return set() if role == "assistant" else get_finished_ids(content)
