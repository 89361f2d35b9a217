"""Count what became of every record, and write down those that were left out."""

from collections import Counter
from collections.abc import Iterator
from typing import IO, get_args

import orjson

from mastra_memory.importers.records import Kind, LeftOut, Outcome, Remark

KINDS: tuple[Kind, ...] = get_args(Kind)
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
REASONS = 30
"""So many reasons are told apart; a source may be wrong in endless ways."""


class Tally:
    """Every record that was read has exactly one outcome, so the numbers add up."""

    def __init__(self, report: IO[bytes] | None = None) -> None:
        """`report` gets one line of JSON for each record that is left out."""
        self._counts: Counter[tuple[Kind, Outcome]] = Counter()
        self._reasons: Counter[tuple[str, Kind, str]] = Counter()
        self._remarks: Counter[str] = Counter()
        self._report = report
        self.understood = 0
        """How many records could be read, stored or not."""

    def count(self, kind: Kind, outcome: Outcome, number: int = 1) -> None:
        """So many more."""
        self._counts[kind, outcome] += number
        self.understood += number

    def leave_out(self, left_out: LeftOut, *, understood: bool = False) -> None:
        """One more that is not stored by itself, for a reason.

        `understood` says of a refused one that it could be read.
        """
        self.count(left_out.kind, left_out.outcome)
        if left_out.outcome == "refused" and not understood:
            self.understood -= 1
        if left_out.outcome == "joined":
            return
        reason = (left_out.outcome, left_out.kind, left_out.reason)
        if reason not in self._reasons and len(self._reasons) >= REASONS:
            reason = (left_out.outcome, left_out.kind, "other reasons")
        self._reasons[reason] += 1
        if self._report:
            line = {
                "outcome": left_out.outcome,
                "kind": left_out.kind,
                "where": left_out.where,
                "reason": left_out.reason,
                "detail": left_out.detail,
            }
            self._report.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))

    def remark(self, remark: Remark) -> None:
        """Count a remark."""
        self._remarks[remark.text] += 1

    def number(self, kind: Kind, outcome: Outcome) -> int:
        """How many had this outcome."""
        return self._counts[kind, outcome]

    def read(self, kind: Kind) -> int:
        """How many there were."""
        return sum(self._counts[kind, outcome] for outcome in OUTCOMES)

    @property
    def left_out(self) -> int:
        """How many records the report is about."""
        return sum(self._reasons.values())

    def lines(self) -> Iterator[str]:
        """A table of what became of everything, then reasons and remarks, the commonest first."""
        used = [o for o in OUTCOMES if any(self._counts[k, o] for k in KINDS) or o in _ALWAYS]
        yield _row("", "read", *used)
        for kind in KINDS:
            if self.read(kind) or kind in ("threads", "messages"):
                numbers = (self.read(kind), *(self._counts[kind, outcome] for outcome in used))
                yield _row(kind, *(f"{number:,}" for number in numbers))
        for (outcome, kind, reason), number in self._reasons.most_common():
            yield f"{outcome}: {number:,} {kind}: {reason}"
        for text, number in self._remarks.most_common():
            yield f"note: {number:,} {text}"


_ALWAYS = ("stored", "already there", "skipped", "refused")


def _row(name: str, *cells: str) -> str:
    return f"{name:<17}" + "".join(f"{cell:>15}" for cell in cells)
