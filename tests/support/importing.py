"""Import a source in a test, and look at what came of it."""

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
    """A file of JSON, or of lines of it where the name says so."""
    lines = value if path.suffix == ".jsonl" else [value]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    return path


def read_items(
    path: Path, resources: ResourceMapping = ALICE, *, format: str = sources.AUTO
) -> list[SourceItem]:
    """What a source yields."""
    with sources.open_source(str(path), format=format) as source:
        return list(source.read(resources))


def list_omitted(items: Sequence[SourceItem]) -> list[tuple[str, str, str]]:
    """Kind, outcome and reason of what was left out."""
    return [(i.kind, i.outcome, i.reason) for i in items if isinstance(i, OmittedRecord)]


def import_path(
    path: Path, resources: ResourceMapping = ALICE, *, format: str = sources.AUTO, **options: Any
) -> ImportReport:
    """Import the source."""
    with sources.open_source(str(path), format=format) as source:
        return import_items(source.read(resources), **options)


def import_items(items: Any, **options: Any) -> ImportReport:
    """Import what a source would yield."""
    report = ImportReport()
    Loader(report, **options).load(items)
    return report


def count_outcomes(report: ImportReport, kind: RecordKind) -> dict[str, int]:
    """The outcomes that occurred, with their numbers."""
    return {outcome: n for outcome in OUTCOMES if (n := report.get_count(kind, outcome))}


def get_only_thread() -> Thread:
    """The one thread that there is."""
    return Thread.objects.get()


def list_texts(thread: Thread | None = None) -> list[tuple[str, str]]:
    """Role and text of the thread's messages, in order; of all messages without one."""
    messages = Message.objects.all() if thread is None else thread.messages.all()
    ordered = messages.order_by("created_at", "sequence")
    return list(ordered.values_list("role", "text"))


def list_contents(thread: Thread) -> list[dict[str, Any]]:
    """The contents of the thread's messages, in order."""
    ordered = thread.messages.order_by("created_at", "sequence")
    return list(ordered.values_list("content", flat=True))
