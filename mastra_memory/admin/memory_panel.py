"""Working memory on a page: rendered, with revisions and what each changed; edit and restore."""

import difflib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponseRedirect
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from mastra_memory import jsontext, locking
from mastra_memory.admin import access
from mastra_memory.admin.markdown import harmless, render
from mastra_memory.exceptions import InvalidInput
from mastra_memory.memory import Memory
from mastra_memory.models import Scope, Thread, ThreadChange, WorkingMemory, WorkingMemoryRevision
from mastra_memory.review import history
from mastra_memory.review.history import Change
from mastra_memory.review.masked_files import mask_document

REVISIONS = 20
LONGEST_DIFF = 20_000
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
    html: SafeString
    text: str
    updated_at: Any
    revisions: Sequence[Revision]


def panel(request: HttpRequest, row: WorkingMemory) -> MemoryPanel:
    """The text and its newest revisions, as this reader may see them."""
    mask = access.mask_of(request.user)
    content = mask_document(row.content, mask)
    newest = row.revisions.select_related("author").order_by("-version")[: REVISIONS + 1]
    return MemoryPanel(
        pk=row.pk,
        scope=row.scope,
        scope_label=str(row.get_scope_display()),
        version=row.version,
        html=render(_as_markdown(content)[:100_000]),
        text=content,
        updated_at=row.updated_at,
        revisions=_revisions(list(newest), row.version, mask),
    )


def _as_markdown(content: str) -> str:
    """JSON, as agents with a schema keep it, becomes a block of code."""
    try:
        value = jsontext.loads(content)
    except InvalidInput:
        return content
    if not isinstance(value, dict | list):
        return content
    return f"```json\n{json.dumps(value, ensure_ascii=False, indent=2)}\n```"


def _revisions(newest: list[WorkingMemoryRevision], current: int, mask: Any) -> list[Revision]:
    made = []
    for place, revision in enumerate(newest[:REVISIONS]):
        before = newest[place + 1].content if place + 1 < len(newest) else ""
        author = revision.author.get_username() if revision.author else ""
        made.append(
            Revision(
                revision.version,
                revision.source,
                author,
                revision.created_at,
                difference(mask_document(before, mask), mask_document(revision.content, mask)),
                revision.version == current,
            )
        )
    return made


def difference(before: str, after: str) -> list[Line]:
    """Line by line, with two lines around each change."""
    if len(before) + len(after) > LONGEST_DIFF:
        return [Line("same", _("Too long to compare."))]
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
    return {
        "preview": render(_as_markdown(text)[:100_000]),
        "lines": difference(mask_document(row.content, access.mask_of(request.user)), text),
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
        revision = row.revisions.filter(version=restored).first() if restored.isdigit() else None
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
