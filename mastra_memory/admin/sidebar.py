"""What stands beside a conversation: review, notes, rubric, memory, clones, cost, history."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest

from mastra_memory.admin import access, history_diff, working_memory_panel
from mastra_memory.admin.changelist import TITLE_CHARACTERS, short_title
from mastra_memory.admin.charts import Tree, draw_tree
from mastra_memory.admin.conversation import address, text_address
from mastra_memory.admin.markdown import harmless
from mastra_memory.admin.render_budget import RenderBudget
from mastra_memory.admin.thread_filters import reviewers
from mastra_memory.content.redaction import mask_beginning
from mastra_memory.models import (
    ModelUsage,
    ObservationalRecord,
    Review,
    ReviewNote,
    Tag,
    Thread,
    ThreadChange,
    WorkingMemory,
)
from mastra_memory.review import clone_family, history, notes, reviews, rubric

OTHER_THREADS = 6
KNOWN_TAGS = 200
SOURCES = 40
MAX_OBSERVATION_CHARACTERS = 50_000
_GROUP = re.compile(
    r'</?observation-group\b(?:[^<>]{0,300}?range="([^":<>]{0,300}):[^"<>]{0,300}")?[^<>]{0,500}>'
)
"""No part may run on to the next tag: then many tags without an end would take long."""


def panels(
    request: HttpRequest,
    thread: Thread,
    all_notes: Sequence[ReviewNote],
    budget: RenderBudget,
) -> dict[str, Any]:
    """Everything the page needs beside the messages."""
    user, mask = request.user, access.mask_of(request.user)
    visible = access.visible_threads(request)
    metadata, metadata_cut = budget.json(thread.metadata, mask)
    return {
        **_review(request, thread, visible),
        "thread_notes": [note for note in all_notes if not note.message_id],
        "newest_note": max((note.pk for note in all_notes), default=0),
        "questions": rubric.list_questions(thread.pk, user),
        "others_here": notes.others_here(thread.pk, user),
        "other_threads": _siblings(thread, visible, mask),
        "metadata_text": metadata,
        "metadata_cut": metadata_cut,
        "memories": [_memory(request, thread, row, budget) for row in _memories(thread)],
        "observations": _observations(request, thread, budget),
        "tree": _tree(thread, visible, mask),
        "usage": ModelUsage.objects.of_thread(thread.pk).totals(),
        **_history(thread, mask, budget),
    }


def _review(request: HttpRequest, thread: Thread, visible: QuerySet[Thread]) -> dict[str, Any]:
    review = reviews.get_review(thread.pk)
    queue = reviews.queue_of(request.user, visible)
    following = reviews.next_of(queue, thread.pk)
    return {
        "review": review,
        "statuses": Review.Status.choices,
        "priorities": Review.Priority.choices,
        "assignees": reviewers() if access.may(request.user, "review_thread") else [],
        "tags": reviews.list_tags(thread.pk),
        "known_tags": Tag.objects.values_list("name", flat=True)[:KNOWN_TAGS],
        "queue_length": len(queue),
        "next_href": address(following) if following else "",
    }


def _siblings(thread: Thread, visible: QuerySet[Thread], mask: Any) -> list[tuple[str, str, Any]]:
    same = visible.of_resource(thread.resource_id).exclude(pk=thread.pk)  # type: ignore[attr-defined]
    newest = same.order_by("-updated_at", "-pk").values_list("pk", short_title(), "updated_at")
    return [
        (address(pk), harmless(mask_beginning(title, mask, TITLE_CHARACTERS)) or pk, updated_at)
        for pk, title, updated_at in newest[:OTHER_THREADS]
    ]


def _memories(thread: Thread) -> list[WorkingMemory]:
    own = WorkingMemory.objects.filter(thread=thread)
    shared = WorkingMemory.objects.filter(resource_id=thread.resource_id, thread__isnull=True)
    return [*own, *shared]


def _memory(
    request: HttpRequest, thread: Thread, row: WorkingMemory, budget: RenderBudget
) -> working_memory_panel.MemoryPanel:
    href = text_address(thread.pk, "memory", row.pk)
    return working_memory_panel.panel(request, row, budget, text_href=href)


def _observations(
    request: HttpRequest, thread: Thread, budget: RenderBudget
) -> list[dict[str, Any]]:
    mask = access.mask_of(request.user)
    own = ObservationalRecord.objects.about_thread(thread.pk)
    shared = ObservationalRecord.objects.about_resource(thread.resource_id)
    heads = [records.newest_first().first() for records in (own, shared)]
    return [
        {
            **_observation(head, mask, budget),
            "text_href": text_address(thread.pk, "observations", head.pk),
        }
        for head in heads
        if head is not None
    ]


def _observation(head: ObservationalRecord, mask: Any, budget: RenderBudget) -> dict[str, Any]:
    """The text without its marks of groups, and links to where each group begins."""
    text = head.active_observations
    beginning = text[:MAX_OBSERVATION_CHARACTERS]
    first = [found[1] for found in _GROUP.finditer(beginning) if found[1]][:SOURCES]
    sources = [address(head.thread_id, at=pk) for pk in first] if head.thread_id else []
    is_cut = len(beginning) < len(text)
    prose = budget.prose(_GROUP.sub("", beginning), mask)
    return {"record": head, "prose": prose, "is_cut": is_cut or prose.is_cut, "sources": sources}


def _tree(thread: Thread, visible: QuerySet[Thread], mask: Any) -> Tree | None:
    """The clones around the thread; None for a thread that has none and is none."""
    if thread.clone_source_id is None and not Thread.objects.clones_of(thread.pk).exists():
        return None
    family = clone_family.family_of(thread, visible)
    named = [
        (pk, harmless(mask_beginning(title, mask, TITLE_CHARACTERS)) or pk, depth, gone)
        for pk, title, depth, gone in family.members
    ]
    return draw_tree(named, thread.pk, family.more)


def _history(thread: Thread, mask: Any, budget: RenderBudget) -> dict[str, Any]:
    changes = history.list_changes(thread.pk)
    undoable = history.find_undoable(thread.pk, with_values=False)
    names = history.names_of(history_diff.people_in(changes))
    return {
        "changes": [_change(change, mask, names, budget) for change in changes],
        "undoable": undoable.get_kind_display() if undoable else "",
    }


def _change(
    change: ThreadChange, mask: Any, names: Mapping[int, str], budget: RenderBudget
) -> dict[str, Any]:
    return {
        "change": change,
        "author": change.author.get_username() if change.author else "",
        "lines": history_diff.lines_of(change, mask, names, budget),
    }
