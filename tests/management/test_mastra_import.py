"""Tests of the command that imports conversations."""

import fcntl
import io
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection

from mastra_memory.models import Message, Thread
from tests.project.commands import ROOT, environment
from tests.support.factories import make_user
from tests.support.importing import list_texts, write_json
from tests.support.mastra_databases import make_libsql, make_thread_row
from tests.support.waiting import MAX_WAIT_SECONDS, wait_until

HELLO = {"id": "c1", "conversations": [{"from": "human", "value": "Hello"}]}


def run(*args: str) -> tuple[str, str]:
    """Run the command and return what it prints to standard output and standard error."""
    out, err = io.StringIO(), io.StringIO()
    call_command("mastra_import", *args, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


@pytest.mark.django_db
def test_mastra_import__stores_and_prints_a_report(tmp_path: Path) -> None:
    odd = {"id": "c2", "conversations": [{"from": "system", "value": "x"}]}
    path = write_json(tmp_path / "x.json", [HELLO, odd, {"id": "c3"}])
    out, err = run(str(path), "--resource", "alice")
    head, threads, messages, *rest = out.splitlines()
    assert head.split() == ["read", "stored", "already", "there", "skipped", "refused"]
    assert threads.split() == ["threads", "3", "1", "0", "1", "1"]
    assert messages.split() == ["messages", "2", "1", "0", "1", "0"]
    assert sorted(rest[:3]) == [
        "refused: 1 threads: no list of conversations",
        "skipped: 1 messages: role system",
        "skipped: 1 threads: none of its messages can be stored",
    ]
    assert "per second." in rest[3]
    assert rest[4] == "3 records were omitted. Use --report to list them in a file."
    assert list_texts() == [("user", "Hello")]
    assert err == ""


@pytest.mark.django_db
def test_mastra_import__report_option_lists_omitted_records(tmp_path: Path) -> None:
    path = write_json(tmp_path / "x.json", [HELLO, {"id": "c3"}])
    report = tmp_path / "report.jsonl"
    out, _ = run(str(path), "--resource", "alice", "--report", str(report))
    (line,) = map(json.loads, report.read_text().splitlines())
    assert (line["outcome"], line["where"]) == ("refused", "x.json:2")
    assert line["detail"] == '{"id": "c3"}'
    assert f"See {report}." in out


@pytest.mark.django_db
def test_mastra_import__foreign_format_needs_a_resource(tmp_path: Path) -> None:
    path = str(write_json(tmp_path / "x.json", [HELLO]))
    for words in ([], ["--resource-prefix", ""]):
        with pytest.raises(CommandError, match="--resource"):
            run(path, *words)
    run(path, "--resource-prefix", "sg-")
    assert Thread.objects.get().resource_id == "sg-c1"


@pytest.mark.django_db
def test_mastra_import__warns_of_resources_that_are_user_ids(tmp_path: Path) -> None:
    pk = str(make_user("ann").pk)
    rows = {"mastra_threads": [make_thread_row("t1", pk), make_thread_row("t2", "customer-1")]}
    path = str(make_libsql(tmp_path / "x.db", rows))
    _, err = run(path)
    assert err.count("Warning") == 1 and f"the resource {pk} has the id of a user" in err
    _, err = run(path, "--resource-prefix", "old-")
    assert err == ""


@pytest.mark.django_db
def test_mastra_import__dry_run_and_update(tmp_path: Path) -> None:
    path = make_libsql(tmp_path / "x.db", {"mastra_threads": [make_thread_row(title="Old")]})
    out, _ = run(str(path), "--dry-run")
    assert "Dry run: nothing was stored." in out
    assert not Thread.objects.exists()
    run(str(path))
    changed = make_libsql(tmp_path / "y.db", {"mastra_threads": [make_thread_row(title="New")]})
    out, _ = run(str(changed))
    assert Thread.objects.get().title == "Old"
    out, _ = run(str(changed), "--update")
    assert Thread.objects.get().title == "New"
    assert "updated" in out.splitlines()[0]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["nowhere.json"], "no file or folder"),
        (["{path}", "--format", "mastra"], "needs a LibSQL file"),
        (["{path}", "--resource", ""], "--resource must be 1 to 1024 bytes"),
        (["{path}", "--resource", "x" * 1025], "--resource must be 1 to 1024 bytes"),
        (["{path}", "--resource", "a", "--batch", "0"], "--batch"),
        (["{path}", "--resource", "a", "--report", "/nowhere/x"], "report cannot be written"),
        (
            ["{path}", "--resource", "a", "--format", "claude"],
            "No record of the source could be read",
        ),
    ],
)
def test_mastra_import__invalid_options_are_reported(
    tmp_path: Path, words: list[str], reason: str
) -> None:
    path = write_json(tmp_path / "x.json", [HELLO])
    with pytest.raises(CommandError, match=reason):
        run(*(word.format(path=path) for word in words))
    assert not Message.objects.exists()


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(transactional_db: None) -> Start:
    """Return a function that starts the command in a new process with the test database."""
    database = connection.settings_dict
    password = f":{quote(database['PASSWORD'])}" if database["PASSWORD"] else ""
    host = quote(database["HOST"], safe="") + (f":{database['PORT']}" if database["PORT"] else "")
    url = f"postgres://{database['USER']}{password}@{host}/{database['NAME']}"

    def popen(*args: str, **variables: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "manage.py", "mastra_import", *args],
            cwd=ROOT,
            env=environment(settings.VAR_DIR, DATABASE_URL=url) | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return popen


def write_large_file(path: Path, threads: int = 3000, turns: int = 5) -> Path:
    """Write a file whose import takes some seconds."""
    lines = [
        {"id": f"c{n}", "conversations": [
            {"from": "human", "value": f"Question {n} {turn} " + "word " * 100}
            for turn in range(turns)
        ]}
        for n in range(threads)
    ]  # fmt: skip
    return write_json(path, lines)


def wait_for_messages(process: subprocess.Popen[str]) -> None:
    def has_stored() -> bool:
        assert process.poll() is None, process.communicate()
        return Message.objects.exists()

    wait_until(has_stored)


def test_mastra_import__killed_and_repeated_stores_everything_once(
    start: Start, tmp_path: Path
) -> None:
    words = (str(write_large_file(tmp_path / "x.jsonl")), "--resource", "alice", "--batch", "500")
    process = start(*words)
    wait_for_messages(process)
    process.kill()
    process.communicate()
    assert 0 < Message.objects.count() < 15_000

    process = start(*words)
    out, err = process.communicate(timeout=MAX_WAIT_SECONDS)
    assert (process.returncode, err) == (0, "")
    threads, messages = (line.split() for line in out.splitlines()[1:3])
    assert threads[1] == "3,000" and messages[1] == "15,000"
    assert Message.objects.count() == 15_000
    assert Thread.objects.count() == 3000
    texts = [f"Question 7 {turn}" for turn in range(5)]
    thread = Thread.objects.get(metadata__import__id="c7").messages.order_by("created_at")
    assert [text[:12] for text in thread.values_list("text", flat=True)] == texts


def test_mastra_import__interrupted_explains_how_to_continue(start: Start, tmp_path: Path) -> None:
    process = start(
        str(write_large_file(tmp_path / "x.jsonl")), "--resource", "alice", "--batch", "500"
    )
    wait_for_messages(process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=MAX_WAIT_SECONDS)
    assert process.returncode == 130
    assert "Run the same command again" in err and "Traceback" not in err
    stored = Message.objects.count()
    assert f"{stored:,}" in out.splitlines()[2]


def test_mastra_import__prints_no_progress_without_a_terminal(start: Start, tmp_path: Path) -> None:
    process = start(str(write_json(tmp_path / "x.json", [HELLO])), "--resource", "alice")
    out, err = process.communicate(timeout=MAX_WAIT_SECONDS)
    assert (process.returncode, err) == (0, "")
    assert "\r" not in out


def test_mastra_import__shows_progress_on_a_terminal(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_large_file(tmp_path / "x.jsonl", threads=200)
    shell, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", 40, 120, 0, 0))
    popen: Any = subprocess.Popen

    def with_terminal(*args: Any, **options: Any) -> Any:
        return popen(*args, **{**options, "stderr": terminal})

    monkeypatch.setattr(subprocess, "Popen", with_terminal)
    process = start(str(path), "--resource", "alice", "--batch", "100")
    os.close(terminal)
    output = b""
    while True:
        try:
            output += os.read(shell, 4096)
        except OSError:  # the other end is closed
            break
    os.close(shell)
    assert process.wait() == 0
    assert b"1,000 messages" in output and b"/s" in output and b"100%" in output
    assert process.stdout is not None
    process.stdout.close()


@pytest.mark.parametrize("size", ["1", "2", "3"])
def test_mastra_import__small_connection_pool(start: Start, tmp_path: Path, size: str) -> None:
    path = write_large_file(tmp_path / "x.jsonl", threads=30)
    words = (str(path), "--resource", "alice", "--batch", "10")
    pool = {"DJANGO_SETTINGS_MODULE": "tests.support.pool_settings", "POOL_SIZE": size}
    process = start(*words, **pool)
    _, err = process.communicate(timeout=MAX_WAIT_SECONDS)
    assert (process.returncode, err) == (0, "")
    assert (Thread.objects.count(), Message.objects.count()) == (30, 150)
