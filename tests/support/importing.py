"""Import a source in a test, and examine the result."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mastra_memory.importers import sources
from mastra_memory.importers.loader import Loader
from mastra_memory.importers.records import OmittedRecord, RecordKind, ResourceMapping, SourceItem
from mastra_memory.importers.report import OUTCOMES, ImportReport
from mastra_memory.models import Message, Thread

ALICE = ResourceMapping(resource="alice")


def write_json(path: Path, value: Any) -> Path:
    """Write a JSON file, or JSON Lines if the name ends in `.jsonl`."""
    lines = value if path.suffix == ".jsonl" else [value]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    return path


def read_items(
    path: Path, resources: ResourceMapping = ALICE, *, format: str = sources.AUTO
) -> list[SourceItem]:
    """Return what the source yields."""
    with sources.open_source(str(path), format=format) as source:
        return list(source.read(resources))


def list_omitted(items: Sequence[SourceItem]) -> list[tuple[str, str, str]]:
    """Return the kind, outcome and reason of each omitted record."""
    return [(i.kind, i.outcome, i.reason) for i in items if isinstance(i, OmittedRecord)]


def import_path(
    path: Path, resources: ResourceMapping = ALICE, *, format: str = sources.AUTO, **options: Any
) -> ImportReport:
    """Import the source and return the report."""
    with sources.open_source(str(path), format=format) as source:
        return import_items(source.read(resources), **options)


def import_items(items: Any, **options: Any) -> ImportReport:
    """Import items as if a source had yielded them."""
    report = ImportReport()
    Loader(report, **options).load(items)
    return report


def count_outcomes(report: ImportReport, kind: RecordKind) -> dict[str, int]:
    """Return the number of records for each outcome that occurred."""
    return {outcome: n for outcome in OUTCOMES if (n := report.get_count(kind, outcome))}


def get_only_thread() -> Thread:
    """Return the only thread in the database."""
    return Thread.objects.get()


def list_texts(thread: Thread | None = None) -> list[tuple[str, str]]:
    """Return the role and the text of the messages of a thread, or of all messages, in order."""
    messages = Message.objects.all() if thread is None else thread.messages.all()
    ordered = messages.order_by("created_at", "sequence")
    return list(ordered.values_list("role", "text"))


def list_contents(thread: Thread) -> list[dict[str, Any]]:
    """Return the contents of the messages of a thread, in order."""
    ordered = thread.messages.order_by("created_at", "sequence")
    return list(ordered.values_list("content", flat=True))
