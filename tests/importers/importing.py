"""Import a source in a test, and look at what came of it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mastra_memory.importers import sources
from mastra_memory.importers.loader import Loader
from mastra_memory.importers.records import Item, Kind, LeftOut, Owner
from mastra_memory.importers.report import OUTCOMES, Tally
from mastra_memory.models import Message, Thread

ALICE = Owner(resource="alice")


def write(path: Path, value: Any) -> Path:
    """A file of JSON, or of lines of it where the name says so."""
    lines = value if path.suffix == ".jsonl" else [value]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    return path


def items_in(path: Path, owner: Owner = ALICE, *, format: str = sources.AUTO) -> list[Item]:
    """What a source yields."""
    with sources.open_source(str(path), format=format) as source:
        return list(source.read(owner))


def left_out(items: Sequence[Item]) -> list[tuple[str, str, str]]:
    """Kind, outcome and reason of what was left out."""
    return [(i.kind, i.outcome, i.reason) for i in items if isinstance(i, LeftOut)]


def load(path: Path, owner: Owner = ALICE, *, format: str = sources.AUTO, **options: Any) -> Tally:
    """Import the source."""
    with sources.open_source(str(path), format=format) as source:
        return load_items(source.read(owner), **options)


def load_items(items: Any, **options: Any) -> Tally:
    """Import what a source would yield."""
    tally = Tally()
    Loader(tally, **options).load(items)
    return tally


def outcomes(tally: Tally, kind: Kind) -> dict[str, int]:
    """The outcomes that occurred, with their numbers."""
    return {outcome: n for outcome in OUTCOMES if (n := tally.number(kind, outcome))}


def only_thread() -> Thread:
    """The one thread that there is."""
    return Thread.objects.get()


def said(thread: Thread | None = None) -> list[tuple[str, str]]:
    """Role and text of the thread's messages, in order; of all messages without one."""
    messages = Message.objects.all() if thread is None else thread.messages.all()
    ordered = messages.order_by("created_at", "sequence")
    return list(ordered.values_list("role", "text"))


def contents(thread: Thread) -> list[dict[str, Any]]:
    """The contents of the thread's messages, in order."""
    ordered = thread.messages.order_by("created_at", "sequence")
    return list(ordered.values_list("content", flat=True))
