"""Tool calls across messages: a result goes to its call, and what was known stays known."""

from collections.abc import Mapping, Sequence
from typing import Any

from mastra_memory import messages
from mastra_memory.content import normalization, tool_calls
from mastra_memory.context.turns import MessageRow, build_row
from mastra_memory.db import locking
from mastra_memory.recall import recent

MAX_LOOKBACK_MESSAGES = 40
"""A result belongs to a call that is among the last so many messages."""


def reconcile_tool_calls(thread_id: str, rows: Sequence[MessageRow]) -> list[MessageRow]:
    """The rows to save instead of these, given what the thread holds.

    A call that is sent again keeps its arguments and never goes back to an earlier state; calls
    that were cut off while they came in are left out. A result goes into the part of its call
    where nothing stands between the two, so that the conversation reads the same; else it
    stays a message, with the arguments of its call. The thread is locked meanwhile.
    """
    normal = [_normal(row) for row in rows]
    if not any(True for row in normal for _ in tool_calls.iter_invocations(row["content"])):
        return [row for row in normal if _says_something(row)]
    locking.lock_threads([thread_id])
    stored = {one.id: one for one in messages.get_messages([row["id"] for row in normal])}
    normal = [
        {**row, "content": tool_calls.merge_stored_calls(stored[row["id"]].content, row["content"])}
        if row["id"] in stored
        else row
        for row in normal
    ]
    return _folded(_tail(thread_id, normal), normal)


def _normal(row: MessageRow) -> MessageRow:
    content = normalization.normalize_content(row)
    kept = [
        part
        for part in content["parts"]
        if (part.get("toolInvocation") or {}).get("state") != "partial-call"
    ]
    return {**row, "content": {**content, "parts": kept}}


def _says_something(row: MessageRow) -> bool:
    return bool(row["content"]["parts"] or row["content"].get("content"))


def _tail(thread_id: str, rows: Sequence[MessageRow]) -> list[MessageRow]:
    """The messages before these that hold calls whose results they may bring, oldest first."""
    if not any(tool_calls.get_lone_result_ids(row["role"], row["content"]) for row in rows):
        return []
    ids = [row["id"] for row in rows]
    found = recent.list_newest(thread_id, MAX_LOOKBACK_MESSAGES, without=ids)
    return [build_row(one, one.thread_id, one.resource_id, one.role) for one in reversed(found)]


def _folded(tail: Sequence[MessageRow], rows: Sequence[MessageRow]) -> list[MessageRow]:
    """Put each result where it belongs; give back what has changed of the tail, and the rows."""
    whole = [*tail, *(_with_content(row, row["content"]) for row in rows)]
    changed: set[int] = set()
    for place in range(len(tail), len(whole)):
        role, content = whole[place]["role"], whole[place]["content"]
        if not tool_calls.get_lone_result_ids(role, content):
            continue
        home = _home(whole, place)
        if home is None:
            whole[place] = _with_content(whole[place], _with_arguments(whole[:place], content))
            continue
        pair = tool_calls.fold_tool_calls([whole[home]["content"], content])
        whole[home] = _with_content(whole[home], pair[0])
        left = pair[1] and _with_arguments(whole[:place], pair[1])
        whole[place] = _with_content(whole[place], left)
        changed.add(home)
    wanted = [whole[place] for place in range(len(whole)) if place in changed or place >= len(tail)]
    return [row for row in wanted if row["content"] is not None and _says_something(row)]


def _with_content(row: MessageRow, content: Any) -> MessageRow:
    return {**row, "content": content}


def _home(rows: Sequence[MessageRow], place: int) -> int | None:
    """Where the open call of a result is, if nothing stands between; joined results are gone."""
    results = tool_calls.get_lone_result_ids(rows[place]["role"], rows[place]["content"])
    for earlier in range(place - 1, -1, -1):
        content = rows[earlier]["content"]
        if content is None:
            continue
        if rows[earlier]["role"] != "assistant":
            return None
        waiting = {
            str(call.get("toolCallId"))
            for _, call in tool_calls.iter_invocations(content)
            if tool_calls.get_state_rank(call) < tool_calls.FINISHED_RANK
        }
        return earlier if results & waiting else None
    return None


def _with_arguments(
    before: Sequence[MessageRow], content: normalization.Content
) -> normalization.Content:
    """A lone result with name and arguments of its call, where that is among the rows before."""
    known = _calls_by_id(before)
    changed = {"parts": [_filled(part, known) for part in content["parts"]]}
    return {**content, **changed}


def _calls_by_id(rows: Sequence[MessageRow]) -> dict[str, dict[str, Any]]:
    """The calls that these messages hold, by id, the last of each."""
    found = (row["content"] for row in rows if row["content"] is not None)
    return {
        str(call.get("toolCallId")): call
        for content in found
        for _, call in tool_calls.iter_invocations(content)
    }


def _filled(part: dict[str, Any], known: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    result = part.get("toolInvocation")
    call = known.get(str(result.get("toolCallId"))) if isinstance(result, dict) else None
    if call is None or not isinstance(result, dict):
        return part
    kept = {key: call[key] for key in ("toolName", "args") if call.get(key) and not result.get(key)}
    return {**part, "toolInvocation": {**result, **kept}} if kept else part
