"""Start here: recall puts history, hits and windows together."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from mastra_memory.options import MemoryOptions
from mastra_memory.recall import history, window
from mastra_memory.recall.history import MessageFilter
from mastra_memory.recall.window import Include
from mastra_memory.threads import get_thread
from mastra_memory.values import MessagePage, StoredMessage

EMPTY = MessagePage([], 0, 0, 0, False)

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
        messages = _merged(messages, window.read_windows(include, resource_id=owner))
    messages = [m for m in messages if not _is_hidden(m, include_system_reminders, hide_signals)]
    messages.sort(key=lambda message: message.place, reverse=direction == "DESC")
    return replace(read, messages=messages, has_more=read.has_more and len(messages) < read.total)


def _merged(first: Sequence[StoredMessage], more: Sequence[StoredMessage]) -> list[StoredMessage]:
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
    **choices: Any,
) -> MessagePage:
    """What an agent reads before its next turn, always oldest first.

    Without `per_page`, the newest `last_messages`; nothing when history is off. `direction`
    chooses the page, never the order of the answer.
    """
    if per_page is None and options.history_off:
        return EMPTY
    if per_page == 0 and per_page is not False and not choices.get("include"):
        get_thread(thread_id, resource_id=resource_id)
        return EMPTY
    if per_page is None:
        per_page = options.last_messages
    found = list_messages(
        thread_id,
        resource_id=resource_id,
        page=page,
        per_page=per_page,
        direction=direction,
        newest_page=per_page is not False,
        **choices,
    )
    ascending = sorted(found.messages, key=lambda message: message.place)
    return replace(found, messages=ascending)
