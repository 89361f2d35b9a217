"""Panels next to a conversation: review, notes, scores, memory, clones, cost, history."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest

from mastra_memory.admin import (
    access,
    history_diff,
    observation_log,
    reviewers,
    working_memory_panel,
)
from mastra_memory.admin.changelist import TITLE_CHARACTERS, truncate_title
from mastra_memory.admin.charts import Tree, draw_tree
from mastra_memory.admin.conversation import conversation_url, record_url, text_url
from mastra_memory.admin.markdown import escape_bidi_overrides
from mastra_memory.admin.render_budget import RenderBudget
from mastra_memory.content.redaction import mask_beginning
from mastra_memory.db.users import get_usernames
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
from mastra_memory.review import (
    clone_family,
    history,
    observations,
    reviews,
    scores,
    tags,
    visits,
)

MAX_OTHER_THREADS = 6
MAX_KNOWN_TAGS = 200
MAX_SOURCES = 40
MAX_OBSERVATION_CHARACTERS = 50_000
_OBSERVATION_GROUP = re.compile(
    r'</?observation-group\b(?:[^<>]{0,300}?range="([^":<>]{0,300}):[^"<>]{0,300}")?[^<>]{0,500}>'
)
"""No part matches `<` or `>`: otherwise many unclosed tags would take quadratic time."""


def build_panels(
    request: HttpRequest,
    thread: Thread,
    all_notes: Sequence[ReviewNote],
    budget: RenderBudget,
) -> dict[str, Any]:
    """Return the template context of the panels."""
    user, mask = request.user, access.get_mask(request.user)
    visible = access.visible_threads(request)
    metadata, metadata_cut = budget.render_json(thread.metadata, mask)
    return {
        **_review_panel(request, thread, visible),
        "thread_notes": [note for note in all_notes if not note.message_id],
        "newest_note": max((note.pk for note in all_notes), default=0),
        "questions": scores.list_questions(thread.pk, user),
        "others_here": visits.list_other_viewers(thread.pk, user),
        "other_threads": _list_other_threads(thread, visible, mask),
        "metadata_text": metadata,
        "metadata_cut": metadata_cut,
        "memories": [_memory_panel(request, thread, row, budget) for row in _list_memories(thread)],
        "observations": _observation_panels(request, thread, budget),
        "tree": _draw_clone_tree(thread, visible, mask),
        "usage": ModelUsage.objects.of_thread(thread.pk).totals(),
        **_history_panel(thread, mask, budget),
    }


def _review_panel(
    request: HttpRequest, thread: Thread, visible: QuerySet[Thread]
) -> dict[str, Any]:
    review = reviews.get_review(thread.pk)
    queue = reviews.list_queue(request.user, visible)
    following = reviews.find_next(queue, thread.pk)
    can_review = access.has_permission(request.user, "review_thread")
    assignees = reviewers.list_choices() if can_review else []
    names = {} if can_review or not review.assignee_id else get_usernames([review.assignee_id])
    return {
        "review": review,
        "statuses": Review.Status.choices,
        "priorities": Review.Priority.choices,
        "assignees": assignees,
        "assignee_name": names.get(review.assignee_id or "", ""),
        "tags": tags.list_tags(thread.pk),
        "known_tags": Tag.objects.values_list("name", flat=True)[:MAX_KNOWN_TAGS],
        "queue_length": len(queue),
        "next_href": conversation_url(following) if following else "",
    }


def _list_other_threads(
    thread: Thread, visible: QuerySet[Thread], mask: Any
) -> list[tuple[str, str, Any]]:
    same = visible.of_resource(thread.resource_id).exclude(pk=thread.pk)  # type: ignore[attr-defined]
    newest = same.order_by("-updated_at", "-pk").values_list("pk", truncate_title(), "updated_at")
    return [
        (
            conversation_url(pk),
            escape_bidi_overrides(mask_beginning(title, mask, TITLE_CHARACTERS)) or pk,
            updated_at,
        )
        for pk, title, updated_at in newest[:MAX_OTHER_THREADS]
    ]


def _list_memories(thread: Thread) -> list[WorkingMemory]:
    own = WorkingMemory.objects.filter(thread=thread)
    shared = WorkingMemory.objects.filter(resource_id=thread.resource_id, thread__isnull=True)
    return [*own, *shared]


def _memory_panel(
    request: HttpRequest, thread: Thread, row: WorkingMemory, budget: RenderBudget
) -> working_memory_panel.MemoryPanel:
    href = text_url(thread.pk, "memory", row.pk)
    return working_memory_panel.build_panel(request, row, budget, text_href=href)


def _observation_panels(
    request: HttpRequest, thread: Thread, budget: RenderBudget
) -> list[dict[str, Any]]:
    own = ObservationalRecord.objects.about_thread(thread.pk)
    shared = ObservationalRecord.objects.about_resource(thread.resource_id)
    newest = [records.newest_first().first() for records in (own, shared)]
    return [
        {
            **_observation_panel(request, record, budget),
            "href": record_url(record.pk),
            "text_href": text_url(thread.pk, "observations", record.pk),
        }
        for record in newest
        if record is not None
    ]


def _observation_panel(
    request: HttpRequest, record: ObservationalRecord, budget: RenderBudget
) -> dict[str, Any]:
    """Return the text without group tags, and links to the first message of each group."""
    mask = access.get_mask(request.user)
    hidden = observation_log.find_hidden_threads(request, record)
    text = observations.remove_threads(record.active_observations, hidden)
    beginning = text[:MAX_OBSERVATION_CHARACTERS]
    first = [found[1] for found in _OBSERVATION_GROUP.finditer(beginning) if found[1]][:MAX_SOURCES]
    sources = (
        [conversation_url(record.thread_id, at=pk) for pk in first] if record.thread_id else []
    )
    is_cut = len(beginning) < len(text)
    prose = budget.render_prose(_OBSERVATION_GROUP.sub("", beginning), mask)
    return {"record": record, "prose": prose, "is_cut": is_cut or prose.is_cut, "sources": sources}


def _draw_clone_tree(thread: Thread, visible: QuerySet[Thread], mask: Any) -> Tree | None:
    """Return the family of clones, or None if the thread is not a clone and has none."""
    if thread.clone_source_id is None and not Thread.objects.clones_of(thread.pk).exists():
        return None
    family = clone_family.get_clone_family(thread, visible)
    named = [
        (
            pk,
            escape_bidi_overrides(mask_beginning(title, mask, TITLE_CHARACTERS)) or pk,
            depth,
            gone,
        )
        for pk, title, depth, gone in family.members
    ]
    return draw_tree(named, thread.pk, family.more)


def _history_panel(thread: Thread, mask: Any, budget: RenderBudget) -> dict[str, Any]:
    changes = history.list_changes(thread.pk)
    undoable = history.find_undoable_change(thread.pk, with_values=False)
    names = get_usernames(history_diff.collect_user_ids(changes))
    return {
        "changes": [_describe_change(change, mask, names, budget) for change in changes],
        "undoable": undoable.get_kind_display() if undoable else "",
    }


def _describe_change(
    change: ThreadChange, mask: Any, names: Mapping[str, str], budget: RenderBudget
) -> dict[str, Any]:
    return {
        "change": change,
        "author": names.get(change.author_id or "", ""),
        "lines": history_diff.diff_change(change, mask, names, budget),
    }
