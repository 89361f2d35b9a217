"""The command that rewrites searchable words."""

import io
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from mastra_memory.memory import Memory
from tests.support.factories import a_message, make_thread, save, some_messages

pytestmark = pytest.mark.django_db


def run(**options: Any) -> str:
    """What the command says."""
    out = io.StringIO()
    call_command("mastra_reindex", stdout=out, **options)
    return out.getvalue()


def finds(words: str) -> list[str]:
    """Ids of a search by words."""
    found = Memory(options={}).search(words, resource_id="alice", search_type="text")
    return [hit.id for hit in found.results]


def test_mastra_reindex__after_a_change_of_language(memory_settings: Any) -> None:
    memory_settings()
    save([a_message(make_thread("alice", "t"), "m", text="Die Häuser am Fluss")])
    memory_settings(SEARCH_LANGUAGE="german")
    assert finds("Haus") == []
    assert run() == "Rewrote the words of 1 messages in german.\n"
    assert finds("Haus") == ["m"]


def test_mastra_reindex__step_by_step() -> None:
    save(some_messages(make_thread("alice", "t"), 7))
    assert "7 messages" in run(batch=2)


def test_mastra_reindex__faults(memory_settings: Any) -> None:
    with pytest.raises(CommandError, match="at least 1"):
        run(batch=0)
    memory_settings(SEARCH_LANGUAGE="klingon")
    with pytest.raises(CommandError, match="klingon"):
        run()
