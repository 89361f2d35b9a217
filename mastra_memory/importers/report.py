"""Count what happened to every record, and log the records that were omitted."""

from collections import Counter
from collections.abc import Iterator
from typing import IO, get_args

import orjson

from mastra_memory.importers.records import ImportNote, ImportOutcome, OmittedRecord, RecordKind

KINDS: tuple[RecordKind, ...] = get_args(RecordKind)
OUTCOMES: tuple[ImportOutcome, ...] = get_args(ImportOutcome)
MAX_REASONS = 30
"""Distinct reasons that are counted separately. Reasons may quote the source, so that their
number would otherwise grow with the file."""

_ALWAYS_SHOWN = ("stored", "already there", "skipped", "refused")


class ImportReport:
    """The counts of an import. Each record has exactly one outcome, so the counts add up."""

    def __init__(self, details_file: IO[bytes] | None = None) -> None:
        """Create an empty report.

        Args:
            details_file: Receives one line of JSON for each omitted record.
        """
        self._counts: Counter[tuple[RecordKind, ImportOutcome]] = Counter()
        self._reasons: Counter[tuple[str, RecordKind, str]] = Counter()
        self._notes: Counter[str] = Counter()
        self._details_file = details_file
        self.parsed_count = 0
        """The number of records that could be parsed, whether they were stored or not."""

    def add(self, kind: RecordKind, outcome: ImportOutcome, number: int = 1) -> None:
        """Count records with this outcome."""
        self._counts[kind, outcome] += number
        self.parsed_count += number

    def add_omitted(self, omitted: OmittedRecord, *, parsed: bool = False) -> None:
        """Count an omitted record and log it to the details file.

        Args:
            omitted: The record. Joined records are counted, but not logged.
            parsed: Whether a refused record could be parsed, but not stored.
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
        """Count a note."""
        self._notes[note.text] += 1

    def get_count(self, kind: RecordKind, outcome: ImportOutcome) -> int:
        """Return the number of records of a kind with this outcome."""
        return self._counts[kind, outcome]

    def count_read(self, kind: RecordKind) -> int:
        """Return the number of records of a kind, whatever their outcome."""
        return sum(self._counts[kind, outcome] for outcome in OUTCOMES)

    @property
    def omitted_count(self) -> int:
        """The number of skipped and refused records."""
        return sum(self._reasons.values())

    def format_lines(self) -> Iterator[str]:
        """Yield a table of all counts, then reasons and notes, the most frequent ones first."""
        shown = [
            outcome
            for outcome in OUTCOMES
            if outcome in _ALWAYS_SHOWN or any(self._counts[kind, outcome] for kind in KINDS)
        ]
        yield _format_row("", "read", *shown)
        for kind in KINDS:
            if self.count_read(kind) or kind in ("threads", "messages"):
                numbers = (
                    self.count_read(kind),
                    *(self._counts[kind, outcome] for outcome in shown),
                )
                yield _format_row(kind, *(f"{number:,}" for number in numbers))
        for (outcome, kind, reason), number in self._reasons.most_common():
            yield f"{outcome}: {number:,} {kind}: {reason}"
        for text, number in self._notes.most_common():
            yield f"note: {number:,} {text}"


def _format_row(name: str, *cells: str) -> str:
    return f"{name:<17}" + "".join(f"{cell:>15}" for cell in cells)
