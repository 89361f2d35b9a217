"""Show the log of a generation: days, observations with priorities, and links to their messages."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from math import ceil
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from mastra_memory.admin import access
from mastra_memory.admin.conversation import conversation_url, record_url
from mastra_memory.admin.params import read_integer
from mastra_memory.admin.render_budget import RenderBudget
from mastra_memory.content.redaction import Mask
from mastra_memory.models import ObservationalRecord
from mastra_memory.review import observations
from mastra_memory.review.observations import LogLine

PAGE_LINES = 150
MAX_LINE_CHARACTERS = 2_000
"""Longer lines are cut, and cannot be edited here."""
MAX_PAGE_NUMBER = 100_000
PRIORITY_LABELS = {
    "high": _("high priority"),
    "medium": _("medium priority"),
    "low": _("low priority"),
    "done": _("done"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where the observations of a section come from."""

    count: int
    """Number of messages."""
    is_exact: bool
    """False if the observation was changed, and its messages were found by its words."""
    batch_href: str
    """Address of the batch with all its messages."""
    conversation_href: str
    """Address of the first message; empty if the user may not see its thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownLine:
    """One line of the log, masked for the user."""

    number: int
    address: str
    """The id of the observation, such as `3.12`; empty for text that is no observation."""
    text: str
    is_cut: bool
    priority: str
    priority_label: str
    time: str
    is_nested: bool
    is_pinned: bool
    is_target: bool
    can_be_edited: bool
    """False if the text is masked or cut, so that saving it would lose data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSection:
    """Lines of one day that come from the same messages."""

    day: date | None
    """The day, if it is another one than that of the section before."""
    thread_id: str | None
    """The thread, if it is another one than that of the section before."""
    thread_href: str
    source: Source | None
    lines: Sequence[ShownLine]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPage:
    """A page of the log, oldest observation first."""

    sections: Sequence[LogSection]
    earlier: str
    later: str
    number: int
    pages: int
    observations: int
    """Number of observations of the whole log."""
    is_cut: bool
    """True if the log is longer than what is read."""


def find_hidden_threads(
    request: HttpRequest, record: ObservationalRecord, texts: Iterable[str] = ()
) -> frozenset[str]:
    """Return the threads of a record that the user may not see.

    `texts` are other logs that are shown, such as those of earlier generations. The user may see
    the record of a resource because of one of its threads.
    """
    if record.thread_id is not None or not access.has_thread_limit():
        return frozenset()
    ids = observations.list_threads(record, texts)
    visible = access.visible_threads(request).filter(pk__in=ids)
    return frozenset(ids) - set(visible.values_list("pk", flat=True))


def load_log(
    request: HttpRequest, record: ObservationalRecord, hidden: Collection[str], budget: RenderBudget
) -> LogPage:
    """Return the page of the log that `?page=` or `?line=` selects; by default the newest one."""
    lines = observations.read_log(record.active_observations, hidden)
    pages = max(1, ceil(len(lines) / PAGE_LINES))
    target = read_integer(request.GET.get("line"))
    number = _choose_page(request, lines, pages, target)
    shown = lines[(number - 1) * PAGE_LINES : number * PAGE_LINES]
    renderer = _LineRenderer(record, access.get_mask(request.user), budget, target)
    return LogPage(
        sections=_build_sections(record, shown, hidden, renderer),
        earlier=record_url(record.pk, page=number - 1) if number > 1 else "",
        later=record_url(record.pk, page=number + 1) if number < pages else "",
        number=number,
        pages=pages,
        observations=sum(line.item is not None for line in lines),
        is_cut=len(record.active_observations) > observations.MAX_LOG_CHARACTERS,
    )


def _choose_page(
    request: HttpRequest, lines: Sequence[LogLine], pages: int, target: int | None
) -> int:
    for position, line in enumerate(lines):
        if line.number == target:
            return position // PAGE_LINES + 1
    asked = read_integer(request.GET.get("page"), maximum=MAX_PAGE_NUMBER)
    return min(asked, pages) if asked else pages


@dataclass(frozen=True, slots=True)
class _LineRenderer:
    """Masks and cuts lines."""

    record: ObservationalRecord
    mask: Mask
    budget: RenderBudget
    target: int | None

    def render(self, line: LogLine) -> ShownLine:
        text, is_cut = "", True
        if self.budget.take_block():
            text, is_cut = self.budget.render_text(line.text, self.mask, MAX_LINE_CHARACTERS)
        item = line.item
        priority = item.priority if item else ""
        address = f"{self.record.generation_count}.{line.number}" if item else ""
        return ShownLine(
            number=line.number,
            address=address,
            text=text,
            is_cut=is_cut,
            priority=priority,
            priority_label=str(PRIORITY_LABELS.get(priority, "")),
            time=item.time if item else "",
            is_nested=bool(item and item.depth),
            is_pinned=bool(item and item.text in self.record.pinned),
            is_target=line.number == self.target,
            can_be_edited=bool(item) and not is_cut and text == line.text,
        )


def _build_sections(
    record: ObservationalRecord,
    lines: Sequence[LogLine],
    hidden: Collection[str],
    renderer: _LineRenderer,
) -> list[LogSection]:
    """Group lines with the same day, thread and messages."""
    sources = observations.find_sources(record, lines)
    sections: list[LogSection] = []
    previous: Any = (None, None, None)
    pending: list[ShownLine] = []
    for line in lines:
        found = sources.get(line.number)
        ids = found.message_ids if found else ()
        place = (line.day, line.thread_id, ids)
        if place != previous or not sections:
            pending = []
            thread_id = line.thread_id or record.thread_id
            starts_thread = line.thread_id is not None and line.thread_id != previous[1]
            sections.append(
                LogSection(
                    day=line.day if line.day != previous[0] or starts_thread else None,
                    thread_id=line.thread_id if starts_thread else None,
                    thread_href=conversation_url(thread_id) if thread_id else "",
                    source=_build_source(record, ids, bool(found and found.is_exact), thread_id),
                    lines=pending,
                )
            )
        pending.append(renderer.render(line))
        previous = place
    return sections


def _build_source(
    record: ObservationalRecord, ids: Sequence[str], is_exact: bool, thread_id: str | None
) -> Source | None:
    if not ids:
        return None
    return Source(
        count=len(ids),
        is_exact=is_exact,
        batch_href=record_url(record.pk, view="batches", message=ids[0]),
        conversation_href=conversation_url(thread_id, at=ids[0]) if thread_id else "",
    )
