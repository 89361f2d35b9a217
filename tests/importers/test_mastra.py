"""Tests of importing threads, messages and working memory from Mastra's LibSQL files."""

import json
from pathlib import Path
from typing import Any

import pytest

from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers.records import ImportNote, ResourceMapping
from mastra_memory.models import Message, Thread, WorkingMemory
from tests.support.importing import count_outcomes, import_path, list_texts, read_items
from tests.support.mastra_databases import (
    make_libsql,
    make_message_row,
    make_resource_row,
    make_thread_row,
)

pytestmark = pytest.mark.django_db

KEEP = ResourceMapping()


def store(tmp_path: Path, **rows: Any) -> Path:
    named = {f"mastra_{table}": found for table, found in rows.items()}
    return make_libsql(tmp_path / "mastra.db", named)


def list_notes(path: Path) -> list[str]:
    return [item.text for item in read_items(path, KEEP) if isinstance(item, ImportNote)]


def test_read__keeps_ids_times_and_contents(tmp_path: Path) -> None:
    content = {"format": 2, "parts": [{"type": "x-odd", "k": [1, None]}], "metadata": {"a": 1}}
    path = store(
        tmp_path,
        threads=[make_thread_row(title="T", metadata={"topic": {"deep": 1.5}})],
        messages=[make_message_row(content=json.dumps(content), role="assistant", type="v2")],
    )
    report = import_path(path, KEEP)
    stored = Thread.objects.get(pk="t1")
    assert (stored.resource_id, stored.title, stored.metadata) == (
        "r1",
        "T",
        {"topic": {"deep": 1.5}},
    )
    assert stored.created_at.isoformat(timespec="milliseconds") == "2024-01-01T10:00:00.001+00:00"
    assert stored.updated_at.isoformat(timespec="milliseconds") == "2024-01-02T10:00:00.002+00:00"
    row = Message.objects.get(pk="m1")
    assert (row.content, row.role, row.type) == (content, "assistant", "v2")
    assert row.created_at.isoformat(timespec="milliseconds") == "2024-01-01T10:00:00.123+00:00"
    assert count_outcomes(report, "threads") == count_outcomes(report, "messages") == {"stored": 1}


def test_read__second_import_changes_nothing(tmp_path: Path) -> None:
    path = store(
        tmp_path,
        threads=[make_thread_row(metadata={"workingMemory": "w"})],
        messages=[make_message_row()],
        resources=[make_resource_row("r1", "known")],
    )
    import_path(path, KEEP)
    report = import_path(path, KEEP)
    assert (
        count_outcomes(report, "threads")
        == count_outcomes(report, "messages")
        == {"already there": 1}
    )
    assert count_outcomes(report, "working memories") == {"already there": 2}


def test_read__binary_metadata(tmp_path: Path) -> None:
    blob = b"\xcc\x1b\xc7\rworkingMemory\xb7thread text"
    import_path(store(tmp_path, threads=[make_thread_row(metadata=blob)]), KEEP)
    assert Thread.objects.get().metadata == {}
    assert WorkingMemory.objects.get(thread_id="t1").content == "thread text"


def test_read__working_memory_of_both_scopes(tmp_path: Path) -> None:
    path = store(
        tmp_path,
        threads=[make_thread_row(metadata={"workingMemory": "of the thread", "k": 1})],
        resources=[
            make_resource_row("r1", "of the resource"),
            make_resource_row("r2", ""),
            make_resource_row("r3", None),
        ],
    )
    import_path(path, KEEP)
    stored = WorkingMemory.objects.order_by("scope")
    assert [(w.scope, w.thread_id, w.resource_id, w.content) for w in stored] == [
        ("resource", None, "r1", "of the resource"),
        ("thread", "t1", "r1", "of the thread"),
    ]
    assert Thread.objects.get().metadata == {"k": 1}


def test_read__clones_keep_their_source(tmp_path: Path) -> None:
    clone = {"sourceThreadId": "t0", "clonedAt": "2024-01-01T00:00:00.000Z"}
    import_path(store(tmp_path, threads=[make_thread_row(metadata={"clone": clone})]), KEEP)
    stored = Thread.objects.get()
    assert (stored.clone_source_id, stored.metadata) == ("t0", {"clone": clone})


@pytest.mark.parametrize(
    ("metadata", "source"),
    [
        ({}, "manual"),
        ({"mastra": {"om": {"threadTitle": "T"}}}, "observed"),
        ({"mastra": {"om": {"threadTitle": "Other"}}}, "manual"),
        ({"mastra": {"om": {"threadTitle": "T"}}, "titlePinned": True}, "manual"),
    ],
)
def test_read__title_is_manual_unless_observed(
    tmp_path: Path, metadata: dict[str, Any], source: str
) -> None:
    import_path(store(tmp_path, threads=[make_thread_row(title="T", metadata=metadata)]), KEEP)
    assert Thread.objects.get().title_source == source


V1 = [
    {"type": "text", "text": "Look"},
    {"type": "tool-call", "toolCallId": "c", "toolName": "f", "args": {"x": 1}},
    {"type": "tool-result", "toolCallId": "c", "toolName": "f", "result": {"y": 2}},
]


@pytest.mark.parametrize(
    ("raw", "parts"),
    [
        ('{"format":2,"parts":[{"type":"text","text":"a"}]}', [{"type": "text", "text": "a"}]),
        ('{"parts":[{"type":"text","text":"a"}]}', [{"type": "text", "text": "a"}]),
        ('"quoted"', [{"type": "text", "text": "quoted"}]),
        ("plain {text", [{"type": "text", "text": "plain {text"}]),
        ("", [{"type": "text", "text": ""}]),
        ("42", [{"type": "text", "text": "42"}]),
        (
            json.dumps(V1),
            [
                {"type": "text", "text": "Look"},
                {
                    "type": "tool-invocation",
                    "toolInvocation": {
                        "state": "result",
                        "toolCallId": "c",
                        "toolName": "f",
                        "args": {"x": 1},
                        "result": {"y": 2},
                    },
                },
            ],
        ),
    ],
)
def test_read__converts_each_form_of_content(tmp_path: Path, raw: str, parts: list[Any]) -> None:
    import_path(
        store(tmp_path, threads=[make_thread_row()], messages=[make_message_row(content=raw)]), KEEP
    )
    content = Message.objects.get().content
    assert (content["format"], content["parts"]) == (2, parts)


@pytest.mark.parametrize(
    "raw", [{"weird": 1}, [1, 2], {"format": 3, "parts": []}, {"format": 2, "parts": ["x"]}]
)
def test_read__unknown_form_is_stored_raw_and_noted(tmp_path: Path, raw: Any) -> None:
    path = store(
        tmp_path, threads=[make_thread_row()], messages=[make_message_row(content=json.dumps(raw))]
    )
    report = import_path(path, KEEP)
    expected = {"format": 2, "parts": [], "metadata": {"importRaw": raw}}
    assert Message.objects.get().content == expected
    assert count_outcomes(report, "messages") == {"stored": 1}
    assert list_notes(path) == [
        "messages have content in an unknown form; it was stored as metadata.importRaw"
    ]


def test_read__omits_orphans_instructions_and_unknown_roles(
    tmp_path: Path,
) -> None:
    path = store(
        tmp_path,
        threads=[make_thread_row()],
        messages=[
            make_message_row("m1"),
            make_message_row("m2", "gone"),
            make_message_row("m3", role="system"),
            make_message_row("m4", role="robot"),
            make_message_row("m5", role="tool"),
            make_message_row("m6", role="signal"),
        ],
    )
    report = import_path(path, KEEP)
    assert count_outcomes(report, "messages") == {"stored": 3, "skipped": 2, "refused": 1}


def test_read__message_gets_the_resource_of_its_thread(tmp_path: Path) -> None:
    rows = [make_message_row("m1", resourceId="other"), make_message_row("m2", resourceId=None)]
    path = store(tmp_path, threads=[make_thread_row()], messages=rows)
    import_path(path, KEEP)
    assert set(Message.objects.values_list("resource_id", flat=True)) == {"r1"}
    assert list_notes(path) == [
        "messages with another resource than their thread got the resource of the thread"
    ]


def test_read__messages_with_equal_times_keep_their_order(tmp_path: Path) -> None:
    rows = [make_message_row(name) for name in ("z", "a", "m")]
    import_path(store(tmp_path, threads=[make_thread_row()], messages=rows), KEEP)
    assert [text for _, text in list_texts()] == ["z", "a", "m"]


def test_read__invalid_ids_are_refused(tmp_path: Path) -> None:
    path = store(
        tmp_path,
        threads=[
            make_thread_row(),
            make_thread_row("x" * 1025),
            make_thread_row("t2", ""),
            make_thread_row("ü☃/ %2e", "r1"),
        ],
        messages=[
            make_message_row("y" * 1025),
            make_message_row("fine", "ü☃/ %2e"),
            make_message_row("m3", "x" * 1025),
        ],
    )
    report = import_path(path, KEEP)
    assert count_outcomes(report, "threads") == {"stored": 2, "refused": 2}
    assert count_outcomes(report, "messages") == {"stored": 1, "refused": 2}


def test_read__text_is_cleaned(tmp_path: Path) -> None:
    path = store(
        tmp_path,
        threads=[make_thread_row("t\x001", title="a\x00b", metadata='{"k\\u0000": "\\ud800"}')],
        messages=[make_message_row("m1", "t\x001", content="x\x00y")],
    )
    import_path(path, KEEP)
    stored = Thread.objects.get()
    assert (stored.id, stored.title, stored.metadata) == (
        "t\ufffd1",
        "a\ufffdb",
        {"k\ufffd": "\ufffd"},
    )
    assert list_texts() == [("user", "x\ufffdy")]


def test_read__thread_with_unreadable_metadata_is_stored(tmp_path: Path) -> None:
    rows = [
        make_thread_row("t1", metadata=b"\xff\xff"),
        make_thread_row("t2", metadata='"{\\"a\\": 1}"'),
        make_thread_row("t3", metadata="[1]"),
    ]
    import_path(store(tmp_path, threads=rows), KEEP)
    stored = Thread.objects.order_by("id").values_list("metadata", flat=True)
    assert list(stored) == [None, {"a": 1}, {"importRaw": [1]}]


def test_read__row_with_an_invalid_time_is_refused(tmp_path: Path) -> None:
    path = store(
        tmp_path,
        threads=[make_thread_row(), make_thread_row("t2", createdAt="soon")],
        messages=[
            make_message_row(createdAt=None),
            make_message_row("m2", createdAt="99999-01-01"),
        ],
        resources=[make_resource_row("r1", "x", updatedAt="")],
    )
    report = import_path(path, KEEP)
    assert count_outcomes(report, "threads") == {"stored": 1, "refused": 1}
    assert count_outcomes(report, "messages") == {"refused": 2}
    assert count_outcomes(report, "working memories") == {"refused": 1}


def test_read__accepts_unexpected_column_types(tmp_path: Path) -> None:
    path = store(
        tmp_path,
        threads=[
            make_thread_row(),
            make_thread_row("t2", title=None, metadata=5),
            make_thread_row(7),  # type: ignore[arg-type]
        ],
        messages=[
            make_message_row(content=b'"bytes"'),
            make_message_row("m2", content=None),
            make_message_row("m3", role=1),
        ],
    )
    report = import_path(path, KEEP)
    assert count_outcomes(report, "threads") == {"stored": 2, "refused": 1}
    assert count_outcomes(report, "messages") == {"stored": 2, "refused": 1}
    assert list_texts()[0] == ("user", "bytes")


def test_read__prefix_changes_resource_ids(tmp_path: Path) -> None:
    path = store(
        tmp_path,
        threads=[make_thread_row()],
        messages=[make_message_row()],
        resources=[make_resource_row("r1", "known")],
    )
    import_path(path, ResourceMapping(prefix="old-"))
    assert Message.objects.get().resource_id == "old-r1"
    assert WorkingMemory.objects.get().resource_id == "old-r1"


def test_read__older_databases_without_some_tables(tmp_path: Path) -> None:
    path = make_libsql(
        tmp_path / "old.db",
        {"mastra_threads": [make_thread_row()], "mastra_messages": [make_message_row()]},
        without=("mastra_observational_memory", "mastra_resources"),
    )
    assert count_outcomes(import_path(path, KEEP), "messages") == {"stored": 1}


def test_open_source__other_database_is_an_error(tmp_path: Path) -> None:
    path = make_libsql(tmp_path / "other.db", {}, without=("mastra_messages",))
    with pytest.raises(InvalidInput, match="no table mastra_messages"):
        import_path(path, KEEP)


def test_read__truncated_file_is_an_error(tmp_path: Path) -> None:
    rows = [make_message_row(f"m{n}", content="x" * 500) for n in range(500)]
    path = store(tmp_path, threads=[make_thread_row()], messages=rows)
    path.write_bytes(path.read_bytes()[:20_000])
    with pytest.raises(InvalidInput, match="cannot be read"):
        import_path(path, KEEP)


def test_read__resource_metadata_is_noted(tmp_path: Path) -> None:
    rows = [
        make_resource_row("r1", "x", metadata={"a": 1}),
        make_resource_row("r2", "y", metadata=b"\x0c"),
    ]
    path = store(tmp_path, resources=rows)
    assert list_notes(path) == ["resources have metadata, which cannot be stored here"]
