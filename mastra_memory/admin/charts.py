"""Pictures drawn on the server: the tree of clones, and bars for the team's figures."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

ROW_HEIGHT, INDENT, TREE_WIDTH = 30, 22, 320


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A thread in the tree, where it is drawn."""

    id: str
    title: str
    x: int
    y: int
    is_current: bool
    is_gone: bool
    branch: str
    """The path of the line to its source; empty for the root."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A picture of nodes."""

    nodes: Sequence[TreeNode]
    width: int
    height: int
    more: int
    """Clones that the picture leaves out."""


def draw_tree(ordered: Sequence[tuple[str, str, int, bool]], current: str, more: int) -> Tree:
    """Draw (id, title, depth, gone) as they come from walking the tree depth first."""
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
    """One bar of a chart, with its place."""

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
    """What the highest bar means."""
    labels: Sequence[str] = ()
    """What stands beneath, at the beginning, in the middle and at the end."""


def draw_column_chart(
    values: Sequence[tuple[str, float]], *, width: int = 640, height: int = 140
) -> Chart:
    """Upright bars, one a day or so."""
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
    """Lying bars: label, value, and how the value is written."""
    most = top or max((value for _label, value, _shown in values), default=0) or 1
    bars = [
        Bar(label, value, shown, 0, 0, round(width * value / most, 1), 18)
        for label, value, shown in values
    ]
    return Chart(bars, width, 18, _format_number(most))


def _format_number(value: float) -> str:
    return f"{value:g}" if value < 10_000 else f"{value / 1000:.0f}k"
