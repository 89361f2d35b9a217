"""Start here: recall puts history, hits and windows together."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from mastra_memory.exceptions import ThreadNotFound
from mastra_memory.options import MemoryOptions
from mastra_memory.recall import history, limits, matches, recent, tool_pairs, window
from mastra_memory.recall.recent import TokenLimitCursor
from mastra_memory.threads import get_thread
from mastra_memory.types import Include, MessageFilter, MessagePage, StoredMessage

EMPTY_PAGE = MessagePage([], 0, 0, 0, False)

HideSignals = bool | Sequence[str] | None
"""None hides system reminders, False nothing, True every known signal, a list those named."""


def list_messages(
    thread_id: str,
    *,
    resource_id: str | None = None,
    page: int = 0,
    per_page: int | Literal[False] = 40,
    direction: Literal["ASC", "DESC"] | None = None,
    newest_page: bool = False,
    message_filter: MessageFilter | None = None,
    include: Sequence[Include] = (),
    include_system_reminders: bool = False,
    hide_signals: HideSignals = None,
    include_total: bool = True,
) -> MessagePage:
    """One page of a thread in the order asked for, with the windows of `include` merged in.

    Without `direction` the page is oldest first; `newest_page` then takes the pages from the end
    of the thread. What is hidden is hidden after paging: a page may be shorter than `per_page`.
    """
    read = history.read_page(
        thread_id,
        resource_id=resource_id,
        page=page,
        per_page=per_page,
        newest_first=direction == "DESC" or (direction is None and newest_page),
        message_filter=message_filter,
        include_total=include_total,
    )
    messages = list(read.messages)
    if include:
        owner = get_thread(thread_id).resource_id
        messages = _merge_by_id(messages, window.read_windows(include, resource_id=owner))
    messages = [m for m in messages if not _is_hidden(m, include_system_reminders, hide_signals)]
    messages.sort(key=lambda message: message.sort_key, reverse=direction == "DESC")
    counts = include_total and _has_no_filter(message_filter)
    return replace(read, messages=messages, has_more=_has_more(read, messages, thread_id, counts))


def _has_no_filter(message_filter: MessageFilter | None) -> bool:
    return message_filter is None or message_filter == MessageFilter()


def _has_more(
    read: MessagePage, messages: Sequence[StoredMessage], thread_id: str, counts: bool
) -> bool:
    """Whether later pages hold what is not here yet.

    Messages that came in beside the page count where `counts` says that `total` counts them too.
    """
    if not (read.has_more and counts) or len(messages) < read.total:
        return read.has_more
    return sum(message.thread_id == thread_id for message in messages) < read.total


def _merge_by_id(
    first: Sequence[StoredMessage], more: Sequence[StoredMessage]
) -> list[StoredMessage]:
    return list({message.id: message for message in [*first, *more]}.values())


def _is_hidden(message: StoredMessage, reminders: bool, hide: HideSignals) -> bool:
    if hide is None:
        return not reminders and _is_reminder(message)
    if isinstance(hide, bool):
        return hide and bool(message.signal)
    return message.signal in hide


def _is_reminder(message: StoredMessage) -> bool:
    if message.signal == "system-reminder":
        return True
    return message.role == "signal" and message.signal == "reactive"


def recall(
    options: MemoryOptions,
    thread_id: str,
    *,
    resource_id: str | None = None,
    page: int = 0,
    per_page: int | Literal[False] | None = None,
    direction: Literal["ASC", "DESC"] | None = None,
    vector_search_string: str | None = None,
    include: Sequence[Include] = (),
    include_system_reminders: bool = False,
    hide_signals: HideSignals = None,
    **choices: Any,
) -> MessagePage:
    """What an agent reads before its next turn, always oldest first.

    Without `per_page`, the newest `last_messages`; nothing when history is off. `direction`
    chooses the page, never the order of the answer. Where semantic recall is on, the messages
    that fit `vector_search_string` are added with their neighbours; in resource scope they come
    from all threads of the resource, and the thread itself need not exist yet, query or not.
    """
    will_search = matches.needs_search(options, vector_search_string)
    if per_page is None and options.is_history_disabled:
        if not (will_search or include):
            return EMPTY_PAGE
        per_page = 0
    may_be_missing = matches.spans_threads(options)
    if per_page is None and options.message_history is not None:
        read = _read_history_by_tokens(options, thread_id, resource_id, may_be_missing)
    else:
        read = _read_history(
            thread_id,
            resource_id=resource_id,
            may_be_missing=may_be_missing,
            page=page,
            per_page=_get_history_size(options) if per_page is None else per_page,
            direction=direction,
            **choices,
        )
    windows, tokens = list(include), 0
    if will_search:
        hits = matches.find_matches(
            options, vector_search_string or "", thread_id=thread_id, resource_id=resource_id
        )
        windows, tokens = [*windows, *hits.windows], hits.usage_tokens
    messages = list(read.messages)
    if windows:
        owner = resource_id or get_thread(thread_id).resource_id
        found = window.read_windows(windows, resource_id=owner)
        messages = _merge_by_id(messages, tool_pairs.complete_tool_pairs(found, resource_id=owner))
    messages = [m for m in messages if not _is_hidden(m, include_system_reminders, hide_signals)]
    messages.sort(key=lambda message: message.sort_key)
    counts = choices.get("include_total", True) and _has_no_filter(choices.get("message_filter"))
    has_more = _has_more(read, messages, thread_id, counts)
    return replace(read, messages=messages, has_more=has_more, usage_tokens=tokens)


def _get_history_size(options: MemoryOptions) -> int | Literal[False]:
    """Return how many messages the options ask for, as far as that is allowed."""
    if options.last_messages is False:
        return False
    return limits.limit_history(options.last_messages)


def _read_history_by_tokens(
    options: MemoryOptions, thread_id: str, resource_id: str | None, may_be_missing: bool
) -> MessagePage:
    """As many of the newest messages as `message_history` has room for."""
    budget = options.message_history
    most = options.last_messages if options.last_messages_is_set else False
    try:
        thread = get_thread(thread_id, resource_id=resource_id)
    except ThreadNotFound:
        if not may_be_missing:
            raise
        return replace(EMPTY_PAGE, per_page=most)
    assert budget is not None
    fitting = recent.fit_into_tokens(
        thread_id,
        budget.max_tokens - budget.at_max_remove_tokens,
        most=most or None,
        cursor=TokenLimitCursor.read(thread.metadata, budget),
    )
    return MessagePage(fitting.messages, len(fitting.messages), 0, most, False)


def _read_history(
    thread_id: str,
    *,
    resource_id: str | None,
    may_be_missing: bool,
    per_page: int | Literal[False],
    direction: Literal["ASC", "DESC"] | None,
    **choices: Any,
) -> MessagePage:
    """The page of the thread, hidden messages included; none of it when `per_page` is 0."""
    try:
        if per_page == 0 and per_page is not False:
            get_thread(thread_id, resource_id=resource_id)
            return EMPTY_PAGE
        return history.read_page(
            thread_id,
            resource_id=resource_id,
            per_page=per_page,
            newest_first=direction == "DESC" or (direction is None and per_page is not False),
            **choices,
        )
    except ThreadNotFound:
        if not may_be_missing:
            raise
        return replace(EMPTY_PAGE, page=choices["page"], per_page=per_page)
