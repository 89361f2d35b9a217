"""Read the newest messages of a thread, up to a number of messages or of tokens.

If a tool call and its result are in different messages, both are included or both are omitted; see
`messages.tool_pairs`.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile
from typing import Any

from mastra_memory.content import tokens, tool_calls
from mastra_memory.db import json_text, sql, times
from mastra_memory.messages import tool_pairs
from mastra_memory.options import MessageHistoryOptions
from mastra_memory.recall import limits as read_limits
from mastra_memory.recall import queries
from mastra_memory.types import StoredMessage

PAGE_SIZE = 40
"""How many messages are read at a time until the token limit is reached."""
CURSOR_KEY = "memoryTokenLimiter"
"""The key of a thread's metadata under which Mastra and we store `TokenLimitCursor`."""


def list_newest(
    thread_id: str,
    count: int | None,
    *,
    before: StoredMessage | None = None,
    condition: sql.Where | None = None,
    exclude_ids: Collection[str] = (),
) -> list[StoredMessage]:
    """Return the last `count` messages, newest first, in one statement.

    Fewer, but at least one, are returned if they reach `MAX_PAGE_BYTES`.

    Args:
        thread_id: The thread.
        count: How many messages; None for as many as the settings allow.
        before: Only messages before this one.
        condition: Only messages `m` that match this.
        exclude_ids: Ids of messages to leave out.
    """
    where = sql.Where()
    where.add("m.thread_id = %s", json_text.clean_text(thread_id))
    if before is not None:
        where.add("(m.created_at, m.sequence) < (%s::timestamptz, %s)", *before.sort_key)
    if condition is not None:
        where.add(str(condition), *condition.params)
    if exclude_ids:
        where.add("m.id <> ALL(%s)", list(exclude_ids))
    return queries.list_newest(
        where,
        read_limits.limit_history(None) if count is None else count,
        is_frequent=len(where.conditions) == 1,  # an agent reads this at the start of each turn
    )


def list_last_messages(
    thread_id: str, count: int, *, exclude_ids: Collection[str] = ()
) -> list[StoredMessage]:
    """Return the last `count` messages, oldest first.

    If one has a tool result whose call came earlier, the message with the call is added.
    """
    count = read_limits.limit_history(count)
    messages = list_newest(thread_id, count, exclude_ids=exclude_ids)
    return tool_pairs.complete_tool_pairs(messages[::-1], exclude_ids=exclude_ids)


@dataclass(frozen=True, slots=True)
class TokenLimitCursor:
    """The newest of the messages that `message_history` omits from prompts.

    Omitted messages stay omitted. So the prompts of many turns begin with the same messages, and
    the provider's prompt cache stays valid.
    """

    created: str
    """Time of the last message that was left out, `2024-01-01T00:00:00.000Z`."""
    message_ids: tuple[str, ...]
    """Messages of exactly this time that were left out."""
    limits: MessageHistoryOptions
    """The limits for which the cursor was created. With other limits it is ignored."""

    @staticmethod
    def read(
        metadata: Mapping[str, Any] | None, limits: MessageHistoryOptions
    ) -> "TokenLimitCursor | None":
        """Return the cursor in a thread's metadata, or None if there is no valid one."""
        stored: Any = (metadata or {}).get(CURSOR_KEY)
        try:
            is_current = _get_limit_values(limits).items() <= stored.items()
            created = times.format_time(times.parse_time(stored["createdAt"]))
            message_ids = tuple(map(str, stored["messageIds"]))
        except (AttributeError, TypeError, KeyError, ValueError):
            return None
        return TokenLimitCursor(created, message_ids, limits) if is_current else None

    @staticmethod
    def at(message: StoredMessage, limits: MessageHistoryOptions) -> "TokenLimitCursor":
        """Return the cursor that omits `message` and all messages before it."""
        rows = sql.fetch_all(
            """SELECT id FROM mastra_memory_message
            WHERE thread_id = %s AND created_at = %s AND sequence <= %s ORDER BY sequence""",
            [message.thread_id, *message.sort_key],
        )
        return TokenLimitCursor(message.created, tuple(key for (key,) in rows), limits)

    def leaves_out(self, message: StoredMessage) -> bool:
        """Return whether a message is at or before the cursor."""
        if message.created == self.created:
            return message.id in self.message_ids
        return message.created < self.created

    def save(self, thread_id: str) -> None:
        """Store the cursor in the thread's metadata, unless the stored one is later."""
        limit_values = _get_limit_values(self.limits)
        cursor = {"createdAt": self.created, "messageIds": list(self.message_ids), **limit_values}
        queries.save_cursor(thread_id, CURSOR_KEY, cursor, limit_values)


def _get_limit_values(limits: MessageHistoryOptions) -> dict[str, int]:
    return {"maxTokens": limits.max_tokens, "atMaxRemoveTokens": limits.at_max_remove_tokens}


@dataclass(frozen=True, slots=True)
class FittingMessages:
    """The newest messages that fit into a number of tokens, oldest first."""

    messages: Sequence[StoredMessage]
    left_out: StoredMessage | None
    """The newest message beyond the token limit; None if the messages did not reach that limit."""


def fit_into_tokens(
    thread_id: str,
    max_tokens: int,
    *,
    max_messages: int | None = None,
    cursor: TokenLimitCursor | None = None,
    exclude_ids: Collection[str] = (),
) -> FittingMessages:
    """Return the newest messages within the token limit, reading a page at a time.

    Args:
        thread_id: The thread.
        max_tokens: Estimated tokens; see `content.tokens`.
        max_messages: The largest number of messages; None for as many as the settings allow.
        cursor: Stop at the messages that this cursor omits.
        exclude_ids: Ids of messages to leave out.
    """
    max_messages = read_limits.limit_history(max_messages)
    counter = tokens.get_token_counter()
    newest_first: list[StoredMessage] = []
    left_out: StoredMessage | None = None
    remaining = max_tokens - tokens.TOKENS_PER_LIST
    for message in iterate_newest(thread_id, exclude_ids=exclude_ids):
        if cursor is not None and cursor.leaves_out(message):
            break
        if len(newest_first) == max_messages:
            break
        cost = counter.message(message.role, message.content)
        if cost > remaining:
            left_out = message
            break
        remaining -= cost
        newest_first.append(message)
    read = newest_first[::-1]
    messages = list(read)
    for missing in reversed(tool_pairs.list_missing(read, exclude_ids=exclude_ids)):
        cost = counter.message(missing.role, missing.content)
        if cost <= remaining:
            remaining -= cost
            messages.append(missing)
    messages.sort(key=lambda message: message.sort_key)
    fitting = tool_calls.drop_lone_results(messages)
    if left_out is not None:
        # Results at the edge whose calls do not fit are left out for good, as their calls are.
        fitting_ids = {message.id for message in fitting}
        dropped = takewhile(lambda message: message.id not in fitting_ids, read)
        left_out = next(reversed(list(dropped)), left_out)
    return FittingMessages(fitting, left_out)


def iterate_newest(
    thread_id: str, *, exclude_ids: Collection[str] = (), page_size: int = PAGE_SIZE
) -> Iterator[StoredMessage]:
    """Yield all messages of the thread, newest first, reading a page at a time."""
    before: StoredMessage | None = None
    while page := list_newest(thread_id, page_size, before=before, exclude_ids=exclude_ids):
        yield from page
        if len(page) < page_size and not read_limits.reaches_page_bytes(page):
            return
        before = page[-1]


def group_tool_pairs(messages: Iterable[StoredMessage]) -> list[list[StoredMessage]]:
    """Return the messages in groups, newest first. A call and its result are in the same group.

    The order of the groups is that of their newest messages.
    """
    groups: dict[str, list[StoredMessage]] = {}
    ordered = sorted(messages, key=lambda message: (message.thread_id, message.sort_key))
    for _, thread_messages in groupby(ordered, key=lambda message: message.thread_id):
        thread = list(thread_messages)
        for message in thread:
            groups[message.id] = [message]
        for call_index, result_index in tool_calls.pair_stored_tool_calls(thread).pairs:
            first, second = groups[thread[call_index].id], groups[thread[result_index].id]
            if first is not second:
                first += second
                groups.update(dict.fromkeys((message.id for message in second), first))
    unique = {
        id(group): sorted(group, key=_get_sort_key, reverse=True) for group in groups.values()
    }
    return sorted(unique.values(), key=lambda group: group[0].sort_key, reverse=True)


def _get_sort_key(message: StoredMessage) -> tuple[str, int]:
    return message.sort_key
