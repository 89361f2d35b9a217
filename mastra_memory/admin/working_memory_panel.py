"""Working memory on a page: rendered, with revisions and what each changed; edit and restore."""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest, HttpResponseRedirect
from django.utils.translation import gettext as _

from mastra_memory.admin import access
from mastra_memory.admin.markdown import harmless
from mastra_memory.admin.params import read_integer
from mastra_memory.admin.render_budget import Prose, RenderBudget
from mastra_memory.content.redaction import Mask, keep_text
from mastra_memory.db import json_text, locking
from mastra_memory.exceptions import InvalidInput
from mastra_memory.memory import Memory
from mastra_memory.models import Scope, Thread, ThreadChange, WorkingMemory
from mastra_memory.review import history
from mastra_memory.review.history import Change
from mastra_memory.review.masked_files import mask_document

REVISIONS = 20
MAX_DIFF_CHARACTERS, MAX_DIFF_LINES = 20_000, 1_000
"""Of both sides of a comparison; the time grows with the square of the lines."""
MAX_EDITED_CHARACTERS = 100_000
"""A longer text is not put into a form."""
_FROM_THE_BEGINNING = re.compile(r"@@ -[01](,| )")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a difference: `added`, `removed` or `same`."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Revision:
    """An earlier text and how it differs from the one before it."""

    version: int
    source: str
    author: str
    created_at: Any
    lines: Sequence[Line]
    is_current: bool


@dataclass(frozen=True, slots=True)
class MemoryPanel:
    """What a page shows of one working memory."""

    pk: int
    scope: str
    scope_label: str
    version: int
    prose: Prose
    json: str
    """The text of a memory that is a JSON object or list; empty for any other."""
    text: str | None
    """What a form edits; None if it is too long for one."""
    text_href: str
    """Address of the whole text, as plain text."""
    updated_at: Any
    revisions: Sequence[Revision]


def panel(
    request: HttpRequest, row: WorkingMemory, budget: RenderBudget, *, text_href: str
) -> MemoryPanel:
    """Return the text and its newest revisions, as this reader may see them."""
    mask = access.mask_of(request.user)
    prose, as_json = _shown(row.content, mask, budget)
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
        revisions=_revisions(row, mask, budget),
    )


def _shown(content: str, mask: Mask, budget: RenderBudget) -> tuple[Prose, str]:
    """Return the text as Markdown, or as indented JSON, as agents with a schema keep it."""
    value = parse_document(content)
    if value is None:
        return budget.prose(content, lambda text: mask_document(text, mask)), ""
    text, is_cut = budget.json(value, mask)
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


def _revisions(row: WorkingMemory, mask: Mask, budget: RenderBudget) -> list[Revision]:
    def masked(text: str) -> str:
        return mask_document(text, mask)

    made = []
    newest = list(_newest_revisions(row))
    for place, revision in enumerate(newest[:REVISIONS]):
        before = newest[place + 1].beginning if place + 1 < len(newest) else ""
        author = revision.author.get_username() if revision.author else ""
        made.append(
            Revision(
                revision.version,
                revision.source,
                author,
                revision.created_at,
                difference(before, revision.beginning, masked, budget),
                revision.version == row.version,
            )
        )
    return made


def _newest_revisions(row: WorkingMemory) -> QuerySet[Any]:
    """Return the revisions with no more of their texts than a comparison takes."""
    beginning = Left("content", MAX_DIFF_CHARACTERS + 1)
    revisions = row.revisions.select_related("author").defer("content")
    return revisions.annotate(beginning=beginning).order_by("-version")[: REVISIONS + 1]


def difference(before: str, after: str, mask: Mask, budget: RenderBudget) -> list[Line]:
    """Compare two texts line by line, with two lines around each change."""
    is_long = len(before) + len(after) > MAX_DIFF_CHARACTERS
    if is_long or before.count("\n") + after.count("\n") > MAX_DIFF_LINES:
        return [Line("same", _("Too long to compare."))]
    if budget.seconds <= 0 or not budget.take_block():
        return [Line("same", _("This page holds too much to compare this."))]
    with budget.measure():
        lines = _difference(mask(before), mask(after))
    budget.characters -= sum(len(line.text) for line in lines)
    return lines


def _difference(before: str, after: str) -> list[Line]:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2)
    kinds = {"+": "added", "-": "removed", " ": "same", "@": "skip"}
    shown = [line for line in lines if not line.startswith(("+++", "---"))]
    if shown and _FROM_THE_BEGINNING.match(shown[0]):
        del shown[0]  # nothing is left out before the beginning
    return [Line(kinds[line[0]], "⋯" if line[0] == "@" else harmless(line[1:])) for line in shown]


def preview(request: HttpRequest, row: WorkingMemory, *, back: str) -> dict[str, Any]:
    """What the text would look like, and what it would change; nothing is saved."""
    if not access.may(request.user, "edit_transcript"):
        raise PermissionDenied
    text = request.POST.get("content", "").replace("\r\n", "\n")
    budget = RenderBudget()
    prose, as_json = _shown(text, keep_text, budget)
    beginning = row.content[: MAX_DIFF_CHARACTERS + 1]  # a longer text is not compared
    before = mask_document(beginning, access.mask_of(request.user))
    return {
        "prose": prose,
        "json": as_json,
        "lines": difference(before, text, keep_text, budget),
        "text": text,
        "version": request.POST.get("version", ""),
        "action": request.path,
        "back": back,
    }


@locking.retry_conflicts
@transaction.atomic
def change(request: HttpRequest, row: WorkingMemory, *, back: str) -> HttpResponseRedirect:
    """Save an edited text or restore a revision, unless somebody changed it meanwhile."""
    if not access.may(request.user, "edit_transcript"):
        raise PermissionDenied
    if row.thread_id is not None:
        locking.lock_threads([row.thread_id])  # Before its working memory, as deleting it does.
    row = WorkingMemory.objects.select_for_update().get(pk=row.pk)
    if request.POST.get("version") != str(row.version):
        messages.error(request, _("Somebody else changed the working memory. Nothing was saved."))
        return HttpResponseRedirect(back)
    content, source = _wanted(request, row)
    if content is None:
        messages.error(request, _("There is no such revision."))
        return HttpResponseRedirect(back)
    if content != row.content:
        _save(request, row, content, source)
        messages.success(request, _("The working memory was changed."))
    return HttpResponseRedirect(back)


def _wanted(request: HttpRequest, row: WorkingMemory) -> tuple[str | None, str]:
    if restored := request.POST.get("restore"):
        version = read_integer(restored)
        revision = row.revisions.filter(version=version).first() if version is not None else None
        return (revision.content if revision else None), "restored"
    if not access.may(request.user, "view_personal_data"):
        # What this person saw was masked: saving it would write the mask over the data.
        mask = access.mask_of(request.user)
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
    for thread_id in _threads_of(row):
        kind = ThreadChange.Kind.WORKING_MEMORY
        history.record(
            request.user,
            Change(thread_id=thread_id, kind=kind, before=row.content, after=content),
        )


def _threads_of(row: WorkingMemory) -> list[str]:
    """The thread whose history tells of it: its own, or the resource's newest."""
    if row.scope == Scope.THREAD:
        return [str(row.thread_id)]
    newest = Thread.objects.filter(resource_id=row.resource_id).order_by("-updated_at", "-pk")
    return list(newest.values_list("pk", flat=True)[:1])
