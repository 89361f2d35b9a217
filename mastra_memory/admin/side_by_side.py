"""Compare two long texts line by line, side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from mastra_memory.admin.markdown import escape_bidi_overrides
from mastra_memory.admin.render_budget import RenderBudget
from mastra_memory.content.redaction import Mask, mask_beginning

MAX_TEXT_CHARACTERS = 400_000
"""Only the beginning of longer texts is compared."""
MAX_MATCHED_LINES = 1_500
"""If more lines of one text differ, they are shown without being matched to each other."""
MAX_SHOWN_ROWS = 600
MAX_LINE_CHARACTERS = 1_000
CONTEXT_LINES = 2


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """A line of each text. `kind` is `same`, `changed` or `skip`."""

    kind: str
    left: str = ""
    right: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The rows to show, and what they leave out."""

    rows: Sequence[ComparedRow]
    removed: int
    """Number of lines that only the first text has."""
    added: int
    is_cut: bool


def compare_texts(before: str, after: str, mask: Mask, budget: RenderBudget) -> Comparison:
    """Return the lines that differ, with `CONTEXT_LINES` lines around them, masked for the user."""
    is_cut = max(len(before), len(after)) > MAX_TEXT_CHARACTERS
    with budget.measure():
        left, right = (
            mask_beginning(text, mask, MAX_TEXT_CHARACTERS).split("\n") if text else []
            for text in (before, after)
        )
        rows = _align(left, right)
    removed = sum(row.kind == "changed" and bool(row.left) for row in rows)
    added = sum(row.kind == "changed" and bool(row.right) for row in rows)
    folded = _fold_context(rows)
    shown: list[ComparedRow] = []
    for row in folded[:MAX_SHOWN_ROWS]:
        if not budget.take_block():
            break
        shown.append(_cut(row, budget))
    return Comparison(shown, removed, added, is_cut or len(shown) < len(folded))


def _align(left: Sequence[str], right: Sequence[str]) -> list[ComparedRow]:
    """Pair the lines of both texts. Equal lines at both ends are found first: logs are long."""
    shorter = min(len(left), len(right))
    start = 0
    while start < shorter and left[start] == right[start]:
        start += 1
    end = 0
    while end < shorter - start and left[-1 - end] == right[-1 - end]:
        end += 1
    rows = [ComparedRow("same", line, line) for line in left[:start]]
    rows += _align_middle(left[start : len(left) - end], right[start : len(right) - end])
    rows += [ComparedRow("same", line, line) for line in left[len(left) - end :]]
    return rows


def _align_middle(left: Sequence[str], right: Sequence[str]) -> list[ComparedRow]:
    if max(len(left), len(right)) > MAX_MATCHED_LINES:
        return _pair(left, right)
    rows: list[ComparedRow] = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, left, right).get_opcodes():
        if tag == "equal":
            rows += [ComparedRow("same", line, line) for line in left[i1:i2]]
        else:
            rows += _pair(left[i1:i2], right[j1:j2])
    return rows


def _pair(left: Sequence[str], right: Sequence[str]) -> list[ComparedRow]:
    height = max(len(left), len(right))
    padded = [[*side, *[""] * (height - len(side))] for side in (left, right)]
    return [ComparedRow("changed", one, other) for one, other in zip(*padded, strict=True)]


def _fold_context(rows: Sequence[ComparedRow]) -> list[ComparedRow]:
    """Replace equal lines that are far from any change by one row."""
    near: set[int] = set()
    for place, row in enumerate(rows):
        if row.kind == "changed":
            near.update(range(place - CONTEXT_LINES, place + CONTEXT_LINES + 1))
    folded: list[ComparedRow] = []
    for place, row in enumerate(rows):
        if place in near:
            folded.append(row)
        elif not folded or folded[-1].kind != "skip":
            folded.append(ComparedRow("skip"))
    return folded


def _cut(row: ComparedRow, budget: RenderBudget) -> ComparedRow:
    sides = []
    for text in (row.left, row.right):
        limit = max(0, min(MAX_LINE_CHARACTERS, budget.characters))
        shown = escape_bidi_overrides(text[:limit]) + ("…" if len(text) > limit else "")
        budget.characters -= len(shown)
        sides.append(shown)
    return ComparedRow(row.kind, *sides)
