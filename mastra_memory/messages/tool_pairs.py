"""Find the messages that a selection lacks, so that no tool call is without its result.

Providers refuse a conversation with a result whose call is missing, or a call whose result is
missing. Usually both are in one message. If they are not, a limit may separate them: a number of
messages or tokens, the cursor of observations, a window of recall, or the selection of a clone.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

from mastra_memory import conf
from mastra_memory.content import tool_calls
from mastra_memory.content.tool_calls import Need, ToolPart
from mastra_memory.db import json_text, sql
from mastra_memory.messages import queries, storage
from mastra_memory.types import StoredMessage

MAX_DISTANCE = 1_000
"""How many messages before a result, or after a call, are searched for the other one."""
MAX_ARGUMENTS_DISTANCE = 40
"""How many messages before a call without arguments are searched for them. Most of these calls have
no arguments at all, so this search should be short."""
MAX_SEARCHES = 20
"""The largest number of messages whose missing halves are searched for. More are only expected in
damaged threads."""
MAX_ROUNDS = 3
"""How often the search is repeated, because an added message may have parallel calls whose results
are missing too."""
MAX_ROWS = 50
"""How many messages one search returns."""


class ToolMessage(NamedTuple):
    """The tool calls and results of a message, without its content."""

    id: str
    thread_id: str
    created: str
    sequence: int
    content_bytes: int
    parts: tuple[ToolPart, ...]

    @property
    def sort_key(self) -> tuple[str, int]:
        """The key by which the messages of a thread are ordered."""
        return self.created, self.sequence

    @staticmethod
    def from_row(row: sql.SqlRow) -> "ToolMessage":
        """Return the message of a row of `queries.TOOL_COLUMNS`."""
        message_id, thread_id, created, sequence, content_bytes, role, parts_json = row
        parts = tuple(
            tool_calls.build_tool_part(role, call_id, state, has_arguments)
            for call_id, state, has_arguments in json_text.loads(parts_json or "[]")
        )
        return ToolMessage(message_id, thread_id, created, sequence, content_bytes, parts)


class _Search(NamedTuple):
    """A search for the other half of a call or result of `message`."""

    message: ToolMessage
    call_id: str
    need: Need


def complete_tool_pairs(
    messages: Sequence[StoredMessage], *, exclude_ids: Collection[str] = ()
) -> list[StoredMessage]:
    """Return the messages, and those with their missing calls and results, oldest first.

    If no message lacks one, nothing is read. Calls and results that are too far away, or do not
    exist, are not added: `tool_calls.drop_lone_results` removes the other halves.

    Args:
        messages: Messages of any threads.
        exclude_ids: Messages that are not added.
    """
    missing = list_missing(messages, exclude_ids=exclude_ids)
    if not missing:
        return list(messages)
    return sorted([*messages, *missing], key=lambda message: message.sort_key)


def list_missing(
    messages: Sequence[StoredMessage], *, exclude_ids: Collection[str] = ()
) -> list[StoredMessage]:
    """Return only the messages that `complete_tool_pairs` adds, oldest first."""
    tool_messages = [
        ToolMessage(
            message.id,
            message.thread_id,
            message.created,
            message.sequence,
            0,
            tuple(tool_calls.list_tool_parts(message.role, message.content)),
        )
        for message in messages
        if tool_calls.may_contain_calls(message.content_json)
    ]
    excluded = {message.id for message in messages}.union(exclude_ids)
    missing_ids = _find_missing_ids(tool_messages, excluded)
    return storage.get_messages(missing_ids) if missing_ids else []


def find_missing_ids(source: str, params: Sequence[Any]) -> list[str]:
    """Return the ids of the messages that a selection lacks, without reading any content.

    Args:
        source: SQL after FROM that selects messages with the alias `m`.
        params: The parameters of `source`.
    """
    rows = sql.fetch_all(queries.list_tool_messages(source), params)
    selected = [ToolMessage.from_row(row) for row in rows]
    return _find_missing_ids(selected, {message.id for message in selected})


def _find_missing_ids(selected: Sequence[ToolMessage], excluded: Collection[str]) -> list[str]:
    """Return the ids of messages that complete the pairs, at most `MAX_PAGE_BYTES` in total."""
    added: dict[str, ToolMessage] = {}
    searched: set[tuple[str, str]] = set()
    for _ in range(MAX_ROUNDS):
        searches = [
            search
            for search in _list_searches([*selected, *added.values()])
            if (search.message.id, search.call_id) not in searched
        ]
        if not searches:
            break
        searched |= {(search.message.id, search.call_id) for search in searches}
        for message in _run_searches(searches):
            if message.id not in excluded:
                added.setdefault(message.id, message)
    remaining_bytes = conf.app_settings().MAX_PAGE_BYTES
    missing_ids = []
    for message in added.values():
        remaining_bytes -= message.content_bytes
        if remaining_bytes < 0:
            break
        missing_ids.append(message.id)
    return missing_ids


def _list_searches(messages: Iterable[ToolMessage]) -> list[_Search]:
    """Return a search for each missing half, those of the newest messages first."""
    by_thread: dict[str, list[ToolMessage]] = {}
    for message in messages:
        by_thread.setdefault(message.thread_id, []).append(message)
    searches = []
    for thread_messages in by_thread.values():
        thread_messages.sort(key=lambda message: message.sort_key)
        pairing = tool_calls.pair_tool_calls([message.parts for message in thread_messages])
        searches += [
            _Search(thread_messages[index], call_id, need)
            for index, call_id, need in pairing.unpaired
        ]
    return sorted(searches, key=lambda search: search.message.sort_key, reverse=True)


def _run_searches(searches: Sequence[_Search]) -> list[ToolMessage]:
    """Return the nearest message with the other half of each, in at most two statements."""
    results = [search for search in searches if search.need == "result"]
    calls = [search for search in searches if search.need != "result"]
    later = _read_tool_messages(results, queries.LIST_LATER_TOOL_MESSAGES)
    earlier = _read_tool_messages(calls, queries.LIST_EARLIER_TOOL_MESSAGES)
    nearest = [_find_nearest(search, earlier, max) for search in calls]
    nearest += [_find_nearest(search, later, min) for search in results]
    return [message for message in nearest if message is not None]


def _read_tool_messages(searches: Sequence[_Search], statement: str) -> list[ToolMessage]:
    """Return the messages within reach of the searches that contain any of the call ids."""
    distances: dict[ToolMessage, int] = {}
    for message, _, need in searches:
        distance = MAX_ARGUMENTS_DISTANCE if need == "arguments" else MAX_DISTANCE
        distances[message] = max(distance, distances.get(message, 0))
    anchors = list(distances)[:MAX_SEARCHES]
    if not anchors:
        return []
    rows = sql.fetch_all(
        statement,
        [
            [anchor.thread_id for anchor in anchors],
            [anchor.created for anchor in anchors],
            [anchor.sequence for anchor in anchors],
            [distances[anchor] for anchor in anchors],
            sorted({search.call_id for search in searches}),
            MAX_ROWS,
        ],
    )
    return [ToolMessage.from_row(row) for row in rows]


def _find_nearest(
    search: _Search,
    messages: Sequence[ToolMessage],
    choose: Callable[..., ToolMessage],
) -> ToolMessage | None:
    """Return the message with the other half, or None.

    Some providers reuse call ids, so only the nearest message with the id is considered. If its
    call already has a result, the result searched for is a duplicate.
    """
    key = search.message.sort_key
    candidates = [
        message
        for message in messages
        if message.thread_id == search.message.thread_id
        and (message.sort_key > key if search.need == "result" else message.sort_key < key)
        and any(part.call_id == search.call_id for part in message.parts)
    ]
    if not candidates:
        return None
    nearest = choose(candidates, key=lambda message: message.sort_key)
    if search.need == "result":
        return nearest
    last_state = [part for part in nearest.parts if part.call_id == search.call_id][-1]
    return None if last_state.is_finished else nearest
