"""List the messages of a thread, or recall the messages for an agent's next turn.

Start reading the package here. Both functions read one page of the history and add messages with
their neighbours: matches of a search, or messages that the caller names. Then they omit hidden
messages and sort the result.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal

from mastra_memory.content import tool_calls
from mastra_memory.content.signal_types import is_reminder
from mastra_memory.exceptions import ThreadNotFound
from mastra_memory.messages import tool_pairs
from mastra_memory.options import MemoryOptions
from mastra_memory.recall import history, limits, matches, recent, window
from mastra_memory.recall.recent import TokenLimitCursor
from mastra_memory.search.types import Matches
from mastra_memory.threads import find_thread, get_thread
from mastra_memory.types import Include, MessageFilter, MessagePage, StoredMessage

EMPTY_PAGE = MessagePage([], 0, 0, 0, False)

HideSignals = bool | Sequence[str] | None
"""None hides system reminders, False hides nothing, True hides all signals, and a list hides the
signals of these types."""


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
    """Return one page of a thread, with the messages of `include` and their neighbours added.

    Hidden messages are removed after paging, so a page may be shorter than `per_page`.

    Args:
        thread_id: The thread.
        resource_id: If given, it must be the owner of the thread.
        page: The number of the page, from 0.
        per_page: Messages per page; False for all.
        direction: The order of the result. None sorts oldest first.
        newest_page: Without `direction`, count pages from the end of the thread.
        message_filter: Only messages that match.
        include: Messages to add.
        include_system_reminders: Keep system reminders if `hide_signals` is None.
        hide_signals: Which signals to leave out.
        include_total: False skips the count; see `history.read_page`.

    Raises:
        ThreadNotFound: The thread does not exist.
        AccessDenied: `resource_id` is not the owner of the thread.
        InvalidInput: The page or the filter is invalid.
    """
    history_page = history.read_page(
        thread_id,
        resource_id=resource_id,
        page=page,
        per_page=per_page,
        newest_first=direction == "DESC" or (direction is None and newest_page),
        message_filter=message_filter,
        include_total=include_total,
    )
    added: list[StoredMessage] = []
    if include:
        owner = get_thread(thread_id).resource_id
        added = tool_pairs.complete_tool_pairs(window.read_windows(include, resource_id=owner))
    messages = _combine(history_page.messages, added, include_system_reminders, hide_signals)
    if direction == "DESC":
        messages.reverse()
    is_whole_thread_counted = include_total and message_filter in (None, MessageFilter())
    has_more = _has_more(history_page, messages, thread_id, is_whole_thread_counted)
    return replace(history_page, messages=messages, has_more=has_more)


def recall(
    options: MemoryOptions,
    thread_id: str,
    *,
    resource_id: str | None = None,
    page: int = 0,
    per_page: int | Literal[False] | None = None,
    direction: Literal["ASC", "DESC"] | None = None,
    vector_search_string: str | None = None,
    message_filter: MessageFilter | None = None,
    include: Sequence[Include] = (),
    include_system_reminders: bool = False,
    hide_signals: HideSignals = None,
    include_total: bool = True,
) -> MessagePage:
    """Return the messages that an agent needs for its next turn, always oldest first.

    If semantic recall is on, the messages that match `vector_search_string` are added with their
    neighbours. In the scope of a resource, they come from all of its threads, and the thread need
    not exist yet. If a page or a window separates a tool result from its call, the message with the
    other one is added. Results whose calls are not stored are left out.

    Args:
        options: The options of the agent and of the call.
        thread_id: The thread.
        resource_id: If given, it must be the owner of the thread.
        page: The number of the page of the history, from 0.
        per_page: Messages of the history; False for all; None for the number in the options.
        direction: Whether pages count from the oldest (`ASC`) or from the newest message.
        vector_search_string: The text to find matches for.
        message_filter: Only messages of the history that match.
        include: Messages to add with their neighbours.
        include_system_reminders: Keep system reminders if `hide_signals` is None.
        hide_signals: Which signals to leave out.
        include_total: False skips the count; see `history.read_page`.

    Raises:
        ThreadNotFound: The thread does not exist. As in Mastra, the page is empty instead if there
            is no `resource_id`, or if matches come from all threads of the resource.
        AccessDenied: `resource_id` is not the owner of the thread.
        InvalidInput: An argument or option is invalid.
        ProviderUnavailable, ProviderRefused, EmbedderMismatch: See `engine.find_matches`.
    """
    needs_search = matches.needs_search(options, vector_search_string)
    if per_page is None and options.is_history_disabled:
        if not (needs_search or include):
            return EMPTY_PAGE
        per_page = 0
    try:
        if per_page is None and options.message_history is not None:
            history_page = _read_history_by_tokens(options, thread_id, resource_id)
        else:
            size = _get_history_size(options) if per_page is None else per_page
            history_page = _read_history(
                thread_id,
                resource_id=resource_id,
                page=page,
                per_page=size,
                direction=direction,
                message_filter=message_filter,
                include_total=include_total,
            )
            completed = tool_pairs.complete_tool_pairs(history_page.messages)
            history_page = replace(history_page, messages=completed)
            if per_page is None and history_page.per_page == size:
                # Like Mastra, return the number in the options, even if a smaller one was used.
                history_page = replace(history_page, per_page=options.last_messages)
    except ThreadNotFound:
        if resource_id is not None and not matches.spans_threads(options):
            raise
        history_page = _build_empty_page(options, page, per_page)
    found = Matches()
    if needs_search:
        found = matches.find_matches(
            options, vector_search_string or "", thread_id=thread_id, resource_id=resource_id
        )
    added: list[StoredMessage] = []
    owner = resource_id
    if owner is None and (found.scored or include):
        thread = find_thread(thread_id)
        owner = thread.resource_id if thread else None
    if owner is not None and (found.scored or include):
        added = matches.read_windows(options, found, resource_id=owner, include=include)
    messages = _combine(history_page.messages, added, include_system_reminders, hide_signals)
    messages = _drop_lone_results(messages)
    is_whole_thread_counted = include_total and message_filter in (None, MessageFilter())
    has_more = _has_more(history_page, messages, thread_id, is_whole_thread_counted)
    return replace(
        history_page,
        messages=messages,
        has_more=has_more,
        usage_tokens=found.usage_tokens,
        interpreted_time=found.interpreted_time,
    )


def _get_history_size(options: MemoryOptions) -> int | Literal[False]:
    """Return the number of messages in the options, limited by the settings."""
    if options.last_messages is False:
        return False
    return limits.limit_history(options.last_messages)


def _read_history_by_tokens(
    options: MemoryOptions, thread_id: str, resource_id: str | None
) -> MessagePage:
    """Return the newest messages within the token limit of `message_history`."""
    budget = options.message_history
    assert budget is not None
    thread = get_thread(thread_id, resource_id=resource_id)
    max_messages = options.last_messages if options.last_messages_is_set else False
    fitting = recent.fit_into_tokens(
        thread_id,
        budget.max_tokens - budget.at_max_remove_tokens,
        max_messages=max_messages or None,
        cursor=TokenLimitCursor.read(thread.metadata, budget),
    )
    return MessagePage(fitting.messages, len(fitting.messages), 0, max_messages, False)


def _read_history(
    thread_id: str,
    *,
    resource_id: str | None,
    page: int,
    per_page: int | Literal[False],
    direction: Literal["ASC", "DESC"] | None,
    message_filter: MessageFilter | None,
    include_total: bool,
) -> MessagePage:
    """Return a page of the thread, without messages if `per_page` is 0."""
    if per_page == 0 and per_page is not False:
        get_thread(thread_id, resource_id=resource_id)
        return EMPTY_PAGE
    return history.read_page(
        thread_id,
        resource_id=resource_id,
        page=page,
        per_page=per_page,
        newest_first=direction == "DESC" or (direction is None and per_page is not False),
        message_filter=message_filter,
        include_total=include_total,
    )


def _build_empty_page(
    options: MemoryOptions, page: int, per_page: int | Literal[False] | None
) -> MessagePage:
    """Return the history of a thread that does not exist yet."""
    if per_page is None and options.message_history is None:
        per_page = options.last_messages
    elif per_page is None:  # the history is limited by tokens and has one page
        page = 0
        per_page = options.last_messages if options.last_messages_is_set else False
    return replace(EMPTY_PAGE, page=page, per_page=per_page)


def _combine(
    history_messages: Iterable[StoredMessage],
    added: Iterable[StoredMessage],
    include_system_reminders: bool,
    hide_signals: HideSignals,
) -> list[StoredMessage]:
    """Merge the messages, leave out the hidden ones, and sort oldest first."""
    unique = {message.id: message for message in [*history_messages, *added]}
    visible = (
        message
        for message in unique.values()
        if not _is_hidden(message, include_system_reminders, hide_signals)
    )
    return sorted(visible, key=lambda message: message.sort_key)


def _drop_lone_results(messages: Sequence[StoredMessage]) -> list[StoredMessage]:
    """Leave out the tool results whose calls are not among the messages of their thread."""
    by_thread: dict[str, list[StoredMessage]] = {}
    for message in messages:
        by_thread.setdefault(message.thread_id, []).append(message)
    kept = [one for thread in by_thread.values() for one in tool_calls.drop_lone_results(thread)]
    return sorted(kept, key=lambda message: message.sort_key)


def _is_hidden(
    message: StoredMessage, include_system_reminders: bool, hide_signals: HideSignals
) -> bool:
    if hide_signals is None:
        return not include_system_reminders and is_reminder(message.role, message.signal)
    if isinstance(hide_signals, bool):
        return hide_signals and bool(message.signal)
    return message.signal in hide_signals


def _has_more(
    history_page: MessagePage,
    messages: Sequence[StoredMessage],
    thread_id: str,
    is_whole_thread_counted: bool,
) -> bool:
    """Return whether later pages have messages that are not in the result yet.

    Added messages may belong to later pages. This is checked only if `is_whole_thread_counted`:
    `total` is then the number of all messages of the thread.
    """
    total = history_page.total
    if not (history_page.has_more and is_whole_thread_counted) or len(messages) < total:
        return history_page.has_more
    return sum(message.thread_id == thread_id for message in messages) < total
