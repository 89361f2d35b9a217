"""Mastra's LibSQL files: threads, messages, working memory."""

import json
from pathlib import Path
from typing import Any

import pytest

from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers.records import Owner, Remark
from mastra_memory.models import Message, Thread, WorkingMemory
from tests.importers.importing import items_in, load, outcomes, said
from tests.importers.mastra_store import libsql, message, resource, thread

pytestmark = pytest.mark.django_db

KEEP = Owner()


def store(tmp_path: Path, **rows: Any) -> Path:
    named = {f"mastra_{table}": found for table, found in rows.items()}
    return libsql(tmp_path / "mastra.db", named)


def remarks(path: Path) -> list[str]:
    return [item.text for item in items_in(path, KEEP) if isinstance(item, Remark)]


def test_read__ids_times_and_contents_stay(tmp_path: Path) -> None:
    content = {"format": 2, "parts": [{"type": "x-odd", "k": [1, None]}], "metadata": {"a": 1}}
    path = store(
        tmp_path,
        threads=[thread(title="T", metadata={"topic": {"deep": 1.5}})],
        messages=[message(content=json.dumps(content), role="assistant", type="v2")],
    )
    tally = load(path, KEEP)
    kept = Thread.objects.get(pk="t1")
    assert (kept.resource_id, kept.title, kept.metadata) == ("r1", "T", {"topic": {"deep": 1.5}})
    assert kept.created_at.isoformat(timespec="milliseconds") == "2024-01-01T10:00:00.001+00:00"
    assert kept.updated_at.isoformat(timespec="milliseconds") == "2024-01-02T10:00:00.002+00:00"
    row = Message.objects.get(pk="m1")
    assert (row.content, row.role, row.type) == (content, "assistant", "v2")
    assert row.created_at.isoformat(timespec="milliseconds") == "2024-01-01T10:00:00.123+00:00"
    assert outcomes(tally, "threads") == outcomes(tally, "messages") == {"stored": 1}


def test_read__again_changes_nothing(tmp_path: Path) -> None:
    path = store(
        tmp_path,
        threads=[thread(metadata={"workingMemory": "w"})],
        messages=[message()],
        resources=[resource("r1", "known")],
    )
    load(path, KEEP)
    tally = load(path, KEEP)
    assert outcomes(tally, "threads") == outcomes(tally, "messages") == {"already there": 1}
    assert outcomes(tally, "working memories") == {"already there": 2}


def test_read__binary_metadata(tmp_path: Path) -> None:
    blob = b"\xcc\x1b\xc7\rworkingMemory\xb7thread text"
    load(store(tmp_path, threads=[thread(metadata=blob)]), KEEP)
    assert Thread.objects.get().metadata == {}
    assert WorkingMemory.objects.get(thread_id="t1").content == "thread text"


def test_read__working_memory_of_both_scopes(tmp_path: Path) -> None:
    path = store(
        tmp_path,
        threads=[thread(metadata={"workingMemory": "of the thread", "k": 1})],
        resources=[resource("r1", "of the resource"), resource("r2", ""), resource("r3", None)],
    )
    load(path, KEEP)
    kept = WorkingMemory.objects.order_by("scope")
    assert [(w.scope, w.thread_id, w.resource_id, w.content) for w in kept] == [
        ("resource", None, "r1", "of the resource"),
        ("thread", "t1", "r1", "of the thread"),
    ]
    assert Thread.objects.get().metadata == {"k": 1}


def test_read__clones_know_their_source(tmp_path: Path) -> None:
    clone = {"sourceThreadId": "t0", "clonedAt": "2024-01-01T00:00:00.000Z"}
    load(store(tmp_path, threads=[thread(metadata={"clone": clone})]), KEEP)
    kept = Thread.objects.get()
    assert (kept.clone_source_id, kept.metadata) == ("t0", {"clone": clone})


@pytest.mark.parametrize(
    ("metadata", "source"),
    [
        ({}, "manual"),
        ({"mastra": {"om": {"threadTitle": "T"}}}, "observed"),
        ({"mastra": {"om": {"threadTitle": "Other"}}}, "manual"),
        ({"mastra": {"om": {"threadTitle": "T"}}, "titlePinned": True}, "manual"),
    ],
)
def test_read__a_title_is_a_persons_unless_observed(
    tmp_path: Path, metadata: dict[str, Any], source: str
) -> None:
    load(store(tmp_path, threads=[thread(title="T", metadata=metadata)]), KEEP)
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
def test_read__the_shapes_of_content(tmp_path: Path, raw: str, parts: list[Any]) -> None:
    load(store(tmp_path, threads=[thread()], messages=[message(content=raw)]), KEEP)
    content = Message.objects.get().content
    assert (content["format"], content["parts"]) == (2, parts)


@pytest.mark.parametrize(
    "raw", [{"weird": 1}, [1, 2], {"format": 3, "parts": []}, {"format": 2, "parts": ["x"]}]
)
def test_read__an_unknown_shape_is_kept_raw_and_noted(tmp_path: Path, raw: Any) -> None:
    path = store(tmp_path, threads=[thread()], messages=[message(content=json.dumps(raw))])
    tally = load(path, KEEP)
    expected = {"format": 2, "parts": [], "metadata": {"importRaw": raw}}
    assert Message.objects.get().content == expected
    assert outcomes(tally, "messages") == {"stored": 1}
    assert remarks(path) == ["messages have content of no known shape, kept as metadata.importRaw"]


def test_read__orphans_and_instructions_are_skipped_and_unknown_roles_refused(
    tmp_path: Path,
) -> None:
    path = store(
        tmp_path,
        threads=[thread()],
        messages=[
            message("m1"),
            message("m2", "gone"),
            message("m3", role="system"),
            message("m4", role="robot"),
            message("m5", role="tool"),
            message("m6", role="signal"),
        ],
    )
    tally = load(path, KEEP)
    assert outcomes(tally, "messages") == {"stored": 3, "skipped": 2, "refused": 1}


def test_read__a_message_of_another_resource_gets_its_threads(tmp_path: Path) -> None:
    rows = [message("m1", resourceId="other"), message("m2", resourceId=None)]
    path = store(tmp_path, threads=[thread()], messages=rows)
    load(path, KEEP)
    assert set(Message.objects.values_list("resource_id", flat=True)) == {"r1"}
    assert remarks(path) == [
        "messages named another resource than their thread and got the thread's"
    ]


def test_read__messages_of_one_moment_come_as_they_were_written(tmp_path: Path) -> None:
    rows = [message(name) for name in ("z", "a", "m")]
    load(store(tmp_path, threads=[thread()], messages=rows), KEEP)
    assert [text for _, text in said()] == ["z", "a", "m"]


def test_read__ids_that_cannot_be_kept_are_refused(tmp_path: Path) -> None:
    path = store(
        tmp_path,
        threads=[thread(), thread("x" * 1025), thread("t2", ""), thread("ü☃/ %2e", "r1")],
        messages=[message("y" * 1025), message("fine", "ü☃/ %2e"), message("m3", "x" * 1025)],
    )
    tally = load(path, KEEP)
    assert outcomes(tally, "threads") == {"stored": 2, "refused": 2}
    assert outcomes(tally, "messages") == {"stored": 1, "refused": 2}


def test_read__text_that_cannot_be_kept_is_cleaned(tmp_path: Path) -> None:
    path = store(
        tmp_path,
        threads=[thread("t\x001", title="a\x00b", metadata='{"k\\u0000": "\\ud800"}')],
        messages=[message("m1", "t\x001", content="x\x00y")],
    )
    load(path, KEEP)
    kept = Thread.objects.get()
    assert (kept.id, kept.title, kept.metadata) == ("t\ufffd1", "a\ufffdb", {"k\ufffd": "\ufffd"})
    assert said() == [("user", "x\ufffdy")]


def test_read__metadata_that_cannot_be_read_does_not_cost_the_thread(tmp_path: Path) -> None:
    rows = [thread("t1", metadata=b"\xff\xff"), thread("t2", metadata='"{\\"a\\": 1}"'),
            thread("t3", metadata="[1]")]  # fmt: skip
    load(store(tmp_path, threads=rows), KEEP)
    kept = Thread.objects.order_by("id").values_list("metadata", flat=True)
    assert list(kept) == [None, {"a": 1}, {"importRaw": [1]}]


def test_read__a_moment_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    path = store(
        tmp_path,
        threads=[thread(), thread("t2", createdAt="soon")],
        messages=[message(createdAt=None), message("m2", createdAt="99999-01-01")],
        resources=[resource("r1", "x", updatedAt="")],
    )
    tally = load(path, KEEP)
    assert outcomes(tally, "threads") == {"stored": 1, "refused": 1}
    assert outcomes(tally, "messages") == {"refused": 2}
    assert outcomes(tally, "working memories") == {"refused": 1}


def test_read__values_of_other_types_than_mastra_writes(tmp_path: Path) -> None:
    path = store(
        tmp_path,
        threads=[thread(), thread("t2", title=None, metadata=5), thread(7)],  # type: ignore[arg-type]
        messages=[message(content=b'"bytes"'), message("m2", content=None), message("m3", role=1)],
    )
    tally = load(path, KEEP)
    assert outcomes(tally, "threads") == {"stored": 2, "refused": 1}
    assert outcomes(tally, "messages") == {"stored": 2, "refused": 1}
    assert said()[0] == ("user", "bytes")


def test_read__a_prefix_for_resources(tmp_path: Path) -> None:
    path = store(
        tmp_path, threads=[thread()], messages=[message()], resources=[resource("r1", "known")]
    )
    load(path, Owner(prefix="old-"))
    assert Message.objects.get().resource_id == "old-r1"
    assert WorkingMemory.objects.get().resource_id == "old-r1"


def test_read__older_databases_lack_tables(tmp_path: Path) -> None:
    path = libsql(
        tmp_path / "old.db",
        {"mastra_threads": [thread()], "mastra_messages": [message()]},
        without=("mastra_observational_memory", "mastra_resources"),
    )
    assert outcomes(load(path, KEEP), "messages") == {"stored": 1}


def test_read__a_database_of_something_else_is_no_source(tmp_path: Path) -> None:
    path = libsql(tmp_path / "other.db", {}, without=("mastra_messages",))
    with pytest.raises(InvalidInput, match="no table mastra_messages"):
        load(path, KEEP)


def test_read__a_file_cut_short_is_reported_in_words(tmp_path: Path) -> None:
    rows = [message(f"m{n}", content="x" * 500) for n in range(500)]
    path = store(tmp_path, threads=[thread()], messages=rows)
    path.write_bytes(path.read_bytes()[:20_000])
    with pytest.raises(InvalidInput, match="cannot be read"):
        load(path, KEEP)


def test_read__resource_metadata_has_no_place_and_is_noted(tmp_path: Path) -> None:
    rows = [resource("r1", "x", metadata={"a": 1}), resource("r2", "y", metadata=b"\x0c")]
    path = store(tmp_path, resources=rows)
    assert remarks(path) == ["resources have metadata, for which there is no place here"]
