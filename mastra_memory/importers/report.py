"""Count what became of every record, and write down those that were left out."""

from collections import Counter
from collections.abc import Iterator
from typing import IO, get_args

import orjson

from mastra_memory.importers.records import ImportNote, ImportOutcome, OmittedRecord, RecordKind

KINDS: tuple[RecordKind, ...] = get_args(RecordKind)
OUTCOMES: tuple[ImportOutcome, ...] = get_args(ImportOutcome)
MAX_REASONS = 30
"""So many reasons are told apart; a source may be wrong in endless ways."""


class ImportReport:
    """Every record that was read has exactly one outcome, so the numbers add up."""

    def __init__(self, details_file: IO[bytes] | None = None) -> None:
        """`details_file` gets one line of JSON for each record that is left out."""
        self._counts: Counter[tuple[RecordKind, ImportOutcome]] = Counter()
        self._reasons: Counter[tuple[str, RecordKind, str]] = Counter()
        self._notes: Counter[str] = Counter()
        self._details_file = details_file
        self.parsed_count = 0
        """How many records could be read, stored or not."""

    def add(self, kind: RecordKind, outcome: ImportOutcome, number: int = 1) -> None:
        """So many more."""
        self._counts[kind, outcome] += number
        self.parsed_count += number

    def add_omitted(self, omitted: OmittedRecord, *, parsed: bool = False) -> None:
        """One more that is not stored by itself, for a reason.

        `parsed` says of a refused one that it could be read.
        """
        self.add(omitted.kind, omitted.outcome)
        if omitted.outcome == "refused" and not parsed:
            self.parsed_count -= 1
        if omitted.outcome == "joined":
            return
        reason = (omitted.outcome, omitted.kind, omitted.reason)
        if reason not in self._reasons and len(self._reasons) >= MAX_REASONS:
            reason = (omitted.outcome, omitted.kind, "other reasons")
        self._reasons[reason] += 1
        if self._details_file:
            line = {
                "outcome": omitted.outcome,
                "kind": omitted.kind,
                "where": omitted.location,
                "reason": omitted.reason,
                "detail": omitted.detail,
            }
            self._details_file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))

    def add_note(self, note: ImportNote) -> None:
        """Count a remark."""
        self._notes[note.text] += 1

    def get_count(self, kind: RecordKind, outcome: ImportOutcome) -> int:
        """How many had this outcome."""
        return self._counts[kind, outcome]

    def count_read(self, kind: RecordKind) -> int:
        """How many there were."""
        return sum(self._counts[kind, outcome] for outcome in OUTCOMES)

    @property
    def omitted_count(self) -> int:
        """How many records the report is about."""
        return sum(self._reasons.values())

    def format_lines(self) -> Iterator[str]:
        """A table of what became of everything, then reasons and remarks, the commonest first."""
        used = [o for o in OUTCOMES if any(self._counts[k, o] for k in KINDS) or o in _ALWAYS_SHOWN]
        yield _format_row("", "read", *used)
        for kind in KINDS:
            if self.count_read(kind) or kind in ("threads", "messages"):
                numbers = (
                    self.count_read(kind),
                    *(self._counts[kind, outcome] for outcome in used),
                )
                yield _format_row(kind, *(f"{number:,}" for number in numbers))
        for (outcome, kind, reason), number in self._reasons.most_common():
            yield f"{outcome}: {number:,} {kind}: {reason}"
        for text, number in self._notes.most_common():
            yield f"note: {number:,} {text}"


_ALWAYS_SHOWN = ("stored", "already there", "skipped", "refused")


def _format_row(name: str, *cells: str) -> str:
    return f"{name:<17}" + "".join(f"{cell:>15}" for cell in cells)
