"""Tests of the command that exports conversations."""

import io
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from mastra_memory.models import Thread
from tests.support.exporting import make_conversation
from tests.support.factories import make_thread, save, some_messages
from tests.support.importing import list_texts

pytestmark = pytest.mark.django_db


def run(path: Path, *words: str) -> str:
    """Run the command and return what it prints to standard error."""
    err = io.StringIO()
    call_command("mastra_export", "--output", str(path), *words, stderr=err)
    return err.getvalue()


def list_ids(path: Path) -> list[str]:
    return [json.loads(line)["id"] for line in path.read_text().splitlines()[1:]]


@pytest.mark.parametrize("format", ["jsonl", "openai", "markdown", "csv"])
def test_mastra_export__writes_each_format(tmp_path: Path, format: str) -> None:
    make_conversation(("user", "Hello"), ("assistant", "Hi"))
    assert run(tmp_path / "x", "--format", format) == "Exported 1 threads, 2 messages.\n"
    assert "Hello" in (tmp_path / "x").read_text()


def test_mastra_export__exports_only_what_is_selected(tmp_path: Path) -> None:
    for resource in ("alice", "bob", "carol"):
        thread = make_thread(resource, f"of-{resource}")
        save(some_messages(thread, 3, prefix=f"{resource}-"))
    run(tmp_path / "1", "--resource", "alice", "--resource", "bob")
    assert len(list_ids(tmp_path / "1")) == 8
    run(tmp_path / "2", "--thread", "of-bob", "--since", "2024-01-01T00:00:01Z")
    assert list_ids(tmp_path / "2") == ["of-bob", "bob-1", "bob-2"]
    run(tmp_path / "3", "--until", "2024-01-01 00:00:01")
    assert [pk for pk in list_ids(tmp_path / "3") if "-0" in pk] == [
        "alice-0",
        "bob-0",
        "carol-0",
    ]


def test_mastra_export__output_can_be_imported(tmp_path: Path) -> None:
    make_conversation(("user", "Hello"), ("assistant", "Hi"))
    run(tmp_path / "x.jsonl.gz")
    Thread.objects.get().delete()
    call_command("mastra_import", str(tmp_path / "x.jsonl.gz"), stdout=io.StringIO())
    assert list_texts() == [("user", "Hello"), ("assistant", "Hi")]
    run(tmp_path / "y.jsonl.gz")
    assert (tmp_path / "x.jsonl.gz").read_bytes() == (tmp_path / "y.jsonl.gz").read_bytes()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--thread", "nowhere"], "There is no thread nowhere"),
        (["--since", "yesterday"], "yesterday is not a date"),
        (["--format", "xml"], "invalid choice"),
    ],
)
def test_mastra_export__invalid_options_are_reported(
    tmp_path: Path, words: list[str], reason: str
) -> None:
    with pytest.raises(CommandError, match=reason):
        run(tmp_path / "x", *words)
    assert not (tmp_path / "x").exists()


def test_mastra_export__keeps_an_existing_file(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("old")
    with pytest.raises(CommandError, match="--force"):
        run(tmp_path / "x")
    assert (tmp_path / "x").read_text() == "old"
    run(tmp_path / "x", "--force")
    assert (tmp_path / "x").read_text() != "old"
