"""The end of a thread: the last so many messages, or as many as so many tokens hold.

A tool's result and its call are kept or left out together.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mastra_memory.content import tokens, tool_calls
from mastra_memory.db import json_text, sql, times
from mastra_memory.messages import MESSAGE_COLUMNS
from mastra_memory.options import MessageHistory
from mastra_memory.recall import limits as read_limits
from mastra_memory.types import StoredMessage

PAGE_SIZE = 40
MAX_CALL_DISTANCE = 40
"""A result further than this from its call stands alone."""
_BYTES_BEFORE = read_limits.bytes_before("p.content", "p.created DESC, p.sequence DESC")
CURSOR_KEY = "memoryTokenLimiter"
"""The key of a thread's metadata that says up to where messages were left out."""


def list_newest(
    thread_id: str,
    count: int | None,
    *,
    before: StoredMessage | None = None,
    since: Any = None,
    without: Collection[str] = (),
) -> list[StoredMessage]:
    """The last `count` messages, newest first, one statement; None: see `limits`.

    Only those `before` a message, after the moment `since`, and not among the ids `without`.
    Fewer are returned where they reach `MAX_PAGE_BYTES`, but at least one.
    """
    where = sql.Where()
    where.add("m.thread_id = %s", json_text.clean_text(thread_id))
    if before is not None:
        where.add("(m.created_at, m.sequence) < (%s::timestamptz, %s)", *before.sort_key)
    if since is not None:
        where.add("m.created_at > %s", since)
    if without:
        where.add("m.id <> ALL(%s)", list(without))
    found = sql.fetch_all(
        f"""SELECT * FROM (
            SELECT p.*, {_BYTES_BEFORE} AS bytes_before FROM (
                SELECT {MESSAGE_COLUMNS} FROM mastra_memory_message m WHERE {where}
                ORDER BY m.created_at DESC, m.sequence DESC LIMIT %s) p) p
        WHERE p.bytes_before < %s ORDER BY p.created DESC, p.sequence DESC""",
        [
            *where.params,
            read_limits.limit_history(None) if count is None else count,
            read_limits.page_bytes(),
        ],
    )
    return [StoredMessage(*cells[:-1]) for cells in found]


def list_last_messages(
    thread_id: str, count: int, *, without: Collection[str] = ()
) -> list[StoredMessage]:
    """The last `count` messages, oldest first.

    Where the first of them are results without their calls, so many more as those calls need.
    """
    count = read_limits.limit_history(count)
    found = list_newest(thread_id, count, without=without)
    waiting = _find_results_without_calls(reversed(found))
    if waiting and len(found) == count:
        older = list_newest(thread_id, MAX_CALL_DISTANCE, before=found[-1], without=without)
        for place, message in enumerate(older):
            waiting -= _get_call_ids(message)
            if not waiting:
                found += older[: place + 1]
                break
    return found[::-1]


def _find_results_without_calls(messages: Iterator[StoredMessage]) -> set[str]:
    """The results whose calls come before these messages, which are oldest first."""
    called: set[str] = set()
    waiting: set[str] = set()
    for message in messages:
        if tool_calls.may_contain_calls(message.content_json):
            waiting |= tool_calls.get_lone_result_ids(message.role, message.content) - called
            called |= _get_call_ids(message)
    return waiting


def _get_call_ids(message: StoredMessage) -> set[str]:
    if not tool_calls.may_contain_calls(message.content_json) or message.role != "assistant":
        return set()
    return {str(call.get("toolCallId")) for _, call in tool_calls.iter_invocations(message.content)}


@dataclass(frozen=True, slots=True)
class TokenLimitCursor:
    """Up to where messages of a thread were left out, with which limits."""

    created: str
    message_ids: tuple[str, ...]
    limits: MessageHistory

    @staticmethod
    def read(
        metadata: Mapping[str, Any] | None, limits: MessageHistory
    ) -> "TokenLimitCursor | None":
        """The cursor in a thread's metadata; None without one, or when the limits have changed."""
        kept: Any = (metadata or {}).get(CURSOR_KEY)
        try:
            same = (kept["maxTokens"], kept["atMaxRemoveTokens"]) == _get_limit_values(limits)
            moment = times.format_time(times.parse_time(kept["createdAt"]))
            ids = tuple(str(one) for one in kept["messageIds"])
        except (TypeError, KeyError, ValueError):
            return None
        return TokenLimitCursor(moment, ids, limits) if same else None

    @staticmethod
    def at(message: StoredMessage, limits: MessageHistory) -> "TokenLimitCursor":
        """The cursor that leaves out `message` and all before it."""
        same_moment = sql.fetch_all(
            """SELECT id FROM mastra_memory_message
            WHERE thread_id = %s AND created_at = %s AND sequence <= %s ORDER BY sequence""",
            [message.thread_id, *message.sort_key],
        )
        return TokenLimitCursor(message.created, tuple(found for (found,) in same_moment), limits)

    def leaves_out(self, message: StoredMessage) -> bool:
        """Whether a message is at or before the cursor."""
        if message.created == self.created:
            return message.id in self.message_ids
        return message.created < self.created

    def save(self, thread_id: str) -> None:
        """Put the cursor into the thread's metadata, unless one there is further on."""
        max_tokens, removed = _get_limit_values(self.limits)
        kept = {
            "createdAt": self.created,
            "messageIds": list(self.message_ids),
            "maxTokens": max_tokens,
            "atMaxRemoveTokens": removed,
        }
        sql.execute(
            f"""UPDATE mastra_memory_thread
            SET metadata = coalesce(metadata, '{{}}')
                || jsonb_build_object('{CURSOR_KEY}', %s::jsonb)
            WHERE id = %s AND NOT coalesce(metadata -> '{CURSOR_KEY}' @> %s::jsonb
                AND metadata -> '{CURSOR_KEY}' ->> 'createdAt' > %s, FALSE)""",
            [
                json_text.dumps(kept),
                json_text.clean_text(thread_id),
                json_text.dumps({"maxTokens": max_tokens, "atMaxRemoveTokens": removed}),
                self.created,
            ],
        )


def _get_limit_values(limits: MessageHistory) -> tuple[int, int]:
    return limits.max_tokens, limits.at_max_remove_tokens


@dataclass(frozen=True, slots=True)
class FittingMessages:
    """What fits into a number of tokens, oldest first."""

    messages: Sequence[StoredMessage]
    left_out: StoredMessage | None
    """The newest that did not fit into the tokens; None when all did, as far as they were read."""


def fit_into_tokens(
    thread_id: str,
    max_tokens: int,
    *,
    most: int | None = None,
    cursor: TokenLimitCursor | None = None,
    without: Collection[str] = (),
) -> FittingMessages:
    """The newest messages that fit, at most `most` (see `limits`); read in pages, as needed."""
    most = read_limits.limit_history(most)
    used = tokens.get_token_counter()
    kept: list[StoredMessage] = []
    spent = tokens.TOKENS_PER_LIST
    for group in _group_tool_pairs(iterate_newest(thread_id, without=without)):
        if cursor is not None and cursor.leaves_out(group[-1]):
            break
        if len(kept) + len(group) > most:
            break
        spent += sum(used.message(message.role, message.content) for message in group)
        if spent > max_tokens:
            return FittingMessages(kept[::-1], group[0])
        kept += group
    return FittingMessages(kept[::-1], None)


def iterate_newest(
    thread_id: str, *, without: Collection[str] = (), page_size: int = PAGE_SIZE
) -> Iterator[StoredMessage]:
    """The whole thread, newest first, read in pages as far as somebody listens."""
    before: StoredMessage | None = None
    while page := list_newest(thread_id, page_size, before=before, without=without):
        yield from page
        if len(page) < page_size and not read_limits.reaches_page_bytes(page):
            return
        before = page[-1]


def _group_tool_pairs(newest_first: Iterator[StoredMessage]) -> Iterator[list[StoredMessage]]:
    """Messages that belong together: from a result back to its call."""
    group: list[StoredMessage] = []
    waiting: set[str] = set()
    for message in newest_first:
        group.append(message)
        if tool_calls.may_contain_calls(message.content_json):
            waiting -= _get_call_ids(message)
            waiting |= tool_calls.get_lone_result_ids(message.role, message.content)
        if not waiting or len(group) >= MAX_CALL_DISTANCE:
            yield group
            group, waiting = [], set()
    if group:
        yield group
