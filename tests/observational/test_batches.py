"""Which threads of a resource are observed together."""

import pytest

from mastra_memory.observational import batches
from mastra_memory.observational.batches import ThreadSize

A, B, C, D = (
    ThreadSize("a", 18_000, "2024-01-02T00:00:00.000Z"),
    ThreadSize("b", 9_000, "2024-01-01T00:00:00.000Z"),
    ThreadSize("c", 8_000, "2024-01-03T00:00:00.000Z"),
    ThreadSize("d", 2_000, "2023-01-01T00:00:00.000Z"),
)


@pytest.mark.parametrize(
    ("threshold", "selected"),
    [(30_000, [B, A, C]), (18_000, [A]), (18_001, [B, A]), (37_000, [D, B, A, C]), (37_001, [])],
)
def test_select_threads__largest_first_until_threshold(
    threshold: int, selected: list[ThreadSize]
) -> None:
    assert batches.select_threads([D, C, A, B], threshold) == selected


def test_select_threads__skips_empty_threads() -> None:
    empty = ThreadSize("e", 0, "2020-01-01T00:00:00.000Z")
    assert batches.select_threads([empty, A], 18_000) == [A]
    assert batches.select_threads([], 1) == []


@pytest.mark.parametrize(
    ("maximum", "expected"),
    [
        (10_000, [[B], [A], [C]]),
        (20_000, [[B], [A], [C]]),
        (27_000, [[B, A], [C]]),
        (35_000, [[B, A, C]]),
    ],
)
def test_make_batches__in_order_and_within_maximum(
    maximum: int, expected: list[list[ThreadSize]]
) -> None:
    assert batches.make_batches([B, A, C], maximum) == expected
