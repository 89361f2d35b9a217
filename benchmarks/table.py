"""How the figures are shown: a table to read, a JSON file to compare with."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.contest import Rates, Results
from benchmarks.lines import LINES

TITLES = {line.name: line.title for line in LINES}


def versus(results: Results, connections: int) -> str:
    """Give the table of both servers: medians, how far the rounds lie apart, the ratio."""
    head = (f"{connections} connection(s)", "ours /s", "±", "Mastra /s", "±", "ratio")
    rows = [head]
    for name, rates in results.items():
        ours, mastra = rates["ours"], rates["mastra"]
        figures = (*_cells(ours), *_cells(mastra), f"{ours.median / mastra.median:.2f}")
        rows.append((TITLES[name], *figures))
    return _aligned(rows)


def single(title: str, columns: Mapping[str, Mapping[str, float]]) -> str:
    """Give a table of figures without a contest, one column each."""
    rows: list[Sequence[str]] = [(title, *columns)]
    names = [name for name in TITLES if any(name in column for column in columns.values())]
    for name in names:
        cells = (_figure(column[name]) if name in column else "" for column in columns.values())
        rows.append((TITLES[name], *cells))
    return _aligned(rows)


def medians(results: Results, server: str = "ours") -> dict[str, float]:
    """Give one server's medians by line."""
    return {name: rates[server].median for name, rates in results.items()}


def as_json(results: Results) -> dict[str, Any]:
    """Give the medians of both servers and their ratio by line."""
    return {
        name: {
            "ours": round(rates["ours"].median, 2),
            "mastra": round(rates["mastra"].median, 2),
            "ratio": round(rates["ours"].median / rates["mastra"].median, 3),
        }
        for name, rates in results.items()
    }


def _cells(rates: Rates) -> tuple[str, str]:
    # Half the distance between the slowest and the fastest round.
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
