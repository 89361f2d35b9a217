"""Compute the chart of the tokens of a log over time, which the server draws as SVG."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.formats import date_format, number_format

from mastra_memory.models import ObservationalRecord
from mastra_memory.review import observations

WIDTH, HEIGHT = 720, 200
MAX_BATCHES, MAX_GENERATIONS = 500, 200
"""The chart shows at most the newest of these."""


@dataclass(frozen=True, slots=True)
class Step:
    """A change of the log: after a batch, or after a new generation."""

    moment: datetime
    tokens: int
    """Tokens of the log from then on."""
    observed: int = 0
    """Tokens of the messages that were observed."""
    origin: str = ""
    """Why there is a new generation; empty for a batch."""


@dataclass(frozen=True, slots=True)
class Column:
    """The tokens of the messages of one batch."""

    x: float
    y: float
    height: float
    title: str


@dataclass(frozen=True, slots=True)
class Marker:
    """A new generation."""

    x: float
    y: float
    origin: str
    title: str


@dataclass(frozen=True, slots=True)
class TokenChart:
    """The chart with its coordinates."""

    line: str
    """SVG path of the tokens of the log."""
    columns: Sequence[Column]
    markers: Sequence[Marker]
    threshold: float | None
    """Vertical position of the threshold of reflection; None if it is far above the log."""
    top: str
    start: str
    end: str
    now: int
    highest: int
    batches: int
    generations: int
    width: int = WIDTH
    height: int = HEIGHT


def load_chart(record: ObservationalRecord, threshold: int | None) -> TokenChart | None:
    """Return the chart of all generations, or None if nothing has happened yet."""
    steps = list_steps(record)
    if len(steps) < 2:
        return None
    return draw_chart(steps, threshold)


def list_steps(record: ObservationalRecord) -> list[Step]:
    """Return how the log grew and shrank, oldest step first.

    Stored are only the tokens at the end of each generation. Those at its start are what its
    batches leave of them.
    """
    generations = list(
        observations.list_generations(record)
        .order_by("-generation_count")
        .values_list(
            "generation_count",
            "origin_type",
            "created_at",
            "observation_token_count",
            named=True,
        )[:MAX_GENERATIONS]
    )
    activated = observations.list_batches(record).exclude(activated_at=None)
    fields = ("generation", "activated_at", "token_count", "message_tokens")
    batches: dict[int, list[Any]] = {}
    newest = activated.order_by("-activated_at", "-position").values_list(*fields, named=True)
    for row in newest[:MAX_BATCHES]:
        batches.setdefault(row.generation, []).insert(0, row)
    steps: list[Step] = []
    for generation in reversed(generations):
        own = batches.get(generation.generation_count, [])
        tokens = max(0, generation.observation_token_count - sum(row.token_count for row in own))
        steps.append(Step(generation.created_at, tokens, origin=generation.origin_type))
        for row in own:
            tokens += row.token_count
            steps.append(Step(row.activated_at, tokens, row.message_tokens))
        if own:  # Separators and tags have tokens as well.
            last = own[-1].activated_at
            steps.append(Step(last, generation.observation_token_count))
    return steps


def draw_chart(steps: Sequence[Step], threshold: int | None) -> TokenChart:
    """Lay out the steps. The horizontal axis is the time."""
    first, last = steps[0].moment, max(step.moment for step in steps)
    span = max((last - first).total_seconds(), 1e-3)
    highest = max(max(step.tokens, step.observed) for step in steps)
    shows_threshold = threshold is not None and threshold <= 4 * max(highest, 1)
    top = max(highest, threshold if threshold and shows_threshold else 0, 1) * 1.05

    def x(moment: datetime) -> float:
        return round(8 + (WIDTH - 16) * (moment - first).total_seconds() / span, 1)

    def y(tokens: float) -> float:
        return round(HEIGHT - HEIGHT * tokens / top, 1)

    path = f"M{x(first)} {y(steps[0].tokens)}"
    path += "".join(f"H{x(step.moment)}V{y(step.tokens)}" for step in steps[1:])
    return TokenChart(
        line=path,
        columns=[
            Column(x(s.moment) - 2, y(s.observed), round(HEIGHT - y(s.observed), 1), _title(s))
            for s in steps
            if s.observed > 0
        ],
        markers=[Marker(x(s.moment), y(s.tokens), s.origin, _title(s)) for s in steps if s.origin],
        threshold=y(threshold) if threshold and shows_threshold else None,
        top=number_format(round(top), force_grouping=True),
        start=_format_moment(first),
        end=_format_moment(last),
        now=steps[-1].tokens,
        highest=max(step.tokens for step in steps),
        batches=sum(step.observed > 0 for step in steps),
        generations=sum(bool(step.origin) for step in steps),
    )


def _title(step: Step) -> str:
    tokens = step.observed or step.tokens
    label = str(dict(ObservationalRecord.Origin.choices).get(step.origin, ""))
    prefix = f"{label}, " if label else ""
    return f"{prefix}{_format_moment(step.moment)}: {number_format(tokens, force_grouping=True)}"


def _format_moment(moment: datetime) -> str:
    return date_format(timezone.localtime(moment), "SHORT_DATETIME_FORMAT")
