"""Show the state of a record: tokens against thresholds, what runs now, and what failed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.utils.formats import number_format
from django.utils.translation import gettext as _

from mastra_memory.admin import access
from mastra_memory.admin.render_budget import RenderBudget
from mastra_memory.db import times
from mastra_memory.models import ObservationalRecord
from mastra_memory.review import observations

METER_WIDTH = 200
MAX_ERROR_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Meter:
    """A number of tokens against the threshold at which something happens."""

    label: str
    value: int
    threshold: int
    note: str
    filled: float
    """Width of the bar, of `METER_WIDTH`."""
    prepared: float
    """Width of the part that is prepared already: chunks, or a reflection."""

    @property
    def summary(self) -> str:
        """Return both numbers as text."""
        numbers = {
            "value": number_format(self.value, force_grouping=True),
            "threshold": number_format(self.threshold, force_grouping=True),
        }
        return _("%(value)s of %(threshold)s tokens") % numbers

    @property
    def is_reached(self) -> bool:
        """Return whether the threshold is reached."""
        return self.value >= self.threshold


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningWork:
    """Work that is in progress."""

    label: str
    until: Any
    """When the lease expires unless the worker renews it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordState:
    """The state of the live generation, masked for the user."""

    meters: Sequence[Meter]
    running: Sequence[RunningWork]
    error: str
    attempts: int
    due_at: Any
    is_overdue: bool
    can_work: bool
    """True if the agent of the record observes, so that a person may start it."""


def load_state(
    request: HttpRequest, record: ObservationalRecord, budget: RenderBudget
) -> RecordState:
    """Return the state of a live record."""
    status = observations.find_status(record)
    error, _is_cut = budget.render_text(
        record.error, access.get_mask(request.user), MAX_ERROR_CHARACTERS
    )
    return RecordState(
        meters=_build_meters(record, status) if status else [],
        running=_list_running(record),
        error=error,
        attempts=record.attempts,
        due_at=record.due_at,
        is_overdue=record.due_at is not None and record.due_at <= times.now(),
        can_work=status is not None,
    )


def _build_meters(record: ObservationalRecord, status: Any) -> list[Meter]:
    return [
        _build_meter(
            _("Messages not observed yet"),
            status.pending_tokens,
            status.threshold,
            prepared=status.buffered_tokens,
            note=_("%(messages)d messages, %(buffered)d tokens of them buffered")
            % {"messages": status.pending_messages, "buffered": status.buffered_tokens},
        ),
        _build_meter(
            _("Log of observations"),
            status.observation_tokens,
            status.reflection_threshold,
            prepared=record.buffered_reflection_input_tokens or 0,
            note=_("a reflection is prepared") if record.buffered_reflection else "",
        ),
    ]


def _build_meter(label: str, value: int, threshold: int, *, prepared: int, note: str) -> Meter:
    top = max(value, threshold, 1)
    return Meter(
        label=label,
        value=value,
        threshold=threshold,
        note=note,
        filled=round(METER_WIDTH * min(value, top) / top, 1),
        prepared=round(METER_WIDTH * min(prepared, value) / top, 1),
    )


def _list_running(record: ObservationalRecord) -> list[RunningWork]:
    leases = [
        (record.is_observing, _("Observing"), record.lease_expires_at),
        (record.is_buffering_observation, _("Buffering observations"), record.lease_expires_at),
        (record.is_reflecting, _("Reflecting"), record.reflection_expires_at),
        (record.is_buffering_reflection, _("Buffering a reflection"), record.reflection_expires_at),
    ]
    return [RunningWork(label=label, until=until) for runs, label, until in leases if runs]
