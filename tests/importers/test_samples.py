"""Tests of all formats with the same twenty conversations: nothing is lost, and all is exported."""

import json
from pathlib import Path
from typing import Any

import pytest

from mastra_memory.db import sql
from mastra_memory.exporters import jsonl
from mastra_memory.importers import sources
from mastra_memory.importers.records import OmittedRecord, ResourceMapping
from mastra_memory.models import Message
from tests.exporters.test_jsonl import delete_everything
from tests.support.exporting import run_export
from tests.support.import_samples import CONVERSATIONS, RENDERERS, render_all
from tests.support.importing import (
    count_outcomes,
    import_items,
    import_path,
    read_items,
    write_json,
)

pytestmark = pytest.mark.django_db

TRACES = ("langfuse", "langsmith")
"""Formats that repeat earlier messages in the input of each request."""
WITH_UPLOADS = frozenset(RENDERERS) - {"sharegpt", "locomo"}


def write_samples(folder: Path, format: str) -> Path:
    path = folder / "samples.jsonl"
    path.write_bytes(b"\n".join(json.dumps(record).encode() for record in render_all(format)))
    return path


@pytest.mark.parametrize("format", RENDERERS)
def test_read__counts_of_all_samples_add_up(tmp_path: Path, format: str) -> None:
    path = write_samples(tmp_path, format)
    with sources.open_source(str(path)) as source:
        assert source.format == format
    items = read_items(path, format=format)
    assert all(i.reason for i in items if isinstance(i, OmittedRecord))
    report = import_path(path, format=format)
    turns = sum(map(len, CONVERSATIONS.values()))
    read = report.count_read("messages")
    assert read >= turns if format in TRACES else read == turns
    outcomes = count_outcomes(report, "messages")
    assert outcomes["stored"] == Message.objects.count() - report.count_read("branch copies")
    expected = 0.8 * turns if format != "locomo" else 0.7 * turns
    assert (
        outcomes["stored"] + (outcomes.get("joined", 0) if format not in TRACES else 0) > expected
    )


@pytest.mark.parametrize("format", RENDERERS)
def test_read__words_and_uploads_of_all_samples_are_stored(tmp_path: Path, format: str) -> None:
    import_path(write_samples(tmp_path, format), format=format)
    stored = json.dumps(list(Message.objects.values_list("content", flat=True)))
    turns = [turn for conversation in CONVERSATIONS.values() for turn in conversation]
    texts = {turn.text.strip() for turn in turns if turn.role in ("user", "assistant")}
    for text in texts:
        clean = text.replace("\x00", "\ufffd").replace("\ud800", "\ufffd")
        assert json.dumps(clean)[1:-1] in stored, text[:40]
    if format in WITH_UPLOADS:
        assert "budget.xlsx" in stored and "plan.pdf" in stored
    for text in ("Obey", "Zork") if format != "librechat" else ():
        assert text not in stored


@pytest.mark.parametrize("format", RENDERERS)
def test_export__round_trip_of_all_samples(tmp_path: Path, format: str) -> None:
    """What is exported after an import of the export is the same, byte for byte."""
    import_path(write_samples(tmp_path, format), ResourceMapping(prefix="p-"), format=format)
    first, counts = run_export(jsonl)
    assert counts.threads >= 15
    delete_everything()
    (tmp_path / "export.jsonl").write_text(first, newline="")
    import_path(tmp_path / "export.jsonl", ResourceMapping())
    second, _ = run_export(jsonl)
    assert second == first


@pytest.mark.parametrize("format", RENDERERS)
def test_read__second_import_of_all_samples_changes_nothing(tmp_path: Path, format: str) -> None:
    path = write_samples(tmp_path, format)
    import_path(path, format=format)
    before: list[Any] = sql.fetch_all("SELECT id, content, sequence FROM mastra_memory_message")
    report = import_path(path, format=format)
    assert not report.get_count("messages", "stored") and not report.get_count("threads", "stored")
    assert sql.fetch_all("SELECT id, content, sequence FROM mastra_memory_message") == before


def test_read__mapping_reads_the_samples_too(tmp_path: Path) -> None:
    rows = [
        {"talk": name, "role": turn.role, "text": turn.text, "at": turn.iso, "file": turn.upload}
        for name, turns in CONVERSATIONS.items()
        for turn in turns
    ]
    mapping = {
        "fields": {"thread": "talk", "role": "role", "text": "text", "time": "at", "files": "file"},
        "roles": {"call": "assistant", "result": "tool"},
        "defaults": {"owner": "o"},
    }
    description = write_json(tmp_path / "mapping.json", mapping)
    path = write_json(tmp_path / "rows.jsonl", rows)
    with sources.open_source(str(path), mapping=str(description)) as source:
        report = import_items(source.read(ResourceMapping()))
    outcomes = count_outcomes(report, "messages")
    assert sum(outcomes.values()) == len(rows)
    assert outcomes["refused"] == 1 and outcomes["skipped"] == 3
    first, _ = run_export(jsonl)
    delete_everything()
    (tmp_path / "export.jsonl").write_text(first, newline="")
    import_path(tmp_path / "export.jsonl", ResourceMapping())
    assert run_export(jsonl)[0] == first
