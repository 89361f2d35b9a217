"""Tests of the command that rewrites the search words."""

import io
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from mastra_memory.memory import Memory
from tests.support.factories import a_message, make_thread, save, some_messages

pytestmark = pytest.mark.django_db


def run(**options: Any) -> str:
    """Run the command and return its output."""
    out = io.StringIO()
    call_command("mastra_reindex", stdout=out, **options)
    return out.getvalue()


def search_ids(words: str) -> list[str]:
    """Return the ids of the messages that a text search matches."""
    result = Memory(options={}).search(words, resource_id="alice", search_type="text")
    return [hit.id for hit in result.results]


def test_mastra_reindex__after_a_change_of_language(memory_settings: Any) -> None:
    memory_settings()
    save([a_message(make_thread("alice", "t"), "m", text="Die Häuser am Fluss")])
    memory_settings(SEARCH_LANGUAGE="german")
    assert search_ids("Haus") == []
    assert run() == "Rewrote the search words of 1 messages in german.\n"
    assert search_ids("Haus") == ["m"]


def test_mastra_reindex__works_in_batches() -> None:
    save(some_messages(make_thread("alice", "t"), 7))
    assert "7 messages" in run(batch=2)


def test_mastra_reindex__invalid_options(memory_settings: Any) -> None:
    with pytest.raises(CommandError, match="at least 1"):
        run(batch=0)
    memory_settings(SEARCH_LANGUAGE="klingon")
    with pytest.raises(CommandError, match="klingon"):
        run()
