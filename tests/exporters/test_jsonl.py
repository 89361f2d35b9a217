"""The app's own format: an import of an export restores the same data."""

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mastra_memory import working_memory
from mastra_memory.db import sql
from mastra_memory.exporters import jsonl
from mastra_memory.exporters.selection import ExportSelection, consistent_snapshot
from mastra_memory.importers.records import ResourceMapping
from mastra_memory.models import (
    Message,
    MessageObservation,
    ObservationalRecord,
    ObservationChunk,
    Thread,
    WorkingMemoryRevision,
)
from mastra_memory.observational import tracking
from mastra_memory.observational.keys import RecordKey
from mastra_memory.types import StoredThread
from tests.support.factories import (
    a_message,
    held_lease,
    make_chunk,
    make_record,
    make_thread,
    moment,
    save,
    some_messages,
    track,
)
from tests.support.importing import count_outcomes, import_path

pytestmark = pytest.mark.django_db

TABLES = ("thread", "workingmemory", "observationalrecord")


def export_bytes(selection: ExportSelection | None = None) -> bytes:
    written: list[bytes] = []
    with consistent_snapshot():
        jsonl.export(selection or ExportSelection(), written.append, lambda: None)
    return b"".join(written)


def export_lines(selection: ExportSelection | None = None) -> list[dict[str, Any]]:
    return [json.loads(line) for line in export_bytes(selection).splitlines()]


def list_kinds(lines: Sequence[dict[str, Any]]) -> list[str]:
    return [line["kind"] for line in lines]


def delete_everything() -> None:
    for table in TABLES:
        sql.execute(f"DELETE FROM mastra_memory_{table}")
    assert not Message.objects.exists() and not WorkingMemoryRevision.objects.exists()


UNUSUAL_JSON: dict[str, Any] = {
    "ü": ["☃", None, 1.5, -0.0, 1e22, {"deep": []}],
    "": "\u2028\ufffd\\u0000",
}


def create_everything() -> None:
    """Create at least one row of each kind, with unusual values everywhere."""
    first = make_thread("alice", "t/1 ☃", title='A "title"\n', metadata={"k": UNUSUAL_JSON})
    create_unusual_messages(first)
    second = make_thread("alice", "t2")
    Thread.objects.filter(pk="t2").update(
        clone_source_id=first.id, metadata=None, title_source="", created_at=moment(0.001)
    )
    make_thread("bob", "t3", metadata={})
    working_memory.save_for_thread(first.id, "alice", "of the thread", source="agent")
    for resource, text in (("alice", "old"), ("alice", "# new ü"), ("bob", "x"), ("bob", "")):
        working_memory.save_for_resource(resource, text, source="api")
    create_unusual_observations(first)
    make_record(second)


def create_unusual_messages(thread: StoredThread) -> None:
    tool = {"toolCallId": "c", "toolName": "f", "state": "result", "args": {}, "result": [1]}
    content = {
        "format": 2,
        "parts": [
            {"type": "tool-invocation", "toolInvocation": tool},
            {"type": "x", **UNUSUAL_JSON},
        ],
        "metadata": UNUSUAL_JSON,
        "content": "words",
    }
    save([a_message(thread, "m1", at=0, content=content, role="assistant", type="text")])
    save(some_messages(thread, 5, prefix="tie", createdAt="2024-01-01T00:00:00.001Z"))
    save([a_message(thread, "late", content="x", createdAt="9999-12-31T23:59:59.999Z")])
    Message.objects.filter(pk="tie2").update(edited_at=moment(0.5))


def create_unusual_observations(thread: StoredThread) -> None:
    make_record(thread, active_observations="old", config={"_overrides": {"a": 1}})
    record = make_record(
        thread,
        generation_count=1,
        origin_type="reflection",
        active_observations="noted ü",
        observed_message_ids=["m1"],
        last_observed_at=moment(1.234),
        last_buffered_at_time=moment(2.345),
        buffered_reflection="short",
        buffered_reflection_tokens=0,
        reflected_observation_line_count=3,
        total_tokens_observed=2**40,
        observed_timezone="Europe/Vienna",
        metadata={"k": UNUSUAL_JSON},
    )
    make_chunk(record, 0, hints={"currentTask": "x"}, message_ids=["m1"])
    make_chunk(record, 1, message_ids=[])
    make_record(resource_id="carol")


def test_export__imported_again_exports_the_same_bytes(tmp_path: Path) -> None:
    create_everything()
    before = export_bytes()
    delete_everything()
    path = tmp_path / "all.jsonl"
    path.write_bytes(before)
    report = import_path(path, ResourceMapping(), batch=3)
    assert export_bytes() == before
    assert count_outcomes(report, "threads") == {"stored": 3}
    assert count_outcomes(report, "messages") == {"stored": 7}
    assert count_outcomes(report, "working memories") == {"stored": 3}
    assert count_outcomes(report, "observations") == {"stored": 4}


def test_export__imported_again_restores_search_data(tmp_path: Path) -> None:
    create_everything()
    derived = ("id", "text", "search", "signal")
    before = list(Message.objects.order_by("id").values(*derived))
    path = tmp_path / "all.jsonl"
    path.write_bytes(export_bytes())
    delete_everything()
    import_path(path, ResourceMapping())
    assert list(Message.objects.order_by("id").values(*derived)) == before


def test_export__imported_into_existing_data_changes_nothing(tmp_path: Path) -> None:
    create_everything()
    before = export_bytes()
    path = tmp_path / "all.jsonl"
    path.write_bytes(before)
    for update in (False, True):
        report = import_path(path, ResourceMapping(), update=update)
        assert export_bytes() == before
        for kind in ("threads", "messages", "working memories", "observations"):
            assert set(count_outcomes(report, kind)) == {"already there"}


def test_export__a_thread_is_followed_by_its_related_rows() -> None:
    thread = make_thread("alice", "t1")
    save(some_messages(thread, 2))
    working_memory.save_for_thread("t1", "alice", "x", source="api")
    make_record(thread)
    working_memory.save_for_resource("alice", "x", source="api")
    make_record(resource_id="alice")
    assert list_kinds(export_lines()) == [
        "export",
        "workingMemory",
        "thread",
        "workingMemory",
        "message",
        "message",
        "observationalRecord",
        "observationalRecord",
    ]


def test_export__omits_claims_of_workers(tmp_path: Path) -> None:
    make_record(make_thread("alice", "t1"), **held_lease("observing"))
    path = tmp_path / "all.jsonl"
    path.write_bytes(export_bytes())
    delete_everything()
    import_path(path, ResourceMapping())
    assert ObservationalRecord.objects.get().lease_token is None


def test_export__selects_a_resource_or_a_thread() -> None:
    for resource in ("alice", "bob"):
        for number in (1, 2):
            thread = make_thread(resource, f"{resource}{number}")
            save(some_messages(thread, 1, prefix=thread.id))
        working_memory.save_for_resource(resource, "x", source="api")
        make_record(resource_id=resource)
    alices = export_lines(ExportSelection(resource_ids=["alice"]))
    assert {line.get("resourceId", "alice") for line in alices} == {"alice"}
    assert len(alices) == 1 + 1 + 4 + 1
    thread_lines = export_lines(ExportSelection(thread_ids=["bob2"]))
    assert [line.get("id") for line in thread_lines] == [None, "bob2", "bob20"]


def test_export__selects_messages_between_two_dates() -> None:
    thread = make_thread("alice", "t1")
    make_thread("alice", "empty")
    save(some_messages(thread, 6))
    found = export_lines(ExportSelection(since=moment(2), until=moment(4)))
    assert [line.get("id") for line in found] == [None, "t1", "m2", "m3"]


def test_export__several_batches_stay_in_order() -> None:
    sql.execute(
        """INSERT INTO mastra_memory_thread (id, resource_id, title, title_source, created_at)
        SELECT 't' || n, 'alice', '', '', timestamptz '2024-01-01' - n * interval '1 s'
        FROM generate_series(1, 250) n"""
    )
    sql.execute(
        """INSERT INTO mastra_memory_message
            (id, thread_id, resource_id, role, type, signal, content, text)
        SELECT 'm' || n, 't' || n, 'alice', 'user', 'v2', '', '{"format": 2, "parts": []}', ''
        FROM generate_series(1, 250) n WHERE n %% 3 = 0"""
    )
    found = export_lines()
    threads = [line["id"] for line in found if line["kind"] == "thread"]
    assert threads == [f"t{n}" for n in range(250, 0, -1)]
    for before, line in itertools.pairwise(found):
        if line["kind"] == "message":
            assert before["id"] == line["threadId"]
    assert list_kinds(found).count("message") == 83


def list_states() -> list[tuple[str, str, str | None]]:
    """Return the message, the scope and the text of the chunk of each message observation."""
    rows = MessageObservation.objects.order_by("message_id", "scope")
    return list(rows.values_list("message_id", "scope", "chunk__observations"))


def test_export__imported_again_restores_what_is_observed(tmp_path: Path) -> None:
    thread = make_thread("alice", "t1")
    stored = save(some_messages(thread, 6))
    track(stored[:5], scope="thread")
    track(stored[:2], scope="resource")
    old = make_record(thread, pinned=["likes tea"])
    record = make_record(
        thread,
        generation_count=1,
        origin_type="edit",
        created_by_name="Ann",
        last_observed_at=moment(3),
    )
    shared = make_record(resource_id="alice", last_observed_at=moment(3))
    observed: dict[str, Any] = {"activated_at": moment(7), "origin": "observation"}
    chunks = {
        ("m0", "thread"): make_chunk(old, observations="A", message_ids=["m0"], **observed),
        ("m1", "thread"): make_chunk(record, observations="B", message_ids=["m1"], range="m1:m1"),
        ("m0", "resource"): make_chunk(
            shared, observations="C", message_ids=["m0"], thread_id="t1", **observed
        ),
    }
    for (message_id, scope), chunk in chunks.items():
        row = MessageObservation.objects.filter(message_id=message_id, scope=scope)
        row.update(chunk=chunk)
    # m4 is after the cursor, so it is pending without a row.
    expected = [state for state in list_states() if state[0] != "m4"]
    data = export_bytes()
    pending = [line.get("pendingMessageIds") for line in map(json.loads, data.splitlines())]
    assert [ids for ids in pending if ids] == [["m2", "m3"], ["m1"]]
    path = tmp_path / "all.jsonl"
    path.write_bytes(data)
    delete_everything()
    assert list_states() == []
    import_path(path, ResourceMapping())
    assert export_bytes() == data
    assert list_states() == expected
    key = RecordKey.about_thread("t1", "alice")
    tracking.track_missing(key)
    unobserved = [message.id for message in tracking.list_unobserved(key)]
    assert unobserved == ["m1", "m2", "m3", "m4", "m5"]


def test_import__of_a_later_generation_ends_work_on_the_stored_one(tmp_path: Path) -> None:
    thread = make_thread("alice", "t1")
    track(save(some_messages(thread, 2)), scope="thread")
    stored = make_record(thread, **held_lease("observing"))
    MessageObservation.objects.filter(message_id="m0").update(chunk=make_chunk(stored))
    path = tmp_path / "all.jsonl"
    path.write_bytes(export_bytes())
    lines = [line for line in map(json.loads, path.read_bytes().splitlines())]
    record = next(line for line in lines if line["kind"] == "observationalRecord")
    record |= {"id": "later", "generationCount": 4, "originType": "reflection", "chunks": []}
    path.write_text("\n".join(map(json.dumps, lines)))
    import_path(path, ResourceMapping())
    stored.refresh_from_db()
    assert (stored.superseded_by_id, stored.lease_token) == ("later", None)
    assert list_states() == [("m0", "thread", None), ("m1", "thread", None)]
    assert not ObservationChunk.objects.exists()
