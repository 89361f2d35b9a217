"""Read the messages of the history block, and recall messages by meaning."""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from mastra_memory.content import tool_calls
from mastra_memory.context import queries
from mastra_memory.context.token_counts import MessageCounter
from mastra_memory.db import json_text, sql, times
from mastra_memory.exceptions import AccessDenied, MastraMemoryError
from mastra_memory.messages import tool_pairs
from mastra_memory.models import ObservationalRecord, Scope
from mastra_memory.observational import tracking
from mastra_memory.observational.keys import RecordKey
from mastra_memory.options import MemoryOptions, ObservationalMemoryOptions
from mastra_memory.recall import matches, recent
from mastra_memory.recall.recent import FittingMessages, TokenLimitCursor
from mastra_memory.search.types import ScoredMessage
from mastra_memory.types import StoredMessage

logger = logging.getLogger(__name__)

OBSERVATION_BACKLOG = 2
"""How many times the threshold of observation are read of other conversations."""


@dataclass(frozen=True, slots=True)
class ThreadState:
    """A thread and its working memory, read with one statement."""

    thread_id: str
    resource_id: str
    """The owner of the thread, or the future owner if the thread does not exist."""
    exists: bool
    cursor_json: str | None
    """JSON text of the `TokenLimitCursor`, up to which messages are omitted."""
    working_memory: str | None
    observer_json: str | None = None
    """JSON text of the Observer's data in the thread's metadata."""

    @staticmethod
    def read(options: MemoryOptions, thread_id: str, resource_id: str | None) -> "ThreadState":
        """Read the state of a thread, which need not exist.

        Raises:
            AccessDenied: The thread belongs to another resource.
        """
        owner, cursor_json, content, observer_json = queries.select_thread_state(
            thread_id, resource_id, working_memory_scope=options.working_memory.scope
        )
        if owner is not None and resource_id is not None and owner != resource_id:
            raise AccessDenied
        return ThreadState(
            thread_id=thread_id,
            resource_id=owner or resource_id or thread_id,
            exists=owner is not None,
            cursor_json=cursor_json,
            working_memory=content,
            observer_json=observer_json,
        )

    @property
    def observer_metadata(self) -> Mapping[str, Any]:
        """The Observer's hints for the next answer, and how far it has read this thread."""
        value = json_text.loads(self.observer_json) if self.observer_json else None
        return value if isinstance(value, Mapping) else {}

    def get_observed_until(self, record: ObservationalRecord) -> datetime | None:
        """Return the time up to which the observations cover this thread, or None.

        A record of a resource has the time of the thread that was observed last. The other
        threads keep their own times in their metadata.
        """
        if record.scope == Scope.THREAD:
            observed: datetime | None = record.last_observed_at
            return observed
        try:
            return times.parse_time(self.observer_metadata.get("lastObservedAt"))
        except ValueError:
            return None

    def get_cursor(self, options: MemoryOptions) -> TokenLimitCursor | None:
        """Return the cursor that was saved under the same token limits, if any."""
        if options.message_history is None or self.cursor_json is None:
            return None
        metadata = {recent.CURSOR_KEY: json_text.loads(self.cursor_json)}
        return TokenLimitCursor.read(metadata, options.message_history)


def read_history(
    options: MemoryOptions,
    thread: ThreadState,
    record: ObservationalRecord | None,
    new_messages: Sequence[StoredMessage],
) -> list[StoredMessage]:
    """Return the messages of the thread for the prompt, oldest first.

    With observational memory, these are the messages that have not been observed yet, and those
    whose observations are buffered. Otherwise they are the last messages, limited by number or by
    tokens. If a tool result, also one in `new_messages`, has its call in an earlier message, that
    message is added.
    """
    if not thread.exists:
        return []
    new_ids = {message.id for message in new_messages}
    history = _read_messages(options, thread, record, new_ids)
    return [*history, *tool_pairs.list_missing([*history, *new_messages], exclude_ids=new_ids)]


def _read_messages(
    options: MemoryOptions,
    thread: ThreadState,
    record: ObservationalRecord | None,
    exclude_ids: Collection[str],
) -> list[StoredMessage]:
    """Return the messages within the cursor or the limit."""
    if options.is_history_disabled:
        return []
    if record is not None:
        unobserved = sql.Where()
        cursor = thread.get_observed_until(record)
        tracking.filter_unobserved(unobserved, record, thread.thread_id, cursor)
        newest_first = recent.list_newest(
            thread.thread_id, None, condition=unobserved, exclude_ids=exclude_ids
        )
        return newest_first[::-1]
    if options.message_history is None:
        count = int(options.last_messages)
        return recent.list_last_messages(thread.thread_id, count, exclude_ids=exclude_ids)
    return _read_within_tokens(options, thread, exclude_ids)


def read_token_counts(
    thread: ThreadState, record: ObservationalRecord | None, history: Sequence[StoredMessage]
) -> MessageCounter:
    """Return a counter with the counts that are stored for the unobserved messages."""
    if record is None or not history:
        return MessageCounter()
    return MessageCounter(history, tracking.read_token_counts(record, thread.thread_id))


@dataclass(frozen=True, slots=True)
class Recalled:
    """The result of semantic recall."""

    messages: Sequence[StoredMessage] = ()
    """The best matches with their neighbours, in the order of the conversation."""
    scored: Sequence[ScoredMessage] = ()
    """The matches, best first. There may be more than those in `messages`."""


def recall_messages(
    options: MemoryOptions, thread: ThreadState, query: str, *, min_matches: int = 0
) -> Recalled:
    """Return the messages that match the query by meaning, with their neighbours.

    If the search fails, a warning is logged and the result is empty, so that the agent can still
    answer.

    Args:
        options: The option `semantic_recall` decides how many messages are read.
        thread: The thread.
        query: The text to find matches for.
        min_matches: How many matches `scored` should have at least.
    """
    in_resource_scope = matches.spans_threads(options)
    if not matches.needs_search(options, query) or not (thread.exists or in_resource_scope):
        return Recalled()
    assert options.semantic_recall is not None
    top_k = options.semantic_recall.top_k
    searched = replace(options.semantic_recall, top_k=max(top_k, min_matches))
    try:
        found = matches.find_matches(
            replace(options, semantic_recall=searched),
            query,
            thread_id=thread.thread_id,
            resource_id=thread.resource_id,
        )
    except MastraMemoryError as error:
        logger.warning("Semantic recall failed (%s)", type(error).__name__)
        return Recalled()
    best = replace(found, scored=found.scored[:top_k])
    messages = matches.read_windows(options, best, resource_id=thread.resource_id)
    return Recalled(messages, found.scored)


def _read_within_tokens(
    options: MemoryOptions, thread: ThreadState, exclude_ids: Collection[str]
) -> list[StoredMessage]:
    """Return the last messages that fit the token limit.

    If they exceed the limit, `at_max_remove_tokens` more tokens than necessary are removed, and a
    cursor is saved so that they are not included again. The history then begins with the same
    message for many turns, and the provider's prompt cache stays valid.
    """
    limits = options.message_history
    assert limits is not None
    cursor = thread.get_cursor(options)

    def fit(max_tokens: int) -> FittingMessages:
        return recent.fit_into_tokens(
            thread.thread_id,
            max_tokens,
            max_messages=int(options.last_messages) if options.last_messages_is_set else None,
            cursor=cursor,
            exclude_ids=exclude_ids,
        )

    fitting = fit(limits.max_tokens)
    if fitting.left_out is None:
        return list(fitting.messages)
    trimmed = fit(limits.max_tokens - limits.at_max_remove_tokens)
    if trimmed.left_out is not None and not options.read_only:
        TokenLimitCursor.at(trimmed.left_out, limits).save(thread.thread_id)
    return list(trimmed.messages)


def list_unobserved_elsewhere(
    thread: ThreadState, options: ObservationalMemoryOptions
) -> dict[str, list[StoredMessage]]:
    """Return the unobserved messages of the resource's other threads, by thread.

    At most twice the messages that are observed at once are read, the oldest first: there are
    more only while observation is behind.
    """
    messages_by_thread: dict[str, list[StoredMessage]] = {}
    limit = OBSERVATION_BACKLOG * options.observation.message_tokens
    key = RecordKey.about_resource(thread.resource_id)
    for message in tracking.list_unobserved(key, limit_tokens=limit):
        if message.thread_id != thread.thread_id:
            messages_by_thread.setdefault(message.thread_id, []).append(message)
    return messages_by_thread


def merge_tool_calls(
    options: MemoryOptions, history: Sequence[StoredMessage], new: Sequence[StoredMessage]
) -> tuple[list[StoredMessage], list[StoredMessage]]:
    """Return the history with each result in the part of its call, and the new messages.

    Calls without a result are left out of the history, unless a new message has the result or the
    options keep them. Results without a call are left out of both. Providers refuse a prompt with
    either.
    """
    answered = {
        call_id
        for message in new
        if tool_calls.may_contain_calls(message.content_json)
        for call_id in tool_calls.get_finished_call_ids(message.content)
    }
    merged = tool_calls.merge_stored_tool_results(
        history, drop_pending=options.filter_incomplete_tool_calls, answered=answered
    )
    new_ids = {message.id for message in new}
    paired = tool_calls.drop_lone_results([*merged, *new])
    return (
        [message for message in paired if message.id not in new_ids],
        [message for message in paired if message.id in new_ids],
    )
