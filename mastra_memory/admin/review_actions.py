"""Handlers of the forms of the conversation page, and the permission that each requires."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, QueryDict
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mastra_memory.admin import access, edits, reviewers
from mastra_memory.admin.markdown import escape_bidi_overrides
from mastra_memory.admin.params import read_integer
from mastra_memory.admin.urls import reverse_page
from mastra_memory.db import routing
from mastra_memory.db.users import get_usernames
from mastra_memory.exceptions import InvalidInput, StaleData
from mastra_memory.models import Message, Review, Thread
from mastra_memory.review import conversation_pages, notes, reviews, scores, tags


@dataclass(frozen=True, slots=True)
class CopyResult:
    """What copying a conversation returns: the message to show, and the copy to open."""

    message: str
    thread_id: str


ReviewAction = Callable[[HttpRequest, Thread], str | CopyResult]
"""Runs an action and returns the message to show; empty for none."""


QUICK_STATUSES = {
    "resolve": Review.Status.RESOLVED,
    "take": Review.Status.IN_REVIEW,
    "flag": Review.Status.FLAGGED,
}
"""The status that each button with the name `set` gives to the review."""


def save_review(request: HttpRequest, thread: Thread) -> str:
    """Save the form of the page: note, tags, scores, then status, priority and assignee.

    Notes, tags and scores of one user do not conflict with changes of another. They are saved even
    if the rest is refused, so that nothing the user wrote is lost.
    """
    has_saved_own = _save_own_input(request, thread)
    try:
        is_changed = _update_review(request, thread)
    except (InvalidInput, StaleData) as error:
        if has_saved_own:
            text = _("Your notes, tags and scores were saved.")
            raise type(error)(f"{error} {text}") from error
        raise
    if goes_to_next(request):
        return _describe_review(request, thread)
    if request.POST.get("set") == "take":
        return _("Assigned to you.")
    return _("Saved.") if is_changed or has_saved_own else ""


def goes_to_next(request: HttpRequest) -> bool:
    """Return True if the pressed button leads to the next conversation."""
    return request.POST.get("then") == "next" or request.POST.get("set") == "resolve"


@routing.atomic
def _save_own_input(request: HttpRequest, thread: Thread) -> bool:
    """Save the note, tags and scores in the form; return True if there were any."""
    given = request.POST
    text = given.get("text", "").strip()
    if text:
        notes.add_note(thread.pk, text, by=request.user)
    if given.get("tag"):
        tags.add_tag([thread.pk], given["tag"], by=request.user)
    if given.get("untag"):
        tags.remove_tag(thread.pk, given["untag"], by=request.user)
    has_changed_scores = scores.save_scores(thread.pk, _read_answers(given), by=request.user)
    return bool(text or given.get("tag") or given.get("untag") or has_changed_scores)


def _read_answers(given: QueryDict) -> dict[int, str]:
    """Return the answers in the form by the key of their criterion."""
    return {
        pk: str(value)
        for name, value in given.items()
        if name.startswith("score-") and (pk := read_integer(name[6:])) is not None
    }


def _update_review(request: HttpRequest, thread: Thread) -> int:
    """Change status, priority and assignee; fields missing from the form are kept."""
    given = request.POST
    fields: dict[str, Any] = {}
    if given.get("status") in Review.Status.values:
        fields["status"] = given["status"]
    if given.get("priority") in {str(value) for value in Review.Priority.values}:
        fields["priority"] = int(given["priority"])
    if "assignee" in given:
        fields["assignee_id"] = _find_assignee_id(given["assignee"])
    if given.get("set") in QUICK_STATUSES:
        fields["status"] = QUICK_STATUSES[given["set"]]
    if given.get("set") == "take":
        fields["assignee_id"] = request.user.pk
    return _update_review_fields(request, thread, **fields) if fields else 0


def _describe_review(request: HttpRequest, thread: Thread) -> str:
    """Return a message about the conversation that the user leaves."""
    title = escape_bidi_overrides(access.get_mask(request.user)(thread.title))[:80] or thread.pk
    status = reviews.get_review(thread.pk).get_status_display()
    return _("“%(title)s” is now %(status)s.") % {"title": title, "status": status}


def _update_review_fields(request: HttpRequest, thread: Thread, **fields: Any) -> int:
    """Change the review, unless another user changed it after the form was loaded."""
    version = request.POST.get("version", "")
    known = read_integer(version)
    try:
        return reviews.update_reviews([thread.pk], by=request.user, version=known, **fields)
    except StaleData as fault:
        raise StaleData(_describe_conflict(thread)) from fault


def _describe_conflict(thread: Thread) -> str:
    """Return a message with the author of the other change and the current values."""
    review = reviews.get_review(thread.pk)
    names = get_usernames(filter(None, [review.changed_by_id, review.assignee_id]))
    message = _(
        "%(name)s changed this review while you were editing, so your change was not saved. "
        "It is now: %(status)s, %(assignee)s, priority %(priority)s."
    )
    return message % {
        "name": names.get(review.changed_by_id or "", _("Another user")),
        "status": review.get_status_display(),
        "assignee": names.get(review.assignee_id or "", _("unassigned")),
        "priority": review.get_priority_display(),
    }


def describe_empty_queue(*, unassigned: bool) -> SafeString:
    """Return the message for an empty queue, with a link to unassigned conversations."""
    if unassigned:
        return format_html("{}", _("All conversations are assigned or resolved."))
    address = reverse_page("mastra_memory_thread_next") + "?free=1"
    link = format_html('<a href="{}">{}</a>', address, _("Next unassigned"))
    return format_html("{} {}", _("Your queue is empty."), link)


def _find_assignee_id(value: str) -> str | None:
    if not value:
        return None
    assignee_id = reviewers.find_reviewer_id(value)
    if assignee_id is None:
        raise InvalidInput(_("This user may not review conversations."))
    return assignee_id


def add_note(request: HttpRequest, thread: Thread) -> str:
    """Add a note to the thread or to one message."""
    message_id = request.POST.get("message") or None
    notes.add_note(thread.pk, request.POST.get("text", ""), by=request.user, message_id=message_id)
    return ""


def delete_note(request: HttpRequest, thread: Thread) -> str:
    """Delete a note of the user."""
    note = read_integer(request.POST.get("note"))
    if note is None or not notes.delete_note(thread.pk, note, by=request.user):
        raise InvalidInput(_("Only your own notes can be deleted."))
    return _("The note was deleted.")


def delete_messages(request: HttpRequest, thread: Thread) -> str:
    """Delete one or several messages."""
    count = edits.delete_messages(thread.pk, request.POST.getlist("message"), by=request.user)
    text = ngettext("%d message was deleted.", "%d messages were deleted.", count)
    return text % count + " " + _("You can undo this under History.")


def transfer_thread(request: HttpRequest, thread: Thread) -> str:
    """Move the thread to another resource."""
    edits.transfer_thread(thread, request.POST.get("resource", ""), by=request.user)
    return _("The conversation was moved to another resource.")


def undo_last_change(request: HttpRequest, thread: Thread) -> str:
    """Undo the last edit of the thread."""
    change = edits.undo_last_change(thread.pk, by=request.user)
    return _("The last edit was undone.") if change else _("There is nothing to undo.")


def clone_thread(request: HttpRequest, thread: Thread) -> CopyResult:
    """Copy the thread, or its messages up to one of them."""
    up_to = request.POST.get("message")
    message: Message | None = None
    if up_to:
        message = conversation_pages.find_message(thread.pk, up_to)
        if message is None:
            raise InvalidInput(_("The message is not part of this conversation any more."))
    copy_id = edits.clone_thread(thread, by=request.user, up_to=message)
    return CopyResult(_("Conversation copied. You are viewing the copy."), copy_id)


ACTIONS: dict[str, tuple[str, ReviewAction]] = {
    "review": ("review_thread", save_review),
    "note": ("review_thread", add_note),
    "unnote": ("review_thread", delete_note),
    "drop": ("edit_transcript", delete_messages),
    "transfer": ("edit_transcript", transfer_thread),
    "undo": ("edit_transcript", undo_last_change),
    "clone": ("edit_transcript", clone_thread),
}


def run_action(request: HttpRequest, thread: Thread, verb: str) -> str | CopyResult:
    """Run an action and return its result.

    Raises:
        PermissionDenied: The user does not have the permission that the action requires.
    """
    right, action = ACTIONS[verb]
    if not request.user.has_perm(f"mastra_memory.{right}"):
        raise PermissionDenied
    return action(request, thread)
