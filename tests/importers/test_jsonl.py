"""Tests of importing our own export format."""

from pathlib import Path
from typing import Any

import pytest

from mastra_memory.importers.records import ResourceMapping
from mastra_memory.models import Message, ObservationalRecord, Thread, WorkingMemory
from tests.support.importing import (
    count_outcomes,
    import_path,
    list_omitted,
    read_items,
    write_json,
)

pytestmark = pytest.mark.django_db

KEEP = ResourceMapping()
HEADER = {"kind": "export", "format": "mastra-memory", "version": 1}
MOMENTS = {"createdAt": "2024-01-01T00:00:00.001Z", "updatedAt": "2024-01-02T00:00:00.002Z"}
CONTENT = {"format": 2, "parts": [{"type": "text", "text": "Hello"}]}


def a_thread(**more: Any) -> dict[str, Any]:
    return {"kind": "thread", "id": "t1", "resourceId": "r1", **MOMENTS, **more}


def a_message(message_id: str = "m1", **more: Any) -> dict[str, Any]:
    return {
        "kind": "message",
        "id": message_id,
        "threadId": "t1",
        "resourceId": "r1",
        "role": "user",
        "createdAt": MOMENTS["createdAt"],
        "content": CONTENT,
        **more,
    }


def test_read__minimal_lines(tmp_path: Path) -> None:
    lines = [HEADER, a_thread(title="T", metadata={"k": 1}), a_message(editedAt="2024-05-01")]
    import_path(write_json(tmp_path / "x.jsonl", lines), KEEP)
    stored, row = Thread.objects.get(), Message.objects.get()
    assert (stored.title, stored.title_source, stored.metadata) == ("T", "manual", {"k": 1})
    assert (row.content, row.type) == (CONTENT, "v2")
    assert row.edited_at and row.edited_at.isoformat() == "2024-05-01T00:00:00+00:00"


def test_read__prefix_changes_resource_ids(tmp_path: Path) -> None:
    import_path(
        write_json(tmp_path / "x.jsonl", [a_thread(), a_message()]), ResourceMapping(prefix="old-")
    )
    assert Thread.objects.get().resource_id == "old-r1"
    assert Message.objects.get().resource_id == "old-r1"


@pytest.mark.parametrize(
    ("line", "kind", "reason"),
    [
        (a_thread(createdAt="soon"), "threads", "createdAt is not a valid time"),
        (a_thread(metadata=[1]), "threads", "metadata is not an object"),
        (a_message(content="text"), "messages", "content is not an object"),
        (a_message(content=None), "messages", "no content"),
        ({"kind": "workingMemory"}, "working memories", "createdAt is not a valid time"),
        ({"kind": "spaceship"}, "threads", "unknown kind of record spaceship"),
        ({"kind": ["thread"]}, "threads", "unknown kind of record "),
        ({**HEADER, "version": 2}, "threads", "unsupported version 2 of the export format, not 1"),
    ],
)
def test_read__invalid_line_is_refused_alone(
    tmp_path: Path, line: dict[str, Any], kind: str, reason: str
) -> None:
    path = write_json(tmp_path / "x.jsonl", [HEADER, line, a_thread()])
    assert list_omitted(read_items(path, KEEP)) == [(kind, "refused", reason)]
    assert len(read_items(path, KEEP)) == 2


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"role": "robot"}, "unknown role robot"),
        ({"role": "system"}, "unknown role system"),
        ({"id": ""}, "id must be 1 to 1024 bytes long"),
        ({"threadId": "x" * 1025}, "threadId must be 1 to 1024 bytes long"),
        ({"content": {"parts": [1]}}, "content.parts.0"),
        ({"threadId": "t9"}, "its thread does not exist"),
        ({"resourceId": "r9"}, "its thread does not exist or belongs to another resource"),
    ],
)
def test_load__invalid_message_is_refused_alone(
    tmp_path: Path, more: dict[str, Any], reason: str
) -> None:
    lines = [a_thread(), a_message(**more), a_message("fine")]
    report = import_path(write_json(tmp_path / "x.jsonl", lines), KEEP)
    assert count_outcomes(report, "messages") == {"stored": 1, "refused": 1}
    (line,) = [line for line in report.format_lines() if line.startswith("refused")]
    assert reason in line


def a_record(**more: Any) -> dict[str, Any]:
    return {
        "kind": "observationalRecord",
        "id": "o1",
        "threadId": "t1",
        "resourceId": "r1",
        "generationCount": 0,
        **MOMENTS,
        **more,
    }


@pytest.mark.parametrize(
    "more",
    [
        {"originType": "miracle"},
        {"activeObservations": 5},
        {"totalTokensObserved": "many"},
        {"totalTokensObserved": 2**63},
        {"observationTokenCount": None},
        {"generationCount": 2**40},
        {"chunks": [{"id": "c"}]},
        {"threadId": "t9"},
        {"lastObservedAt": "never"},
    ],
)
def test_load__invalid_observations_are_refused(tmp_path: Path, more: dict[str, Any]) -> None:
    lines = [a_thread(), a_record(**more), a_message()]
    report = import_path(write_json(tmp_path / "x.jsonl", lines), KEEP)
    assert count_outcomes(report, "observations") == {"refused": 1}
    assert count_outcomes(report, "messages") == {"stored": 1}


def test_load__second_record_of_a_generation_is_refused(tmp_path: Path) -> None:
    report = import_path(
        write_json(tmp_path / "x.jsonl", [a_thread(), a_record(), a_record(id="o2")]), KEEP
    )
    assert count_outcomes(report, "observations") == {"stored": 1, "refused": 1}
    assert ObservationalRecord.objects.get().id == "o1"


@pytest.mark.parametrize("update", [False, True])
@pytest.mark.parametrize("thread_id", [None, "t1"])
def test_load__record_of_another_resource_is_not_changed(
    tmp_path: Path, update: bool, thread_id: str | None
) -> None:
    first = a_record(threadId=thread_id, activeObservations="theirs")
    import_path(write_json(tmp_path / "x.jsonl", [a_thread(), first]), KEEP)
    later = {"updatedAt": "2030-01-01T00:00:00Z", "activeObservations": "not theirs"}
    other = [a_thread(id="t2"), first | later | {"threadId": thread_id and "t2"}]
    report = import_path(
        write_json(tmp_path / "y.jsonl", other), ResourceMapping(prefix="pp-"), update=update
    )
    assert count_outcomes(report, "observations") == {"refused": 1}
    record = ObservationalRecord.objects.get()
    assert (record.resource_id, record.thread_id) == ("r1", thread_id)
    assert record.active_observations == "theirs"


def test_load__contradictory_revisions_are_refused(tmp_path: Path) -> None:
    revision = {"version": 1, "content": "x", "source": "api", "createdAt": "2024-01-01"}
    memory = {
        "kind": "workingMemory", "resourceId": "r1", "content": "x", **MOMENTS,
        "revisions": [revision, revision],
    }  # fmt: skip
    report = import_path(write_json(tmp_path / "x.jsonl", [memory, a_thread()]), KEEP)
    assert count_outcomes(report, "working memories") == {"refused": 1}
    assert count_outcomes(report, "threads") == {"stored": 1}
    assert not WorkingMemory.objects.exists()
