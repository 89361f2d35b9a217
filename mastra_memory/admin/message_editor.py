"""Edit the title, the metadata or a message of a conversation, with preview."""

import json
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest
from django.utils.translation import gettext as _

from mastra_memory.admin import access, edits
from mastra_memory.admin.render_budget import RenderBudget
from mastra_memory.content import message_text
from mastra_memory.content.redaction import keep_text
from mastra_memory.exceptions import InvalidInput, StaleData
from mastra_memory.models import Message, Thread
from mastra_memory.review import conversation_pages

MAX_EDITED_CHARACTERS = 500_000
"""A longer text is not put into a form; Django refuses to read one of 2.5 MB anyway."""


def handle_edit(request: HttpRequest, thread: Thread, what: str) -> str | dict[str, Any] | None:
    """Save the submitted text, or return the context of the page with the form.

    Args:
        request: A GET shows the form. A POST with `preview` shows the text without saving it.
        thread: The thread to edit.
        what: `title`, `metadata` or `message`; `?message=` has the id of the message.

    Returns:
        After saving, the id of the message to go back to, or an empty string. The context of the
        page if nothing was saved. None if the text is masked for the user: saving it would
        replace the data with the mask.

    Raises:
        PermissionDenied: The text is too long to be edited.
        Http404: The message does not exist, or `what` is unknown.
    """
    message = _find_edited_message(request, thread, what)
    shown = _get_text(thread, message, what)
    if len(shown) > MAX_EDITED_CHARACTERS:
        raise PermissionDenied(_("This text is too long to be edited here."))
    if access.get_mask(request.user)(shown) != shown:
        return None
    page: dict[str, Any] = {
        "what": what,
        "message": message,
        "heading": {"title": _("Title"), "metadata": _("Metadata"), "message": _("Message")}[what],
        "text": shown,
        "was": edits.fingerprint(_get_value(thread, message, what)),
    }
    if request.method != "POST":
        return page
    page["text"] = text = request.POST.get("text", "").replace("\r\n", "\n")
    if "preview" in request.POST:
        return page | {
            "preview": RenderBudget().render_prose(text, keep_text),
            "was": request.POST.get("was"),
        }
    try:
        _save(request, thread, message, what, text)
    except InvalidInput as fault:
        return page | {"fault": str(fault), "was": request.POST.get("was", "")}
    except StaleData:
        return page | {"theirs": shown}
    return message.pk if message else ""


def _find_edited_message(request: HttpRequest, thread: Thread, what: str) -> Message | None:
    if what not in ("title", "metadata", "message"):
        raise Http404
    if what != "message":
        return None
    message = conversation_pages.find_message(thread.pk, request.GET.get("message", ""))
    if message is None:
        raise Http404
    return message


def _get_value(thread: Thread, message: Message | None, what: str) -> Any:
    if message is not None:
        return message.content
    return thread.title if what == "title" else thread.metadata


def _get_text(thread: Thread, message: Message | None, what: str) -> str:
    if message is not None:
        return message_text.get_editable_text(message.content)
    return thread.title if what == "title" else _indented(thread.metadata)


def _indented(metadata: dict[str, Any] | None) -> str:
    return json.dumps(metadata or {}, ensure_ascii=False, indent=2)


def _save(
    request: HttpRequest, thread: Thread, message: Message | None, what: str, text: str
) -> None:
    was, by = request.POST.get("was", ""), request.user
    if message is not None:
        edits.change_text(message, text, was=was, by=by)
    elif what == "title":
        edits.change_title(thread.pk, text, was=was, by=by)
    else:
        edits.change_metadata(thread.pk, edits.parse_metadata(text), was=was, by=by)
