"""What a context remembers of its own thread: unobserved, within the tokens, or the last."""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mastra_memory.content import tool_calls
from mastra_memory.db import json_text, sql, times
from mastra_memory.exceptions import AccessDenied, MastraMemoryError
from mastra_memory.models import ObservationalRecord, Scope
from mastra_memory.options import MemoryOptions
from mastra_memory.recall import matches, recent, tool_pairs, window
from mastra_memory.recall.recent import TokenLimitCursor
from mastra_memory.types import StoredMessage

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ThreadState:
    """What one statement tells about the thread and its working memory."""

    thread_id: str
    resource_id: str
    exists: bool
    cursor_json: str | None
    working_memory: str | None
    observed_json: str | None = None
    """What the Observer left in the thread's metadata."""

    @staticmethod
    def read(options: MemoryOptions, thread_id: str, resource_id: str | None) -> "ThreadState":
        by_thread = options.working_memory.scope == Scope.THREAD
        join = "w.thread_id = t.id"
        if not by_thread:
            join = "w.resource_id = coalesce(t.resource_id, g.resource) AND w.thread_id IS NULL"
        found = sql.fetch_one(
            f"""SELECT t.resource_id, (t.metadata -> '{recent.CURSOR_KEY}')::text, w.content,
                (t.metadata #> '{{mastra,om}}')::text
            FROM (SELECT %s::text AS id, %s::text AS resource) g
            LEFT JOIN mastra_memory_thread t ON t.id = g.id
            LEFT JOIN mastra_memory_workingmemory w ON {join}""",
            [json_text.clean_text(thread_id), resource_id and json_text.clean_text(resource_id)],
        )
        assert found is not None
        owner, cursor_json, content, observed_json = found
        if owner is not None and resource_id is not None and owner != resource_id:
            raise AccessDenied
        named = owner or resource_id or thread_id
        return ThreadState(thread_id, named, owner is not None, cursor_json, content, observed_json)

    @property
    def observed(self) -> Mapping[str, Any]:
        """Hints of the Observer, and the thread's own cursor; empty where there are none."""
        found = json_text.loads(self.observed_json) if self.observed_json else None
        return found if isinstance(found, Mapping) else {}

    def observed_until(self, record: ObservationalRecord) -> datetime | None:
        """Messages up to then are in the observations; None where none are.

        A record about a resource says how far the newest of its threads was observed. How far
        this one was, the thread says itself.
        """
        if record.scope == Scope.THREAD:
            return record.last_observed_at
        try:
            return times.parse_time(self.observed.get("lastObservedAt"))
        except ValueError:
            return None

    def cursor(self, options: MemoryOptions) -> TokenLimitCursor | None:
        """Up to where the history was left out before, under the same limits."""
        if options.message_history is None or self.cursor_json is None:
            return None
        kept = {recent.CURSOR_KEY: json_text.loads(self.cursor_json)}
        return TokenLimitCursor.read(kept, options.message_history)


def read_history(
    options: MemoryOptions,
    head: ThreadState,
    record: ObservationalRecord | None,
    without: Collection[str],
) -> list[StoredMessage]:
    """What was said in this thread, oldest first: unobserved, within the tokens, or the last."""
    if not head.exists:
        return []
    if record is not None:
        since = head.observed_until(record)
        known = {*without, *(record.observed_message_ids or ())}
        return recent.list_newest(head.thread_id, None, since=since, without=known)[::-1]
    if options.is_history_disabled:
        return []
    if options.message_history is None:
        count = int(options.last_messages)
        return recent.list_last_messages(head.thread_id, count, without=without)
    return _within(options, head, without)


def recall_messages(options: MemoryOptions, head: ThreadState, query: str) -> list[StoredMessage]:
    """What means the same as the query, with its neighbours; a failing search finds nothing."""
    by_resource = matches.spans_threads(options)
    if not matches.needs_search(options, query) or not (head.exists or by_resource):
        return []
    try:
        hits = matches.find_matches(
            options, query, thread_id=head.thread_id, resource_id=head.resource_id
        )
    except MastraMemoryError as error:
        logger.warning("Nothing could be recalled (%s)", type(error).__name__)
        return []
    found = window.read_windows(hits.windows, resource_id=head.resource_id)
    return tool_pairs.complete_tool_pairs(found, resource_id=head.resource_id)


def _within(
    options: MemoryOptions, head: ThreadState, without: Collection[str]
) -> list[StoredMessage]:
    """As much as fits. Once it no longer does, more is left out than need be, and for good.

    So the beginning stays the same for many turns, which is what a cache of prompts wants.
    """
    limits = options.message_history
    assert limits is not None
    choices: dict[str, Any] = {
        "most": int(options.last_messages) if options.last_messages_is_set else None,
        "cursor": head.cursor(options),
        "without": without,
    }
    whole = recent.fit_into_tokens(head.thread_id, limits.max_tokens, **choices)
    if whole.left_out is None:
        return list(whole.messages)
    wanted = limits.max_tokens - limits.at_max_remove_tokens
    trimmed = recent.fit_into_tokens(head.thread_id, wanted, **choices)
    if trimmed.left_out is not None and not options.read_only:
        TokenLimitCursor.at(trimmed.left_out, limits).save(head.thread_id)
    return list(trimmed.messages)


def merge_tool_calls(
    options: MemoryOptions, history: Sequence[StoredMessage], new: Sequence[StoredMessage]
) -> list[StoredMessage]:
    """The history with each result inside its call, and without calls that never ended."""
    if not any(tool_calls.may_contain_calls(message.content_json) for message in history):
        return list(history)
    contents = tool_calls.fold_tool_calls([message.content for message in history])
    if options.filter_incomplete_tool_calls:
        answered = {one for message in new for one in tool_calls.get_finished_ids(message.content)}
        contents = [one and tool_calls.drop_open_calls(one, answered) for one in contents]
    return [
        message._replace(content_json=json_text.dumps(content))
        for message, content in zip(history, contents, strict=True)
        if content is not None
    ]
