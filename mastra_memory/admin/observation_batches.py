"""Show what the Observer wrote in each call, with the messages that it read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest

from mastra_memory.admin import access
from mastra_memory.admin.conversation import conversation_url, record_url
from mastra_memory.admin.params import read_integer
from mastra_memory.admin.render_budget import Prose, RenderBudget
from mastra_memory.content.redaction import MAX_MATCH_CHARS, Mask
from mastra_memory.models import Message, ObservationalRecord, ObservationChunk
from mastra_memory.review import observations

PAGE_SIZE = 20
MAX_PAGE_NUMBER = 100_000
MAX_LISTED_MESSAGES = 50
"""A batch lists at most this many of its messages."""
PREVIEW_CHARACTERS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedMessage:
    """A message of a batch."""

    role: str
    created_at: Any
    preview: str
    href: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A result of the Observer, masked for the user."""

    chunk: ObservationChunk
    generation: int
    prose: Prose
    hints: str
    messages: Sequence[ListedMessage]
    """Messages that still exist, oldest first."""
    gone: int
    """Number of messages that were deleted since."""
    more: int
    """Number of messages that are not listed."""
    thread_href: str
    ratio: float | None
    """Tokens of messages for each token of observations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPage:
    """A page of batches, newest first."""

    batches: Sequence[Batch]
    is_filtered: bool
    """True if only the batch of one message is shown."""
    all: str
    newer: str
    older: str


def load_batches(
    request: HttpRequest, record: ObservationalRecord, budget: RenderBudget
) -> BatchPage:
    """Return the batches of all generations.

    `?message=` selects the batch of a message, `?page=` a page of all of them.
    """
    rows = _filter_visible(request, record, observations.list_batches(record))
    message_id = request.GET.get("message", "")
    if message_id:
        found = observations.find_batch_of_message(record, message_id)
        rows = rows.filter(pk=found) if found else rows.filter(message_ids__contains=[message_id])
    number = read_integer(request.GET.get("page"), maximum=MAX_PAGE_NUMBER) or 1
    start = (number - 1) * PAGE_SIZE
    chunks = list(rows[start : start + PAGE_SIZE + 1])
    shown = chunks[:PAGE_SIZE]
    links = {"view": "batches", "message": message_id}
    return BatchPage(
        batches=_build_batches(record, shown, access.get_mask(request.user), budget),
        is_filtered=bool(message_id),
        all=record_url(record.pk, view="batches"),
        newer=record_url(record.pk, **links, page=number - 1) if number > 1 else "",
        older=record_url(record.pk, **links, page=number + 1) if len(chunks) > PAGE_SIZE else "",
    )


def _filter_visible(
    request: HttpRequest, record: ObservationalRecord, rows: QuerySet[ObservationChunk]
) -> QuerySet[ObservationChunk]:
    """Leave out batches of threads that the user may not see."""
    if record.thread_id is not None or not access.has_thread_limit():
        return rows
    visible = access.visible_threads(request).order_by().values("pk")
    return rows.filter(Q(thread_id__isnull=True) | Q(thread_id__in=visible))


def _build_batches(
    record: ObservationalRecord,
    chunks: Sequence[ObservationChunk],
    mask: Mask,
    budget: RenderBudget,
) -> list[Batch]:
    listed = _load_messages(chunks)
    return [_build_batch(record, chunk, listed, mask, budget) for chunk in chunks]


def _get_message_ids(chunk: ObservationChunk) -> list[str]:
    """Return the ids of the messages. An imported chunk may hold anything."""
    ids = chunk.message_ids if isinstance(chunk.message_ids, list) else []
    return [pk for pk in ids if isinstance(pk, str)]


def _load_messages(chunks: Sequence[ObservationChunk]) -> dict[str, Any]:
    """Return the listed messages of the batches by id, with the beginning of their texts."""
    ids = {pk for chunk in chunks for pk in _get_message_ids(chunk)[:MAX_LISTED_MESSAGES]}
    rows = Message.objects.filter(pk__in=ids).annotate(
        beginning=Left("text", PREVIEW_CHARACTERS + 2 * MAX_MATCH_CHARS)
    )
    fields = ("pk", "thread_id", "role", "created_at", "sequence", "beginning")
    return {row.pk: row for row in rows.values_list(*fields, named=True)}


def _build_batch(
    record: ObservationalRecord,
    chunk: Any,
    listed: Mapping[str, Any],
    mask: Mask,
    budget: RenderBudget,
) -> Batch:
    ids = _get_message_ids(chunk)
    first = ids[:MAX_LISTED_MESSAGES]
    # A message that was moved to another thread may not be visible, so it is not shown here.
    owner = chunk.thread_id or record.thread_id
    rows = [listed[pk] for pk in first if pk in listed and listed[pk].thread_id == owner]
    rows.sort(key=lambda row: (row.created_at, row.sequence))
    hints, _is_cut = budget.render_json(chunk.hints, mask) if chunk.hints else ("", False)
    return Batch(
        chunk=chunk,
        generation=chunk.generation,
        prose=budget.render_prose(chunk.observations, mask),
        hints=hints,
        messages=[_build_message(row, mask, budget) for row in rows],
        gone=len(first) - len(rows),
        more=len(ids) - len(first),
        thread_href=conversation_url(owner) if owner else "",
        ratio=chunk.message_tokens / chunk.token_count if chunk.token_count > 0 else None,
    )


def _build_message(row: Any, mask: Mask, budget: RenderBudget) -> ListedMessage:
    preview, is_cut = budget.render_text(row.beginning, mask, PREVIEW_CHARACTERS)
    return ListedMessage(
        role=str(dict(Message.Role.choices).get(row.role, row.role)),
        created_at=row.created_at,
        preview=preview + ("…" if is_cut else ""),
        href=conversation_url(row.thread_id, at=row.pk),
    )
