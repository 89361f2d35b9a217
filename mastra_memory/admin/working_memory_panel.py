"""Show, edit and restore a working memory, with its revisions and their differences."""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.db.models.functions import Left
from django.http import Http404, HttpRequest, HttpResponseRedirect
from django.utils.translation import gettext as _

from mastra_memory.admin import access
from mastra_memory.admin.markdown import escape_bidi_overrides
from mastra_memory.admin.params import read_integer
from mastra_memory.admin.render_budget import Prose, RenderBudget
from mastra_memory.content.redaction import Mask, keep_text
from mastra_memory.db import json_text, locking, routing
from mastra_memory.db.users import get_usernames
from mastra_memory.exceptions import InvalidInput
from mastra_memory.memory import Memory
from mastra_memory.models import Scope, Thread, ThreadChange, WorkingMemory
from mastra_memory.review import history
from mastra_memory.review.history import ChangeInput
from mastra_memory.review.masked_files import mask_document

MAX_REVISIONS = 20
MAX_DIFF_CHARACTERS, MAX_DIFF_LINES = 20_000, 1_000
"""Limits for the two compared texts together. The time grows with the square of the lines."""
MAX_EDITED_CHARACTERS = 100_000
"""Longer texts cannot be edited in a form."""
_STARTS_AT_FIRST_LINE = re.compile(r"@@ -[01](,| )")


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line of a difference: `added`, `removed` or `same`."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class RevisionEntry:
    """A revision, with its difference from the previous one."""

    version: int
    source: str
    author: str
    created_at: Any
    lines: Sequence[DiffLine]
    is_current: bool


@dataclass(frozen=True, slots=True)
class MemoryPanel:
    """A working memory as the page shows it."""

    pk: int
    scope: str
    scope_label: str
    version: int
    prose: Prose
    json: str
    """The text of a memory that is a JSON object or list; empty for any other."""
    text: str | None
    """The text in the edit form; None if it is too long to be edited."""
    text_href: str
    """Address of the whole text, as plain text."""
    updated_at: Any
    revisions: Sequence[RevisionEntry]


def build_panel(
    request: HttpRequest, row: WorkingMemory, budget: RenderBudget, *, text_href: str
) -> MemoryPanel:
    """Return the text and its newest revisions, masked for the user."""
    mask = access.get_mask(request.user)
    prose, as_json = _render_content(row.content, mask, budget)
    is_short = len(row.content) <= MAX_EDITED_CHARACTERS
    return MemoryPanel(
        pk=row.pk,
        scope=row.scope,
        scope_label=str(row.get_scope_display()),
        version=row.version,
        prose=prose,
        json=as_json,
        text=mask_document(row.content, mask) if is_short else None,
        text_href=text_href,
        updated_at=row.updated_at,
        revisions=_build_revisions(row, mask, budget),
    )


def _render_content(content: str, mask: Mask, budget: RenderBudget) -> tuple[Prose, str]:
    """Return the text as Markdown, or as indented JSON if an agent with a schema wrote it."""
    value = parse_document(content)
    if value is None:
        return budget.render_prose(content, lambda text: mask_document(text, mask)), ""
    text, is_cut = budget.render_json(value, mask)
    return Prose(size=len(content), is_cut=is_cut), text


def parse_document(content: str) -> dict[str, Any] | list[Any] | None:
    """Return the JSON object or list that a working memory holds, None for any other text."""
    if not content.lstrip().startswith(("{", "[")):
        return None
    try:
        value = json_text.loads(content)
    except InvalidInput:
        return None
    return value if isinstance(value, dict | list) else None


def _build_revisions(row: WorkingMemory, mask: Mask, budget: RenderBudget) -> list[RevisionEntry]:
    def masked(text: str) -> str:
        return mask_document(text, mask)

    made = []
    newest = list(_get_newest_revisions(row))
    names = get_usernames(filter(None, [revision.author_id for revision in newest]))
    for place, revision in enumerate(newest[:MAX_REVISIONS]):
        before = newest[place + 1].beginning if place + 1 < len(newest) else ""
        author = names.get(revision.author_id or "", "")
        made.append(
            RevisionEntry(
                revision.version,
                revision.source,
                author,
                revision.created_at,
                diff_texts(before, revision.beginning, masked, budget),
                revision.version == row.version,
            )
        )
    return made


def _get_newest_revisions(row: WorkingMemory) -> QuerySet[Any]:
    """Return the revisions with only the part of their texts that is compared."""
    beginning = Left("content", MAX_DIFF_CHARACTERS + 1)
    revisions = row.revisions.defer("content")
    return revisions.annotate(beginning=beginning).order_by("-version")[: MAX_REVISIONS + 1]


def diff_texts(before: str, after: str, mask: Mask, budget: RenderBudget) -> list[DiffLine]:
    """Compare two texts line by line, with two lines around each change."""
    is_long = len(before) + len(after) > MAX_DIFF_CHARACTERS
    if is_long or before.count("\n") + after.count("\n") > MAX_DIFF_LINES:
        return [DiffLine("same", _("Too long to compare."))]
    if budget.seconds <= 0 or not budget.take_block():
        return [DiffLine("same", _("This page has too much text to show this comparison."))]
    with budget.measure():
        lines = _diff_masked_texts(mask(before), mask(after))
    budget.characters -= sum(len(line.text) for line in lines)
    return lines


def _diff_masked_texts(before: str, after: str) -> list[DiffLine]:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2)
    kinds = {"+": "added", "-": "removed", " ": "same", "@": "skip"}
    shown = [line for line in lines if not line.startswith(("+++", "---"))]
    if shown and _STARTS_AT_FIRST_LINE.match(shown[0]):
        del shown[0]  # The difference starts at the first line.
    return [
        DiffLine(kinds[line[0]], "⋯" if line[0] == "@" else escape_bidi_overrides(line[1:]))
        for line in shown
    ]


def build_preview(request: HttpRequest, row: WorkingMemory, *, back: str) -> dict[str, Any]:
    """Return the template context of the preview. Nothing is saved."""
    if not access.has_permission(request.user, "edit_transcript"):
        raise PermissionDenied
    text = request.POST.get("content", "").replace("\r\n", "\n")
    budget = RenderBudget()
    prose, as_json = _render_content(text, keep_text, budget)
    beginning = row.content[: MAX_DIFF_CHARACTERS + 1]  # a longer text is not compared
    before = mask_document(beginning, access.get_mask(request.user))
    return {
        "prose": prose,
        "json": as_json,
        "lines": diff_texts(before, text, keep_text, budget),
        "text": text,
        "version": request.POST.get("version", ""),
        "action": request.path,
        "back": back,
    }


@locking.retry_conflicts
@routing.atomic
def save_change(request: HttpRequest, row: WorkingMemory, *, back: str) -> HttpResponseRedirect:
    """Save an edited text or restore a revision, unless another user changed it meanwhile."""
    if not access.has_permission(request.user, "edit_transcript"):
        raise PermissionDenied
    if row.thread_id is not None:
        locking.lock_thread(row.thread_id)  # Threads before working memory: see db.locking.
    locked = WorkingMemory.objects.select_for_update().filter(pk=row.pk).first()
    if locked is None:
        raise Http404
    row = locked
    if request.POST.get("version") != str(row.version):
        messages.error(
            request,
            _("Another user changed the working memory while you were editing. Nothing was saved."),
        )
        return HttpResponseRedirect(back)
    content, source = _get_requested_content(request, row)
    if content is None:
        messages.error(request, _("This revision does not exist."))
        return HttpResponseRedirect(back)
    if content != row.content:
        _save(request, row, content, source)
        messages.success(request, _("The working memory was changed."))
    return HttpResponseRedirect(back)


def _get_requested_content(request: HttpRequest, row: WorkingMemory) -> tuple[str | None, str]:
    if restored := request.POST.get("restore"):
        version = read_integer(restored)
        revision = row.revisions.filter(version=version).first() if version is not None else None
        return (revision.content if revision else None), "restored"
    if not access.has_permission(request.user, "view_personal_data"):
        # The form contained masked text. Saving it would replace the data by the mask.
        mask = access.get_mask(request.user)
        if mask_document(row.content, mask) != row.content:
            raise PermissionDenied(_("Masked text cannot be edited."))
    return request.POST.get("content", "").replace("\r\n", "\n"), "admin"


def _save(request: HttpRequest, row: WorkingMemory, content: str, source: str) -> None:
    scope = {"workingMemory": {"enabled": True, "scope": row.scope}}
    Memory(options=scope).update_working_memory(
        row.thread_id or "",
        content,
        resource_id=row.resource_id,
        source=source,
        author_id=request.user.pk,
    )
    for thread_id in _list_history_threads(row):
        kind = ThreadChange.Kind.WORKING_MEMORY
        history.record_changes(
            request.user,
            ChangeInput(thread_id=thread_id, kind=kind, before=row.content, after=content),
        )


def _list_history_threads(row: WorkingMemory) -> list[str]:
    """Return the id of the thread whose history records the change.

    That is the thread of the working memory, or else the newest thread of its resource.
    """
    if row.scope == Scope.THREAD:
        return [str(row.thread_id)]
    newest = Thread.objects.filter(resource_id=row.resource_id).order_by("-updated_at", "-pk")
    return list(newest.values_list("pk", flat=True)[:1])
