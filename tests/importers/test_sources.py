"""Tests of opening sources and detecting formats."""

import gzip
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import sources
from mastra_memory.importers.records import OmittedRecord, ResourceMapping
from tests.support.importing import read_items, write_json
from tests.support.mastra_databases import make_libsql, make_message_row, make_thread_row

RECORDS: dict[str, Any] = {
    "chatgpt": {"mapping": {}, "current_node": "x"},
    "claude": {"uuid": "x", "chat_messages": []},
    "openai": {"messages": [{"role": "user", "content": "x"}]},
    "sharegpt": {"id": "x", "conversations": [{"from": "human", "value": "x"}]},
    "locomo": {"sample_id": "x", "conversation": {"speaker_a": "A", "speaker_b": "B"}},
    "own": {"kind": "export", "format": "mastra-memory", "version": 1},
    "openwebui": {"id": "x", "chat": {"history": {"messages": {}, "currentId": None}}},
    "librechat": {"conversationId": "x", "messagesTree": []},
    "openai-responses": {"object": "response", "input": "Hi", "output": []},
    "anthropic": {"params": {"model": "claude-x", "messages": [{"role": "user", "content": "x"}]}},
    "langfuse": {"id": "x", "sessionId": "s", "timestamp": "2024-01-01", "input": "x"},
    "langsmith": {"id": "x", "run_type": "chain", "inputs": {"input": "x"}},
    "wildchat": {"conversation": [{"role": "user", "content": "x"}]},
}


def format_of(path: Path, **options: Any) -> str:
    with sources.open_source(str(path), **options) as source:
        return source.format


@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
def test_open_source__detects_each_format(tmp_path: Path, name: str, suffix: str) -> None:
    assert format_of(write_json(tmp_path / f"x{suffix}", [RECORDS[name]])) == name


@pytest.mark.parametrize("name", RECORDS)
def test_open_source__detects_formats_in_folders_and_archives(tmp_path: Path, name: str) -> None:
    text = json.dumps(RECORDS[name])
    (tmp_path / "folder" / "below").mkdir(parents=True)
    (tmp_path / "folder" / "below" / "x.json.gz").write_bytes(gzip.compress(text.encode()))
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("below/x.json", text)
    assert format_of(tmp_path / "folder") == name
    assert format_of(tmp_path / "x.zip") == name


def test_open_source__detects_a_libsql_file_by_its_content(tmp_path: Path) -> None:
    path = make_libsql(tmp_path / "anything", {"mastra_threads": [make_thread_row()]})
    with sources.open_source(str(path)) as source:
        assert (source.format, source.unit, source.keeps_ids) == ("mastra", "rows", True)


def test_open_source__detects_a_format_after_broken_records(tmp_path: Path) -> None:
    lines = b"{broken\n[1]\n5\n" + json.dumps(RECORDS["openai"]).encode()
    (tmp_path / "x.jsonl").write_bytes(lines)
    assert format_of(tmp_path / "x.jsonl") == "openai"


@pytest.mark.parametrize(
    "data", [b"", b"hello", b"[]", b"{}", b'[{"a": 1}]', b"\x00\xff" * 100, b"[" * 100_000]
)
def test_open_source__unknown_format_lists_the_known_ones(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.json").write_bytes(data)
    with pytest.raises(InvalidInput, match=r"The format of .* is unknown.*chatgpt.*--format"):
        format_of(tmp_path / "x.json")


def test_open_source__format_option_prevents_detection(tmp_path: Path) -> None:
    path = write_json(tmp_path / "x.json", [RECORDS["claude"]])
    assert format_of(path, format="openai") == "openai"
    (item,) = read_items(path, format="openai")
    assert isinstance(item, OmittedRecord) and item.outcome == "refused"


@pytest.mark.parametrize("format", ["chatgpt", "own"])
def test_open_source__database_must_have_the_format_mastra(tmp_path: Path, format: str) -> None:
    path = make_libsql(tmp_path / "x.db", {})
    with pytest.raises(InvalidInput, match=f"not {format}"):
        format_of(path, format=format)
    with pytest.raises(InvalidInput, match="needs a LibSQL file"):
        format_of(write_json(tmp_path / "x.json", []), format="mastra")


@pytest.mark.parametrize("name", ["", "nowhere.json", "empty"])
def test_open_source__missing_path_is_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInput):
        format_of(tmp_path / name if name else Path())


def test_open_source__invalid_archive_is_an_error(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("x.json", json.dumps([RECORDS["openai"]] * 1000))
    data = (tmp_path / "x.zip").read_bytes()
    (tmp_path / "x.zip").write_bytes(data[: len(data) // 2])
    with pytest.raises(InvalidInput):
        format_of(tmp_path / "x.zip")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it is empty"),
        (b" \n", "it is empty"),
        (json.dumps(RECORDS["openai"]).encode("utf-16"), "the file is UTF-16; UTF-8 is needed"),
        ('{"messages":"ü"}'.encode("latin-1"), "not UTF-8"),
        (b"{broken", "the file ends in the middle of a record"),
        (b"5", "not a JSON object"),
        (b"[[1]]", "not a JSON object"),
    ],
)
def test_open_source__unknown_format_explains_the_reason(
    tmp_path: Path, data: bytes, reason: str
) -> None:
    (tmp_path / "x.json").write_bytes(data)
    with pytest.raises(InvalidInput) as refused:
        format_of(tmp_path / "x.json")
    assert f"x.json is unknown ({reason})." in str(refused.value)


def test_read__file_name_need_not_be_utf8(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/\xff.json"
    Path(os.fsdecode(name)).write_text("[1, " + json.dumps(RECORDS["openai"]) + "]")
    refused, *_ = read_items(tmp_path)
    assert isinstance(refused, OmittedRecord) and refused.location == "\ufffd.json:1"


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_open_source__damaged_archive_is_an_error(tmp_path: Path, method: int) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w", method) as archive:
        archive.writestr("x.jsonl", json.dumps(RECORDS["openai"]) * 1_000)
    data = bytearray((tmp_path / "x.zip").read_bytes())
    for place in range(50, 80):
        data[place] ^= 0xFF
    (tmp_path / "x.zip").write_bytes(data)
    with pytest.raises(InvalidInput, match=r"is unknown .*cannot be read further"):
        format_of(tmp_path / "x.zip")


def test_read__damaged_archive_gives_readable_records(tmp_path: Path) -> None:
    lines = "\n".join(json.dumps({**RECORDS["openai"], "id": str(n)}) for n in range(100_000))
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.jsonl", lines)
    data = bytearray((tmp_path / "x.zip").read_bytes())
    for place in range(len(data) // 2, len(data) // 2 + 50):
        data[place] ^= 0xFF
    (tmp_path / "x.zip").write_bytes(data)
    items = read_items(tmp_path / "x.zip")
    assert len(items) > 100
    assert isinstance(items[-1], OmittedRecord) and "cannot be read further" in items[-1].reason


def test_source__position_ends_at_the_size(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    for number in range(3):
        write_json(folder / f"{number}.jsonl", [RECORDS["openai"]] * 50)
    packed = gzip.compress((folder / "0.jsonl").read_bytes())
    (folder / "3.jsonl.gz").write_bytes(packed)
    with sources.open_source(str(folder)) as source:
        assert source.position is not None and source.position() == 0
        positions = [source.position() for _ in source.read(ResourceMapping(resource="r"))]
        assert positions == sorted(positions)
        assert source.position() == source.size


def test_source__size_of_a_database_is_its_messages(tmp_path: Path) -> None:
    rows = {
        "mastra_threads": [make_thread_row()],
        "mastra_messages": [make_message_row("a"), make_message_row("b")],
    }
    with sources.open_source(str(make_libsql(tmp_path / "x.db", rows))) as source:
        assert (source.size, source.position) == (2, None)


def write_archive(path: Path, **texts: Any) -> Path:
    """Write an archive with JSON files; `__` in a name stands for `/`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in texts.items():
            data = value if isinstance(value, bytes) else json.dumps(value)
            archive.writestr(f"{name.replace('__', '/')}.json", data)
    return path


@pytest.mark.parametrize("name", RECORDS)
def test_open_source__archives_in_a_folder_and_in_an_archive(tmp_path: Path, name: str) -> None:
    inner = write_archive(tmp_path / "folder" / "below" / "part-000.zip", x=RECORDS[name])
    with zipfile.ZipFile(tmp_path / "outer.zip", "w") as archive:
        archive.writestr("below/part-000.zip", inner.read_bytes())
        archive.writestr("__MACOSX/._part-000.zip", b"rubbish")
    for path in (tmp_path / "folder", tmp_path / "outer.zip"):
        assert format_of(path) == name
        with sources.open_source(str(path)) as source:
            items = list(source.read(ResourceMapping(resource="r")))
            assert items or name in ("own", "locomo")  # these records have no threads
            assert source.position is not None and source.position() == source.size


def test_read__location_names_the_archives(tmp_path: Path) -> None:
    inner = write_archive(tmp_path / "inner.zip", x=[RECORDS["openai"], 5])
    with zipfile.ZipFile(tmp_path / "folder.zip", "w") as archive:
        archive.writestr("a/inner.zip", inner.read_bytes())
    refused = read_items(tmp_path / "folder.zip")[-1]
    assert isinstance(refused, OmittedRecord) and refused.location == "a/inner.zip/x.json:2"


@pytest.mark.parametrize("place", ["folder", "archive"])
def test_open_source__damaged_inner_archive_is_named(tmp_path: Path, place: str) -> None:
    write_json(tmp_path / "folder" / "x.json", [RECORDS["openai"]])
    (tmp_path / "folder" / "part-000.zip").write_bytes(b"rubbish")
    path = tmp_path / "folder"
    if place == "archive":
        path = tmp_path / "outer.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.write(tmp_path / "folder" / "part-000.zip", "part-000.zip")
    with pytest.raises(InvalidInput, match=r"cannot be read: part-000.zip.*not a zip file"):
        format_of(path)


def test_open_source__error_lists_what_was_examined(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    write_json(folder / "manifest.json", {"total_files": 2, "data_files": []})
    write_archive(folder / "part-000.zip", users=[{"uuid": "x"}], broken=b"{broken")
    with pytest.raises(InvalidInput) as refused:
        format_of(folder)
    assert (
        "Examined: manifest.json (objects with the keys total_files, data_files), "
        "part-000.zip/broken.json (the file ends in the middle of a record), "
        "part-000.zip/users.json (objects with the keys uuid). Known formats: "
    ) in str(refused.value)


def test_open_source__error_is_short_for_many_files(tmp_path: Path) -> None:
    for number in range(40):
        write_json(tmp_path / f"{number:02}.json", {f"{'k' * 100}{n}": n for n in range(50)})
    with pytest.raises(InvalidInput, match=r"and 30 more. Known formats") as refused:
        format_of(tmp_path)
    assert len(str(refused.value)) < 8_000


def test_open_source__error_names_files_that_are_never_read(tmp_path: Path) -> None:
    (tmp_path / "chat.html").write_text("x")
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(
        InvalidInput, match=r"it contains (chat.html, notes.txt|notes.txt, chat.html)"
    ):
        format_of(tmp_path)
