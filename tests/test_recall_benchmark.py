"""The recall benchmark's own parts, on a conversation of a few turns."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.recall import filling, latency, locomo, quality, talk
from mastra_memory.exceptions import ProviderRefused
from mastra_memory.models import Message, MessageEmbedding
from mastra_memory.testing import FakeEmbedder
from tests import servers

SAMPLE: dict[str, Any] = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ann",
        "speaker_b": "Ben",
        "session_1": [
            {"speaker": "Ann", "dia_id": "D1:1", "text": "I adopted a grey kitten."},
            {"speaker": "Ben", "dia_id": "D1:2", "text": "How lovely!"},
        ],
        "session_2": [
            {"speaker": "Ben", "dia_id": "D2:1", "text": "My bicycle was stolen."},
        ],
        "session_2_date_time": "1:56 pm on 8 May, 2023",
    },
    "qa": [
        {"question": "Who adopted a kitten?", "evidence": ["D1:1"], "category": 4},
        {"question": "What was stolen from Ben?", "evidence": ["D2:1; D9:9"], "category": 1},
        {"question": "Nobody knows", "evidence": ["D1:2"], "category": 5},
    ],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the sample."""
    (tmp_path / "conv-1.json").write_text(json.dumps(SAMPLE))
    return tmp_path


def test_read__a_thread_for_each_session_and_the_questions_that_have_an_answer(
    folder: Path,
) -> None:
    (found,) = locomo.read(folder)
    assert {thread: len(said) for thread, said in found.threads.items()} == {
        "conv-1/session_1": 2,
        "conv-1/session_2": 1,
    }
    assert [(q.text, set(q.evidence)) for q in found.questions] == [
        ("Who adopted a kitten?", {"conv-1/D1:1"}),
        ("What was stolen from Ben?", {"conv-1/D2:1"}),
    ]


@pytest.mark.django_db
def test_measure__of_so_few_turns_everything_is_found(folder: Path) -> None:
    conversations = locomo.read(folder)
    quality.load(conversations)
    found = quality.measure(conversations)
    assert set(found) == {"text", "vector", "hybrid"}
    assert found["hybrid"]["recall@10"] == found["text"]["mrr"] == 1.0


@pytest.mark.django_db
def test_load__an_embedder_that_fails_is_no_figure(folder: Path) -> None:
    with FakeEmbedder(error=ProviderRefused("no such model")):
        with pytest.raises(servers.ServerError, match="no such model"):
            quality.load(locomo.read(folder))


def test_messages__resources_take_turns_and_are_always_the_same() -> None:
    sizes = [("a", 2), ("b", 1)]
    rows = list(talk.messages(sizes))
    assert [row[0] for row in rows] == ["a-0-0", "b-0-0", "a-0-1"]
    assert rows == list(talk.messages(sizes))
    assert talk.question(1) == talk.question(1) != talk.question(2)


@pytest.mark.django_db
def test_fill__messages_and_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filling, "vacuum", lambda: None)  # not inside a test's transaction
    assert filling.fill([("a", 30), ("b", 20)]) == 50
    assert Message.objects.filter(resource_id="a").count() == 30
    assert MessageEmbedding.objects.count() == 50
    monkeypatch.setattr(latency, "WARM_UP", 1)
    monkeypatch.setattr(latency, "ROUNDS", 4)
    assert set(latency.of_recall(["a", "b"])) == {"p50", "p95"}
    assert latency.hits(["a", "b"]) == [4, 4, 4, 4]
    assert set(latency.of_context("a", mode="hybrid")) == {"p50", "p95", "embedding"}
