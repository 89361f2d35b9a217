"""Tests of the command that erases a resource."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from mastra_memory.models import Message, Thread
from tests.support.factories import make_thread, save, some_messages

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _conversation() -> None:
    save(some_messages(make_thread("alice", "t"), 3))


def run(*words: str) -> str:
    out = io.StringIO()
    call_command("mastra_erase", *words, stdout=out)
    return out.getvalue()


def test_mastra_erase__a_dry_run_deletes_nothing() -> None:
    report = json.loads(run("alice", "--dry-run"))
    assert (report["dryRun"], report["counts"]) == (True, {"Message": 3, "Thread": 1})
    assert Message.objects.count() == 3


def test_mastra_erase__reports_and_verifies(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    report = json.loads(run("alice", "--no-input", "--report", str(path)))
    assert json.loads(path.read_text()) == report
    assert (report["resourceId"], report["total"]) == ("alice", 4)
    assert not Thread.objects.exists()
    assert run("--verify", str(path)) == "The signature is valid.\n"
    path.write_text(path.read_text().replace('"total": 4', '"total": 5'))
    with pytest.raises(CommandError, match="signature is wrong"):
        run("--verify", str(path))
    assert json.loads(run("alice", "--no-input"))["total"] == 0


@pytest.mark.parametrize("answer", ["", "alic", "yes"])
def test_mastra_erase__asks_for_the_id(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    monkeypatch.setattr("builtins.input", lambda prompt: answer)
    with pytest.raises(CommandError, match="Nothing was deleted"):
        run("alice")
    assert Message.objects.count() == 3


def test_mastra_erase__goes_on_after_the_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builtins.input", lambda prompt: "alice")
    run("alice")
    assert not Thread.objects.exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "Name the resource"),
        (["x" * 2_000, "--no-input"], "1 to 1024 bytes"),
        (["--verify", "/nowhere"], "cannot be read"),
    ],
)
def test_mastra_erase__explains_errors(words: list[Any], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        run(*words)
    assert Thread.objects.exists()
