"""Load the messages of the conversation page, with links for navigation."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.admin.utils import quote
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from mastra_memory.admin import access, timeline
from mastra_memory.admin.base import get_static_root
from mastra_memory.admin.render_budget import RenderBudget
from mastra_memory.admin.timeline import ObservationMark, TimelineEntry, ViewerOptions
from mastra_memory.admin.urls import reverse_page
from mastra_memory.exceptions import InvalidInput
from mastra_memory.models import Message, ReviewNote, Scope, Thread
from mastra_memory.review import conversation_pages, observations, visits
from mastra_memory.review.conversation_pages import ConversationPage, MessageMatches
from mastra_memory.review.observations import MessageState


def conversation_url(thread_id: str, **query: str) -> str:
    """Return the URL of the conversation page; empty query values are left out."""
    path = reverse_page("mastra_memory_thread_change", args=[quote(thread_id)])
    parameters = {name: value for name, value in query.items() if value}
    return f"{path}?{urlencode(parameters)}" if parameters else path


def text_url(thread_id: str, what: str, key: int | str) -> str:
    """Return the URL of the page that shows a text of this thread as plain text.

    Args:
        thread_id: The thread.
        what: `message`, `memory`, `observations` or `metadata`.
        key: The sequence of the message, the primary key of the working memory or of the
            observational record, or `thread` for `metadata`.
    """
    return reverse_page("mastra_memory_thread_text", args=[quote(thread_id), what, quote(key)])


def record_url(record_id: str, **query: Any) -> str:
    """Return the URL of the page of a record; empty query values are left out."""
    path = reverse_page("mastra_memory_observationalrecord_change", args=[quote(record_id)])
    parameters = {name: value for name, value in query.items() if value not in ("", None)}
    return f"{path}?{urlencode(parameters)}" if parameters else path


@dataclass(frozen=True, slots=True)
class JumpLink:
    """A link to the next message of a kind: `unread`, `note`, `error` or `match`."""

    kind: str
    count: int
    href: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """The messages on the page, and links to other pages of the conversation."""

    entries: Sequence[TimelineEntry]
    earlier: str
    """URL of the previous page; empty at the beginning."""
    later: str
    newest: str
    oldest: str
    jumps: Sequence[JumpLink]
    find: str
    found: int
    problem: str
    """Why the query in `find` cannot find anything."""
    newest_message: Message | None
    """The newest message of the conversation, if it is on the page."""
    newest_id: str
    """Id of the newest message of the conversation; empty if it has no messages."""


def load_timeline(
    request: HttpRequest,
    thread: Thread,
    all_notes: Sequence[ReviewNote],
    budget: RenderBudget,
) -> Timeline:
    """Return the page of messages that the query string selects.

    `at`, `after` and `before` take the id of a message, `from=start` selects the beginning and
    `find` the last match of a search. Without any of them the newest messages are returned.
    """
    asked = request.GET
    find = asked.get("find", "").strip()
    read_up_to = visits.get_read_position(thread.pk, request.user)
    matches = _find_messages(request, thread.pk, find)
    matching = matches.ids
    at = asked.get("at", "") or (matching[-1] if matching else "")
    page = _load_page(
        thread.pk, at, asked.get("before", ""), asked.get("after", ""), asked.get("from")
    )
    viewer = ViewerOptions(
        mask=access.get_mask(request.user),
        budget=budget,
        notes=all_notes,
        target=at,
        read_up_to=read_up_to,
        matching=frozenset(matching),
        shown_paths=(get_static_root(),),
        marks=_build_marks(request, thread, page.messages),
    )
    entries = timeline.build_entries(page.messages, viewer)
    first, last = _get_end_ids(page)
    keep = {"find": find}
    # htmx puts a partial page in place of the link that was clicked. The page shows the messages on
    # the other side already, so it needs no link to them.
    is_partial = "part" in asked
    newest_id = conversation_pages.find_newest_id(thread.pk) if page.has_later else last
    return Timeline(
        entries=entries,
        earlier=_page_link(
            thread, page.has_earlier and not (is_partial and "after" in asked), before=first
        )
        if first
        else "",
        later=_page_link(
            thread, page.has_later and not (is_partial and "before" in asked), after=last
        )
        if last
        else "",
        newest=conversation_url(thread.pk, **keep),
        oldest=conversation_url(thread.pk, **{**keep, "from": "start"}),
        jumps=_build_jumps(thread, at, read_up_to, all_notes, matching, find),
        find=find,
        found=len(matching),
        problem=matches.problem,
        newest_message=page.messages[-1] if page.messages and not page.has_later else None,
        newest_id=newest_id or "",
    )


MARK_LABELS = {
    "observed": _("observed"),
    "buffered": _("buffered"),
    "raw": _("not observed yet"),
}


def _build_marks(
    request: HttpRequest, thread: Thread, messages: Sequence[Message]
) -> dict[str, list[ObservationMark]]:
    """Return how far observational memory has come with each message."""
    states = observations.list_message_states(thread, messages)
    may_open = access.has_permission(request.user, "view_observationalrecord")
    return {
        message_id: [_build_mark(message_id, state, may_open) for state in found]
        for message_id, found in states.items()
    }


def _build_mark(message_id: str, state: MessageState, may_open: bool) -> ObservationMark:
    label = str(MARK_LABELS[state.state])
    if state.scope == Scope.RESOURCE:
        label = str(_("%(state)s, for all conversations of the resource") % {"state": label})
    href = record_url(state.record_id, view="batches", message=message_id)
    return ObservationMark(state.state, label, href if may_open and state.chunk_id else "")


def _page_link(thread: Thread, wanted: bool, **query: str) -> str:
    return conversation_url(thread.pk, **query) if wanted else ""


def _get_end_ids(page: ConversationPage) -> tuple[str, str]:
    return (page.messages[0].pk, page.messages[-1].pk) if page.messages else ("", "")


def _load_page(
    thread_id: str, at: str, before: str, after: str, start: str | None
) -> ConversationPage:
    if before and (message := conversation_pages.find_message(thread_id, before)):
        return conversation_pages.get_page_before(message)
    if after and (message := conversation_pages.find_message(thread_id, after)):
        return conversation_pages.get_page_after(message)
    if at and (message := conversation_pages.find_message(thread_id, at)):
        return conversation_pages.get_page_around(message)
    if start == "start":
        return conversation_pages.get_oldest_page(thread_id)
    return conversation_pages.get_newest_page(thread_id)


def _find_messages(request: HttpRequest, thread_id: str, find: str) -> MessageMatches:
    if not find or access.refuse_masked_search(request, find):
        return MessageMatches()
    try:
        return conversation_pages.find_messages(thread_id, find, access.get_mask(request.user))
    except InvalidInput as error:
        messages.error(request, str(error))
        return MessageMatches()


def _build_jumps(
    thread: Thread,
    at: str,
    read_up_to: Any,
    all_notes: Sequence[ReviewNote],
    matching: Sequence[str],
    find: str,
) -> list[JumpLink]:
    jumps = []
    unread = conversation_pages.find_first_unread(thread.pk, read_up_to) if read_up_to else None
    if unread:
        jumps.append(JumpLink("unread", 0, conversation_url(thread.pk, at=unread)))
    noted = (
        conversation_pages.list_messages_with_notes(thread.pk)
        if any(n.message_id for n in all_notes)
        else []
    )
    for kind, ids in (
        ("note", noted),
        ("error", conversation_pages.list_messages_with_failed_tools(thread.pk)),
        ("match", matching),
    ):
        if ids:
            jumps.append(
                JumpLink(
                    kind, len(ids), conversation_url(thread.pk, at=_next_id(ids, at), find=find)
                )
            )
    return jumps


def _next_id(ids: Sequence[str], at: str) -> str:
    """Return the id after `at`. Return the first id if `at` is the last one or not in the list."""
    if at in ids:
        return ids[(list(ids).index(at) + 1) % len(ids)]
    return ids[0]


MAX_PRINTED_MESSAGES = 1_000
"""A printed conversation has at most this many messages."""


def load_printed_conversation(request: HttpRequest, thread: Thread) -> dict[str, Any]:
    """Return the messages of the print page, from the beginning of the conversation."""
    page = conversation_pages.get_oldest_page(thread.pk, size=MAX_PRINTED_MESSAGES)
    # A printed page cannot load more, so its budget is larger than that of the screen.
    budget = RenderBudget(seconds=5.0, characters=4_000_000, blocks=10_000)
    viewer = ViewerOptions(mask=access.get_mask(request.user), budget=budget)
    return {"entries": timeline.build_entries(page.messages, viewer), "cut": page.has_later}
