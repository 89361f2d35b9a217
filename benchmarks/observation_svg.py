"""A line chart as SVG, without a library. It adapts to light and dark pages."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 960, 480
LEFT, RIGHT, TOP, BOTTOM = 80, 24, 84, 56
TICK_COUNT = 5
MAX_POINTS = 1_000
_STYLE = """\
text { font: 14px system-ui, sans-serif; fill: #333; }
text.title { font-size: 17px; font-weight: 600; }
.page { fill: #fff; }
.grid { stroke: #ddd; stroke-width: 1; }
.limit { stroke: #b00020; stroke-width: 1.5; stroke-dasharray: 7 5; }
.line { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
.total { stroke: #222; }
.history { stroke: #1565c0; }
.log { stroke: #2e7d32; }
.stored { stroke: #999; stroke-dasharray: 3 3; }
.activation { stroke: #1565c0; }
.reflection { stroke: #ef6c00; stroke-width: 2.5; }
@media (prefers-color-scheme: dark) {
  text { fill: #ddd; }
  .page { fill: #16181b; }
  .grid { stroke: #3a3d42; }
  .limit { stroke: #ff6b7d; }
  .total { stroke: #f2f2f2; }
  .history, .activation { stroke: #64b5f6; }
  .log { stroke: #81c784; }
  .reflection { stroke: #ffb74d; }
}"""


@dataclass(frozen=True, slots=True)
class Series:
    """A line."""

    name: str
    points: Sequence[tuple[float, float]]
    style: str
    """The CSS class of its colour."""


@dataclass(frozen=True, slots=True)
class Marks:
    """Short strokes below the x axis, where something happened."""

    name: str
    positions: Sequence[float]
    style: str


@dataclass(frozen=True, slots=True)
class _Scale:
    max_x: float
    max_y: float

    def x(self, value: float) -> float:
        return round(LEFT + value / self.max_x * (WIDTH - LEFT - RIGHT), 1)

    def y(self, value: float) -> float:
        return round(HEIGHT - BOTTOM - min(1, value / self.max_y) * (HEIGHT - TOP - BOTTOM), 1)


def draw(
    *,
    title: str,
    series: Sequence[Series],
    marks: Sequence[Marks],
    limit: tuple[str, float],
    x_label: str,
    y_label: str,
) -> str:
    """Return the chart.

    The y axis ends a little above the limit; lines that go higher are cut there.
    """
    max_x = max(x for line in series for x, _ in line.points)
    scale = _Scale(max_x, limit[1] * 1.15)
    legend = [(line.name, line.style) for line in series]
    legend += [(item.name, item.style) for item in marks]
    elements = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title)}">',
        f"<style>\n{_STYLE}\n</style>",
        f'<rect class="page" width="{WIDTH}" height="{HEIGHT}"/>',
        f'<text class="title" x="{LEFT}" y="26">{escape(title)}</text>',
        *_draw_legend(legend),
        *_draw_axes(scale, x_label, y_label),
        *_draw_limit(scale, *limit),
        *(_draw_line(scale, line) for line in series),
        *(stroke for index, item in enumerate(marks) for stroke in _draw_marks(scale, item, index)),
        "</svg>",
    ]
    return "\n".join(elements) + "\n"


def _draw_legend(entries: Sequence[tuple[str, str]]) -> Iterator[str]:
    x = float(LEFT)
    for name, style in entries:
        yield f'<line class="line {style}" x1="{x:.0f}" y1="52" x2="{x + 22:.0f}" y2="52"/>'
        yield f'<text x="{x + 28:.0f}" y="57">{escape(name)}</text>'
        x += 46 + 7.6 * len(name)


def _draw_axes(scale: _Scale, x_label: str, y_label: str) -> Iterator[str]:
    for value in _make_ticks(scale.max_y):
        y = scale.y(value)
        yield f'<line class="grid" x1="{LEFT}" y1="{y}" x2="{WIDTH - RIGHT}" y2="{y}"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 5}" text-anchor="end">{value:,.0f}</text>'
    for value in _make_ticks(scale.max_x):
        x = scale.x(value)
        yield f'<text x="{x}" y="{HEIGHT - 26}" text-anchor="middle">{value:,.0f}</text>'
    yield f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 6}" text-anchor="end">{escape(x_label)}</text>'
    yield f'<text x="{LEFT - 8}" y="{TOP - 8}" text-anchor="end">{escape(y_label)}</text>'


def _make_ticks(largest: float) -> list[float]:
    """Return round numbers from 0 up to the largest value."""
    step = next(
        factor * 10**power
        for power in range(9)
        for factor in (1, 2, 5)
        if largest / (factor * 10**power) <= TICK_COUNT
    )
    return [float(step * index) for index in range(int(largest // step) + 1)]


def _draw_limit(scale: _Scale, name: str, value: float) -> Iterator[str]:
    y = scale.y(value)
    yield f'<line class="limit" x1="{LEFT}" y1="{y}" x2="{WIDTH - RIGHT}" y2="{y}"/>'
    yield f'<text x="{WIDTH - RIGHT}" y="{y - 6}" text-anchor="end">{escape(name)}</text>'


def _draw_line(scale: _Scale, line: Series) -> str:
    step = max(1, len(line.points) // MAX_POINTS)
    points = [point for point in line.points[::step] if point[1] <= scale.max_y]
    path = " ".join(f"{scale.x(x)},{scale.y(y)}" for x, y in points)
    return f'<polyline class="line {line.style}" points="{path}"/>'


def _draw_marks(scale: _Scale, marks: Marks, index: int) -> Iterator[str]:
    top = HEIGHT - BOTTOM + 2 + index * 9
    for position in marks.positions:
        x = scale.x(position)
        yield f'<line class="line {marks.style}" x1="{x}" y1="{top}" x2="{x}" y2="{top + 8}"/>'
