"""Tests of `dumpdata` and `loaddata`."""

from pathlib import Path

import pytest
from django.core.management import call_command

from mastra_memory.db import sql
from mastra_memory.models import Message, Thread
from tests.support.factories import a_message, make_thread, moment, save
from tests.support.importing import list_texts

pytestmark = pytest.mark.django_db

RESTART = "ALTER SEQUENCE mastra_memory_message_sequence RESTART"


def dump_and_load(path: Path) -> None:
    """Dump all threads and messages, and load them into an empty database."""
    call_command(
        "dumpdata", "mastra_memory.thread", "mastra_memory.message", output=str(path), verbosity=0
    )
    Thread.objects.all().delete()
    sql.execute("DELETE FROM mastra_memory_thread")
    sql.execute(RESTART)  # as in the new database that the fixture is loaded into
    call_command("loaddata", str(path), verbosity=0)


def test_loaddata__new_message_of_an_old_time_comes_last(tmp_path: Path) -> None:
    thread = make_thread("alice", "t1")
    save([a_message(thread, f"m{n}", text=f"old {n}", at=0) for n in range(5)])
    dump_and_load(tmp_path / "dump.json")
    assert [text for _, text in list_texts()] == [f"old {n}" for n in range(5)]
    save([a_message(thread, "a-new", text="new", at=0)])
    assert [text for _, text in list_texts()][-1] == "new"
    assert set(Message.objects.values_list("created_at", flat=True)) == {moment(0)}


def test_loaddata__sequence_never_moves_back(tmp_path: Path) -> None:
    thread = make_thread("alice", "t1")
    save([a_message(thread, "m1")])
    call_command("dumpdata", "mastra_memory.message", output=str(tmp_path / "old.json"))
    save([a_message(thread, f"n{number}") for number in range(5)])
    call_command("loaddata", str(tmp_path / "old.json"), verbosity=0)
    highest = Message.objects.order_by("-sequence").values_list("sequence", flat=True)[0]
    save([a_message(thread, "later")])
    assert Message.objects.get(pk="later").sequence > highest


def test_loaddata__fixture_without_numbers(tmp_path: Path) -> None:
    make_thread("alice", "t1")
    fields = (
        '"thread": "t1", "resource_id": "alice", "role": "user", "text": "Hi", '
        '"content": {"format": 2, "parts": []}, "created_at": "2024-01-01T00:00:00Z"'
    )
    (tmp_path / "x.json").write_text(
        f'[{{"model": "mastra_memory.message", "pk": "m1", "fields": {{{fields}}}}}]'
    )
    call_command("loaddata", str(tmp_path / "x.json"), verbosity=0)
    assert Message.objects.get().sequence > 0
