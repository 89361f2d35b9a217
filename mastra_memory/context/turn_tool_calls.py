"""Match the tool calls of a turn with calls that are stored in the thread.

Agent libraries send the same call several times: while it is streamed, when it is complete, and
with its result, which may be in a separate message. A call should be stored as one message part.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from mastra_memory import messages
from mastra_memory.content import normalization, tool_calls
from mastra_memory.context.turns import MessageRow, build_row
from mastra_memory.db import locking
from mastra_memory.recall import recent

MAX_LOOKBACK_MESSAGES = 40
"""How many of the last messages are searched for the call of a result."""


def reconcile_tool_calls(thread_id: str, rows: Sequence[MessageRow]) -> list[MessageRow]:
    """Return the rows to save instead of `rows`, which may include earlier messages.

    A call that is sent again keeps its arguments and does not return to an earlier state. Calls
    that were interrupted while they were streamed are left out. A result moves into the part of
    its call if there is no message of another role between the two; otherwise it stays in a
    message of its own and gets the arguments of its call. The thread is locked until the end of
    the transaction if any row has a tool call.
    """
    normalized = [_normalize(row) for row in rows]
    if not any(True for row in normalized for _ in tool_calls.iter_tool_calls(row["content"])):
        return [row for row in normalized if _has_content(row)]
    locking.lock_threads([thread_id])
    stored = {
        message.id: message for message in messages.get_messages([row["id"] for row in normalized])
    }
    normalized = [
        _replace_content(
            row, tool_calls.merge_stored_calls(stored[row["id"]].content, row["content"])
        )
        if row["id"] in stored
        else row
        for row in normalized
    ]
    return _move_results(_read_earlier_rows(thread_id, normalized), normalized)


def _normalize(row: MessageRow) -> MessageRow:
    content = normalization.normalize_content(row)
    parts = [
        part
        for part in content["parts"]
        if (part.get("toolInvocation") or {}).get("state") != "partial-call"
    ]
    return {**row, "content": {**content, "parts": parts}}


def _has_content(row: MessageRow) -> bool:
    return bool(row["content"]["parts"] or row["content"].get("content"))


def _read_earlier_rows(thread_id: str, rows: Sequence[MessageRow]) -> list[MessageRow]:
    """Return the messages that may hold the calls of results in `rows`, oldest first."""
    if not any(tool_calls.get_unpaired_result_ids(row["role"], row["content"]) for row in rows):
        return []
    newest = recent.list_newest(
        thread_id, MAX_LOOKBACK_MESSAGES, exclude_ids=[row["id"] for row in rows]
    )
    return [
        build_row(message, message.thread_id, message.resource_id, message.role)
        for message in reversed(newest)
    ]


def _move_results(earlier: Sequence[MessageRow], rows: Sequence[MessageRow]) -> list[MessageRow]:
    """Move each result into its call. Return the earlier rows that changed, and the new rows."""
    all_rows = [*earlier, *rows]
    changed: set[int] = set()
    for index in range(len(earlier), len(all_rows)):
        role, content = all_rows[index]["role"], all_rows[index]["content"]
        if not tool_calls.get_unpaired_result_ids(role, content):
            continue
        call_index = _find_call(all_rows, index)
        if call_index is None:
            all_rows[index] = _replace_content(
                all_rows[index], _add_arguments(all_rows[:index], content)
            )
            continue
        folded, rest = tool_calls.merge_tool_results([all_rows[call_index]["content"], content])
        all_rows[call_index] = _replace_content(all_rows[call_index], folded)
        rest = rest and _add_arguments(all_rows[:index], rest)
        all_rows[index] = _replace_content(all_rows[index], rest)
        changed.add(call_index)
    return [
        row
        for index, row in enumerate(all_rows)
        if (index in changed or index >= len(earlier))
        and row["content"] is not None
        and _has_content(row)
    ]


def _replace_content(row: MessageRow, content: Any) -> MessageRow:
    return {**row, "content": content}


def _find_call(rows: Sequence[MessageRow], index: int) -> int | None:
    """Return the index of the row with the open call of the results at `index`, or None.

    Only the row directly before it is considered, and only if it is a message of the assistant.
    Rows without content are results that have already been moved; they are skipped.
    """
    results = tool_calls.get_unpaired_result_ids(rows[index]["role"], rows[index]["content"])
    for earlier in range(index - 1, -1, -1):
        content = rows[earlier]["content"]
        if content is None:
            continue
        if rows[earlier]["role"] != "assistant":
            return None
        return earlier if results & tool_calls.get_pending_call_ids(content) else None
    return None


def _add_arguments(
    rows_before: Sequence[MessageRow], content: normalization.Content
) -> normalization.Content:
    """Return results with the tool names and arguments of their calls, if they are known."""
    calls = _get_calls_by_id(rows_before)
    return {**content, "parts": [_fill_result(part, calls) for part in content["parts"]]}


def _get_calls_by_id(rows: Sequence[MessageRow]) -> dict[str, dict[str, Any]]:
    """Return the calls of the rows by id; of calls with the same id, the last one."""
    return {
        str(call.get("toolCallId")): call
        for row in rows
        if row["content"] is not None
        for _, call in tool_calls.iter_tool_calls(row["content"])
    }


def _fill_result(part: dict[str, Any], calls: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    result = part.get("toolInvocation")
    if not isinstance(result, dict):
        return part
    call = calls.get(str(result.get("toolCallId")), {})
    missing = {
        key: call[key] for key in ("toolName", "args") if call.get(key) and not result.get(key)
    }
    return {**part, "toolInvocation": {**result, **missing}} if missing else part
