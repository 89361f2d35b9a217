"""Format the results: tables for reading, JSON for comparing."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.runner import Rates, Results
from benchmarks.scenarios import SCENARIOS

TITLES = {scenario.name: scenario.title for scenario in SCENARIOS}
ONE_PROCESS = "one_process"
"""The name of our server when it runs with a single web process, as Mastra's does."""


def comparison_table(results: Results, connections: int) -> str:
    """Return a table of both products: medians, their spread, the ratio for both set-ups."""
    heading = (
        f"{connections} connection(s)",
        *("ours /s", "±", "Mastra /s", "±", "ratio"),
        *("one process /s", "±", "ratio"),
    )
    rows = [heading]
    for name, rates in results.items():
        ours, mastra, single = rates["ours"], rates["mastra"], rates[ONE_PROCESS]
        cells = (*_cells(ours), *_cells(mastra), f"{_ratio(ours, mastra):.2f}")
        rows.append((TITLES[name], *cells, *_cells(single), f"{_ratio(single, mastra):.2f}"))
    return _aligned(rows)


def columns_table(title: str, columns: Mapping[str, Mapping[str, float]]) -> str:
    """Return a table with one column of figures for each key of `columns`."""
    rows: list[Sequence[str]] = [(title, *columns)]
    names = [name for name in TITLES if any(name in column for column in columns.values())]
    for name in names:
        cells = (_figure(column[name]) if name in column else "" for column in columns.values())
        rows.append((TITLES[name], *cells))
    return _aligned(rows)


def medians(results: Results, target: str = "ours") -> dict[str, float]:
    """Return the medians of one target by scenario."""
    return {name: rates[target].median for name, rates in results.items()}


def as_json(results: Results) -> dict[str, Any]:
    """Return medians and ratios by scenario, `one_process` holding those of a single process."""
    return {
        name: _pair(rates["ours"], rates["mastra"])
        | {ONE_PROCESS: _pair(rates[ONE_PROCESS], rates["mastra"])}
        for name, rates in results.items()
    }


def _pair(ours: Rates, mastra: Rates) -> dict[str, float]:
    return {
        "ours": round(ours.median, 2),
        "mastra": round(mastra.median, 2),
        "ratio": round(_ratio(ours, mastra), 3),
    }


def _ratio(ours: Rates, mastra: Rates) -> float:
    return ours.median / mastra.median


def _cells(rates: Rates) -> tuple[str, str]:
    # "±" is half the distance between the slowest and the fastest round.
    return _figure(rates.median), f"{rates.spread / 2:.0%}"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:,.1f}" if value >= 10 else f"{value:.2f}"


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join(cells))
    lines.insert(1, "-" * len(lines[0]))
    return "\n".join(lines)
