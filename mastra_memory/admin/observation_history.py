"""Show the past of a record: events with what they cost, generations, and two of them compared."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q
from django.http import HttpRequest

from mastra_memory.admin import access
from mastra_memory.admin.conversation import conversation_url, record_url
from mastra_memory.admin.observation_log import find_hidden_threads
from mastra_memory.admin.params import read_integer
from mastra_memory.admin.render_budget import RenderBudget
from mastra_memory.admin.side_by_side import Comparison, compare_texts
from mastra_memory.content.redaction import Mask
from mastra_memory.models import ObservationalRecord, ObservationEvent
from mastra_memory.review import observations

PAGE_SIZE = 40
MAX_PAGE_NUMBER = 100_000
MAX_ERROR_CHARACTERS = 2_000
EDIT_CHARACTERS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class EventEntry:
    """An event of the timeline, masked for the user."""

    event: ObservationEvent
    seconds: float | None
    error: str
    data: str
    user_name: str
    thread_href: str
    action: str
    """What a person did to an observation; empty for other events."""
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPage:
    """A page of events, newest first, with the sums of all of them."""

    entries: Sequence[EventEntry]
    totals: dict[str, Any]
    newer: str
    older: str


def load_events(
    request: HttpRequest, record: ObservationalRecord, budget: RenderBudget
) -> EventPage:
    """Return the page of events that `?page=` selects."""
    rows = observations.list_events(record)
    if record.thread_id is None and access.has_thread_limit():
        visible = access.visible_threads(request).order_by().values("pk")
        rows = rows.filter(Q(thread_id__isnull=True) | Q(thread_id__in=visible))
    number = read_integer(request.GET.get("page"), maximum=MAX_PAGE_NUMBER) or 1
    start = (number - 1) * PAGE_SIZE
    found = list(rows[start : start + PAGE_SIZE + 1])
    mask = access.get_mask(request.user)
    # An edit does not tell which thread of a resource it is about.
    shows_edits = record.thread_id is not None or not access.has_thread_limit()
    return EventPage(
        entries=[_build_entry(event, mask, budget, shows_edits) for event in found[:PAGE_SIZE]],
        totals=observations.sum_events(record),
        **_link_neighbours(record, "events", number, has_more=len(found) > PAGE_SIZE),
    )


def _link_neighbours(
    record: ObservationalRecord, view: str, number: int, *, has_more: bool
) -> dict[str, str]:
    """Return the addresses of the pages with newer and older entries; empty if there is none."""
    return {
        "newer": record_url(record.pk, view=view, page=number - 1) if number > 1 else "",
        "older": record_url(record.pk, view=view, page=number + 1) if has_more else "",
    }


def _build_entry(
    event: ObservationEvent, mask: Mask, budget: RenderBudget, shows_edits: bool
) -> EventEntry:
    data = event.data
    is_edit = event.operation == ObservationEvent.Operation.EDIT
    texts = [
        str(data.get(name, "")) if is_edit and shows_edits else ""
        for name in ("action", "before", "after")
    ]
    action, before, after = (budget.render_text(text, mask, EDIT_CHARACTERS)[0] for text in texts)
    finished = event.finished_at
    return EventEntry(
        event=event,
        seconds=(finished - event.started_at).total_seconds() if finished else None,
        error=budget.render_text(event.error, mask, MAX_ERROR_CHARACTERS)[0],
        data="" if is_edit else budget.render_json(data, mask)[0] if data else "",
        user_name=budget.render_text(event.user_name, mask, 150)[0],
        thread_href=conversation_url(event.thread_id) if event.thread_id else "",
        action=action,
        before=before,
        after=after,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationEntry:
    """A generation in the list, without its texts."""

    number: int
    href: str
    is_shown: bool
    is_live: bool
    origin: str
    author: str
    tokens: int
    created_at: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationPage:
    """A page of generations, newest first, and the two that are compared."""

    entries: Sequence[GenerationEntry]
    first: int
    second: int
    comparison: Comparison | None
    newer: str
    older: str


def load_generations(
    request: HttpRequest, record: ObservationalRecord, budget: RenderBudget
) -> GenerationPage:
    """Return the page of generations that `?page=` selects.

    `?from=` and `?to=` select two generations to compare; by default the shown one and the one
    before it.
    """
    rows = observations.list_generations(record)
    number = read_integer(request.GET.get("page"), maximum=MAX_PAGE_NUMBER) or 1
    start = (number - 1) * PAGE_SIZE
    fields = ("pk", "generation_count", "superseded_by_id", "origin_type", "created_by_name",
              "observation_token_count", "created_at")  # fmt: skip
    found = list(rows.values_list(*fields, named=True)[start : start + PAGE_SIZE + 1])
    second = read_integer(request.GET.get("to"), maximum=2**31 - 1)
    second = record.generation_count if second is None else second
    first = read_integer(request.GET.get("from"), maximum=2**31 - 1)
    first = max(0, second - 1) if first is None else first
    mask = access.get_mask(request.user)
    return GenerationPage(
        entries=[_build_generation(row, record, mask, budget) for row in found[:PAGE_SIZE]],
        first=first,
        second=second,
        comparison=_compare(request, record, first, second, budget),
        **_link_neighbours(record, "generations", number, has_more=len(found) > PAGE_SIZE),
    )


def _build_generation(
    row: Any, record: ObservationalRecord, mask: Mask, budget: RenderBudget
) -> GenerationEntry:
    origins = dict(ObservationalRecord.Origin.choices)
    return GenerationEntry(
        number=row.generation_count,
        href=record_url(row.pk),
        is_shown=row.pk == record.pk,
        is_live=row.superseded_by_id is None,
        origin=str(origins.get(row.origin_type, row.origin_type)),
        author=budget.render_text(row.created_by_name, mask, 150)[0],
        tokens=row.observation_token_count,
        created_at=row.created_at,
    )


def _compare(
    request: HttpRequest,
    record: ObservationalRecord,
    first: int,
    second: int,
    budget: RenderBudget,
) -> Comparison | None:
    """Return the comparison, or None if one of the generations does not exist."""
    rows = observations.list_generations(record).filter(generation_count__in={first, second})
    texts = dict(rows.values_list("generation_count", "active_observations"))
    if first == second or not {first, second} <= texts.keys():
        return None
    hidden = find_hidden_threads(request, record, texts.values())
    sides = [observations.remove_threads(texts[number], hidden) for number in (first, second)]
    return compare_texts(sides[0], sides[1], access.get_mask(request.user), budget)
