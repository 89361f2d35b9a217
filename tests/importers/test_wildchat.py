"""Tests of importing LMSYS-Chat-1M, Chatbot Arena and WildChat."""

from pathlib import Path
from typing import Any

import pytest

from mastra_memory.importers.records import ResourceMapping
from mastra_memory.models import Thread
from tests.support.importing import (
    count_outcomes,
    get_only_thread,
    import_path,
    list_texts,
    write_json,
)

pytestmark = pytest.mark.django_db

TURNS: list[dict[str, Any]] = [
    {"role": "user", "content": "Hello", "hashed_ip": "x", "timestamp": None},
    {"role": "assistant", "content": "Hi", "timestamp": "2023-04-09T00:02:53+00:00"},
]


def test_read__wildchat(tmp_path: Path) -> None:
    record = {
        "conversation_hash": "c1", "model": "gpt-4", "timestamp": "2023-04-09T00:02:53+00:00",
        "conversation": TURNS, "turn": 1, "language": "English", "hashed_ip": "ip",
    }  # fmt: skip
    path = write_json(tmp_path / "x.jsonl", [record])
    import_path(path, ResourceMapping(prefix="w-"))
    thread = get_only_thread()
    assert list_texts(thread) == [("user", "Hello"), ("assistant", "Hi")]
    assert thread.resource_id == "w-ip"
    assert thread.metadata == {
        "import": {"from": "wildchat", "id": "c1", "model": "gpt-4", "language": "English"}
    }
    assert thread.created_at.isoformat() == "2023-04-09T00:02:53+00:00"


def test_read__lmsys(tmp_path: Path) -> None:
    turns = [{"content": turn["content"], "role": turn["role"]} for turn in TURNS]
    record = {"conversation_id": "c1", "model": "vicuna", "conversation": turns, "turn": 1}
    import_path(write_json(tmp_path / "x.json", [record]))
    assert list_texts(get_only_thread()) == [("user", "Hello"), ("assistant", "Hi")]


def test_read__chatbot_arena_has_two_conversations(tmp_path: Path) -> None:
    record = {
        "question_id": "q1", "model_a": "a", "model_b": "b", "winner": "tie", "tstamp": 1680000000,
        "conversation_a": TURNS, "conversation_b": [TURNS[0], {"role": "bot", "content": "Yo"}],
    }  # fmt: skip
    report = import_path(write_json(tmp_path / "x.jsonl", [record, {"conversation": "no"}]))
    models = Thread.objects.values_list("metadata__import__model", flat=True)
    assert sorted(models) == ["a", "b"]
    assert count_outcomes(report, "threads") == {"stored": 2, "refused": 1}
