"""Compute the coordinates of SVG charts: the tree of clones, and bar charts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

ROW_HEIGHT, INDENT, TREE_WIDTH = 30, 22, 320


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A thread in the tree, with its position."""

    id: str
    title: str
    x: int
    y: int
    is_current: bool
    is_gone: bool
    branch: str
    """SVG path of the line to the source thread; empty for the root."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A drawn tree of clones."""

    nodes: Sequence[TreeNode]
    width: int
    height: int
    more: int
    """Number of clones that are not drawn."""


def draw_tree(ordered: Sequence[tuple[str, str, int, bool]], current: str, more: int) -> Tree:
    """Lay out the threads of a family of clones.

    Args:
        ordered: Tuples of id, title, depth and whether the thread was deleted, depth first.
        current: Id of the thread to highlight.
        more: Number of clones that are not drawn.
    """
    nodes: list[TreeNode] = []
    open_at: dict[int, int] = {}
    for place, (pk, title, depth, gone) in enumerate(ordered):
        x, y = 10 + depth * INDENT, ROW_HEIGHT // 2 + place * ROW_HEIGHT
        branch = ""
        if depth > 0 and depth - 1 in open_at:
            branch = f"M{x - INDENT} {open_at[depth - 1] + 6} V{y} H{x - 6}"
        nodes.append(TreeNode(pk, title, x, y, pk == current, gone, branch))
        open_at[depth] = y
    return Tree(nodes, TREE_WIDTH, max(ROW_HEIGHT, ROW_HEIGHT * len(nodes)), more)


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a chart, with its position."""

    label: str
    value: Any
    shown: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars on a common scale."""

    bars: Sequence[Bar]
    width: int
    height: int
    top: str
    """Label of the highest value."""
    labels: Sequence[str] = ()
    """Labels of the axis: first, middle and last."""


def draw_column_chart(
    values: Sequence[tuple[str, float]], *, width: int = 640, height: int = 140
) -> Chart:
    """Lay out vertical bars for pairs of label and value."""
    top = max((value for _label, value in values), default=0) or 1
    step = width / max(len(values), 1)
    bars = [
        Bar(
            label,
            value,
            _format_number(value),
            round(place * step + 1, 1),
            round(height - height * value / top, 1),
            round(max(step - 2, 1), 1),
            round(height * value / top, 1),
        )
        for place, (label, value) in enumerate(values)
    ]
    named = [values[place][0] for place in (0, len(values) // 2, -1)] if values else []
    return Chart(bars, width, height, _format_number(top), named)


def draw_bar_chart(
    values: Sequence[tuple[str, float, str]], *, top: float | None = None, width: int = 100
) -> Chart:
    """Lay out horizontal bars for tuples of label, value and formatted value.

    `top` is the value of a bar of full width; by default the highest value.
    """
    highest = top or max((value for _label, value, _shown in values), default=0) or 1
    bars = [
        Bar(label, value, shown, 0, 0, round(width * value / highest, 1), 18)
        for label, value, shown in values
    ]
    return Chart(bars, width, 18, _format_number(highest))


def _format_number(value: float) -> str:
    return f"{value:g}" if value < 10_000 else f"{value / 1000:.0f}k"
