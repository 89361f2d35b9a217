"""Tests of importing files of a product's own with a mapping."""

import gzip
import json
import re
import zipfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import grouping, sources
from mastra_memory.importers.records import ImportedMessage, ResourceMapping
from mastra_memory.importers.report import ImportReport
from mastra_memory.models import Message, Thread
from tests.support.importing import (
    count_outcomes,
    import_items,
    list_contents,
    list_texts,
    write_json,
)

pytestmark = pytest.mark.django_db

Json = dict[str, Any]
KEEP = ResourceMapping()
FIELDS = {
    "id": "no",
    "thread": "ticket",
    "owner": "customer",
    "role": "author",
    "text": "body",
    "time": "sent",
    "title": "subject",
}
MAPPING: Json = {"fields": FIELDS, "roles": {"customer": "user", "agent": "assistant"}}
TABLE = """no,ticket,customer,author,body,sent,subject
1,t1,ann,customer,Where is my order?,2024-05-01 10:00,Order
3,t2,ben,Customer,"Two lines,
one cell",2024-05-01 11:00,
2,t1,ann,agent,On its way.,2024-05-01 10:05,
"""


def run(
    tmp_path: Path, data: str | bytes, mapping: Json = MAPPING, name: str = "x.csv",
    resources: ResourceMapping = KEEP,
) -> ImportReport:  # fmt: skip
    """Import a file with a mapping."""
    path = tmp_path / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    description = write_json(tmp_path / "mapping.json", mapping)
    with sources.open_source(str(path), mapping=str(description)) as source:
        return import_items(source.read(resources))


def list_reasons(report: ImportReport) -> list[str]:
    return sorted(line for line in report.format_lines() if line.startswith(("ref", "skip")))


def test_read__table_becomes_threads(tmp_path: Path) -> None:
    report = run(tmp_path, TABLE)
    first, second = Thread.objects.order_by("created_at")
    assert list_texts(first) == [("user", "Where is my order?"), ("assistant", "On its way.")]
    assert list_texts(second) == [("user", "Two lines,\none cell")]
    assert (first.resource_id, first.title, second.resource_id) == ("ann", "Order", "ben")
    assert first.created_at.isoformat() == "2024-05-01T10:00:00+00:00"
    assert first.metadata == {"import": {"from": "mapping", "id": "t1"}}
    assert list_contents(first)[1]["metadata"] == {"importId": "2"}
    assert count_outcomes(report, "threads") == {"stored": 2}
    assert count_outcomes(report, "messages") == {"stored": 3}


def test_read__second_import_changes_nothing(tmp_path: Path) -> None:
    run(tmp_path, TABLE)
    assert count_outcomes(run(tmp_path, TABLE), "messages") == {"already there": 3}
    longer = TABLE + "4,t1,ann,customer,Thanks,2024-05-02,\n"
    assert count_outcomes(run(tmp_path, longer), "messages") == {"stored": 1, "already there": 3}


@pytest.mark.parametrize("name", ["x.jsonl", "x.json", "x.ndjson"])
def test_read__json_records(tmp_path: Path, name: str) -> None:
    mapping: Json = {
        "fields": {
            "thread": "conversation.id", "owner": "conversation.user.id", "role": "from_bot",
            "text": "parts.0.text", "time": "at",
        },
        "roles": {"true": "assistant", "false": "user"},
    }  # fmt: skip
    talk = {"id": 7, "user": {"id": 5}}
    records = [
        {"conversation": talk, "from_bot": False, "parts": [{"text": "Hi"}], "at": 1714557600},
        {"conversation": talk, "from_bot": True, "parts": [{"text": "Hello"}], "at": 1714557601},
    ]
    text = json.dumps(records) if name == "x.json" else "\n".join(map(json.dumps, records))
    run(tmp_path, text, mapping, name)
    assert list_texts() == [("user", "Hi"), ("assistant", "Hello")]
    assert Thread.objects.get().resource_id == "5"


def test_read__records_with_lists_of_messages(tmp_path: Path) -> None:
    mapping: Json = {
        "name": "desk",
        "messages": "comments",
        "fields": {
            "id": "id", "thread": "id", "owner": "requester.id", "title": "subject",
            "role": "author.role", "text": "plain_body", "time": "created_at",
            "files": "attachments",
        },
        "roles": {"end-user": "user", "agent": "assistant"},
        "metadata": ["author.name"],
    }  # fmt: skip
    comments = [
        {"id": 11, "author": {"role": "end-user", "name": "Ann"}, "plain_body": "Help",
         "created_at": "2024-05-01T10:00:00Z", "attachments": [{"file_name": "a.png"}]},
        {"id": 12, "author": {"role": "agent"}, "plain_body": "Done"},
        {"id": 13, "author": {"role": "agent"}, "plain_body": ""},
        "odd",
    ]  # fmt: skip
    ticket = {"id": 1, "subject": "Broken", "requester": {"id": 9}, "comments": comments}
    report = run(tmp_path, json.dumps([ticket, {"id": 2}]), mapping, "x.json")
    thread = Thread.objects.get()
    assert (thread.title, thread.resource_id) == ("Broken", "9")
    first, second = list_contents(thread)
    assert first["metadata"] == {"importId": "11", "author.name": "Ann"}
    assert first["parts"][1] == {"type": "file", "filename": "a.png"}
    assert second["parts"] == [{"type": "text", "text": "Done"}]
    assert count_outcomes(report, "messages") == {"stored": 2, "skipped": 1, "refused": 1}
    assert list_reasons(report) == [
        "refused: 1 messages: line 1, message 3, the message is not an object",
        "refused: 1 threads: line 2: messages: no list at comments",
        "skipped: 1 messages: no content",
    ]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("5,t1,ann,robot,Hi,,", "line 2, role: unknown value robot; add it to roles at author"),
        ("5,t1,ann,,Hi,,", "line 2, role: nothing at author"),
        ("5,t1,ann,agent,Hi,soon,", "line 2, time: soon at sent is not a time"),
        ("5,,ann,agent,Hi,,", "line 2, thread: nothing at ticket"),
        ("5,t1,,agent,Hi,,", "line 2, owner: nothing at customer"),
        ("5,t1,ann,agent,Hi,,,,", "line 2: 9 cells, but 7 columns"),
        (f"5,{'t' * 1025},ann,agent,Hi,,", "id must be 1 to 1024 bytes long"),
    ],
)
def test_read__invalid_row_is_refused_alone(tmp_path: Path, row: str, reason: str) -> None:
    head, _, rest = TABLE.partition("\n")
    mapping = MAPPING | {"ids": "keep"}
    report = run(tmp_path, f"{head}\n{row}\n{rest}", mapping)
    assert len(list_texts()) == 3
    assert any(reason in line for line in list_reasons(report))


def test_read__repeated_ids_are_refused(tmp_path: Path) -> None:
    again = "1,t1,ann,customer,Other,2024-05-01 12:00,\n"
    report = run(tmp_path, TABLE + again)
    assert count_outcomes(report, "messages") == {"stored": 3, "refused": 1}
    assert "line 6, id: 1 occurs twice in its thread" in list_reasons(report)[0]


def test_read__rows_without_ids_are_all_kept(tmp_path: Path) -> None:
    mapping = MAPPING | {"fields": {k: v for k, v in FIELDS.items() if k not in ("id", "time")}}
    rows = "1,t1,ann,customer,Hello?,,\n" * 3
    report = run(tmp_path, TABLE.partition("\n")[0] + "\n" + rows, mapping)
    assert count_outcomes(report, "messages") == {"stored": 3}
    assert count_outcomes(run(tmp_path, TABLE.partition("\n")[0] + "\n" + rows, mapping),
                          "messages") == {"already there": 3}  # fmt: skip


def test_read__newest_first_is_sorted_by_time(tmp_path: Path) -> None:
    head, *rows = TABLE.replace('"Two lines,\none cell"', "x").splitlines()
    run(tmp_path, "\n".join([head, *reversed(rows)]))
    thread = Thread.objects.get(resource_id="ann")
    assert [text for _, text in list_texts(thread)] == ["Where is my order?", "On its way."]


def test_read__owners_with_the_same_thread_id_stay_apart(tmp_path: Path) -> None:
    run(tmp_path, TABLE.replace("t2", "t1"))
    assert sorted(Thread.objects.values_list("resource_id", flat=True)) == ["ann", "ben"]
    assert Message.objects.filter(resource_id="ben").count() == 1


def test_read__kept_ids(tmp_path: Path) -> None:
    run(tmp_path, TABLE, MAPPING | {"ids": "keep"})
    assert sorted(Thread.objects.values_list("pk", flat=True)) == ["t1", "t2"]
    assert sorted(Message.objects.values_list("pk", flat=True)) == ["1", "2", "3"]


def test_read__resources_and_defaults(tmp_path: Path) -> None:
    run(tmp_path, TABLE, resources=ResourceMapping(resource="all"))
    run(tmp_path, TABLE, resources=ResourceMapping(prefix="shop-"))
    owners = set(Thread.objects.values_list("resource_id", flat=True))
    assert owners == {"all", "shop-ann", "shop-ben"}
    fields = {"text": "body"}
    mapping = {"fields": fields, "defaults": {"thread": "all", "owner": "o", "role": "assistant"}}
    report = run(tmp_path, "body\nA\n\nB\n", mapping)
    assert count_outcomes(report, "messages") == {"stored": 2}
    assert list_texts(Thread.objects.get(resource_id="o")) == [
        ("assistant", "A"),
        ("assistant", "B"),
    ]


def test_read__special_paths_name_the_file(tmp_path: Path) -> None:
    """As in an export of Slack: a folder for each channel, and a file for each day."""
    mapping: Json = {
        "fields": {"thread": "@folder", "owner": "@folder", "id": "ts", "role": "type",
                   "text": "text", "time": "ts"},
        "roles": {"message": "user"},
    }  # fmt: skip
    with zipfile.ZipFile(tmp_path / "slack.zip", "w") as archive:
        for day, ts in (("2024-05-01", "1714557600.000100"), ("2024-05-02", "1714644000.5")):
            message = {"type": "message", "user": "U1", "text": day, "ts": ts}
            archive.writestr(f"help/{day}.json", json.dumps([message]))
    description = write_json(tmp_path / "mapping.json", mapping)
    with sources.open_source(str(tmp_path / "slack.zip"), mapping=str(description)) as source:
        import_items(source.read(KEEP))
    assert list_texts(Thread.objects.get(resource_id="help")) == [
        ("user", "2024-05-01"), ("user", "2024-05-02"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("x.csv", TABLE.replace(",", ";").replace("lines;", "lines,").encode()),
        ("x.tsv", TABLE.replace(",", "\t").replace("lines\t", "lines,").encode()),
        ("x.csv", b"\xef\xbb\xbf" + TABLE.encode()),
        ("x.csv", TABLE.encode("utf-16")),
        ("x.csv", TABLE.replace("\n", "\r\n").replace("lines,\r", "lines,").encode()),
        ("x.csv.gz", gzip.compress(TABLE.encode())),
    ],
)
def test_read__variants_of_tables(tmp_path: Path, name: str, data: bytes) -> None:
    report = run(tmp_path, data, name=name)
    assert count_outcomes(report, "messages") == {"stored": 3}
    assert ("user", "Two lines,\none cell") in list_texts()


def test_read__undecodable_rows_and_other_encodings(tmp_path: Path) -> None:
    text = TABLE.replace("On its way.", "Déjà là")
    report = run(tmp_path, text.encode("latin-1"))
    assert count_outcomes(report, "messages") == {"stored": 2, "refused": 1}
    assert "line 5: not in the encoding of the file" in list_reasons(report)[0]
    run(tmp_path, text.encode("latin-1"), MAPPING | {"csv": {"encoding": "latin-1"}})
    assert ("assistant", "Déjà là") in list_texts()


@pytest.mark.parametrize(
    "data",
    [b"", b"\n\n", b"a,a\n1,2\n", b'no,body\n"open', b"\x00\xff" * 100, b'x,"y\n' * 100],
)
def test_read__odd_tables_never_raise(tmp_path: Path, data: bytes) -> None:
    assert not count_outcomes(run(tmp_path, data), "messages").get("stored")


def test_read__long_texts_are_read(tmp_path: Path) -> None:
    text = "word " * 100_000 + "end"
    run(tmp_path, TABLE.replace("On its way.", text))
    assert ("assistant", text) in list_texts()


def test_read__very_long_thread_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouping, "MAX_GROUP_BYTES", 3_000)
    rows = "".join(f"{n},t1,ann,agent,{'x' * 500},2024-05-01,\n" for n in range(10, 20))
    report = run(tmp_path, TABLE + rows)
    outcomes = count_outcomes(report, "messages")
    assert outcomes["stored"] + outcomes["refused"] == 13 and outcomes["refused"] > 5


def test_read__memory_holds_one_thread_at_a_time(tmp_path: Path) -> None:
    lines = [f"{n},t{n % 50},ann,agent,text {n},," for n in range(2_000)]
    (tmp_path / "x.csv").write_text(TABLE.partition("\n")[0] + "\n" + "\n".join(lines))
    description = write_json(tmp_path / "mapping.json", MAPPING)
    with sources.open_source(str(tmp_path / "x.csv"), mapping=str(description)) as source:
        items = source.read(KEEP)
        threads = [item.thread_id for item in items if isinstance(item, ImportedMessage)]
    assert len(threads) == 2_000
    changes = sum(1 for before, after in pairwise(threads) if before != after)
    assert changes == 49


def test_open_source__mapping_and_format_exclude_each_other(tmp_path: Path) -> None:
    description = str(write_json(tmp_path / "mapping.json", MAPPING))
    (tmp_path / "x.csv").write_text(TABLE)
    with (
        pytest.raises(InvalidInput, match="remove --format own"),
        sources.open_source(str(tmp_path / "x.csv"), format="own", mapping=description),
    ):
        pass
    with (
        pytest.raises(InvalidInput, match="not for a database"),
        sources.open_source("postgresql://x", mapping=description),
    ):
        pass


def test_mastra_import__mapping_without_owner_needs_a_resource(tmp_path: Path) -> None:
    mapping = MAPPING | {"fields": {k: v for k, v in FIELDS.items() if k != "owner"}}
    description = str(write_json(tmp_path / "mapping.json", mapping))
    (tmp_path / "x.csv").write_text(TABLE)
    words = ("mastra_import", str(tmp_path / "x.csv"), "--mapping", description)
    with pytest.raises(CommandError, match="has no resource ids"):
        call_command(*words)
    call_command(*words, "--resource", "alice")
    assert set(Thread.objects.values_list("resource_id", flat=True)) == {"alice"}


def test_mastra_import__example_of_the_documentation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The files and the output in docs/import-export.md are those of a real import."""
    page = (Path(__file__).parents[2] / "docs" / "import-export.md").read_text()
    section = page.partition("### Import a format of your own")[2].partition("\n### ")[0]
    table, mapping, output = re.findall(r"```(?:csv|yaml|text)\n(.*?)```", section, re.DOTALL)
    (tmp_path / "messages.csv").write_text(table)
    (tmp_path / "mapping.yaml").write_text(mapping)
    call_command(
        "mastra_import", str(tmp_path / "messages.csv"),
        "--mapping", str(tmp_path / "mapping.yaml"),
    )  # fmt: skip
    printed = capsys.readouterr().out.splitlines()
    assert [line.split() for line in printed if "per second" not in line] == [
        line.split() for line in output.splitlines()
    ]
