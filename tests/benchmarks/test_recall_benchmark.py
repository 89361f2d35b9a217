"""The parts of the recall benchmark, with a conversation of a few turns."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from benchmarks.recall import corpus, latency, loading, locomo, quality
from mastra_memory.exceptions import ProviderRefused
from mastra_memory.models import Message, MessageEmbedding
from mastra_memory.testing import FakeEmbedder
from tests.support import servers

SAMPLE: dict[str, Any] = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ann",
        "speaker_b": "Ben",
        "session_1": [
            {"speaker": "Ann", "dia_id": "D1:1", "text": "I adopted a grey kitten."},
            {"speaker": "Ben", "dia_id": "D1:2", "text": "How lovely!"},
        ],
        "session_1_date_time": "9:00 am on 2 January, 2023",
        "session_2": [
            {"speaker": "Ben", "dia_id": "D2:1", "text": "My bicycle was stolen."},
        ],
        "session_2_date_time": "1:56 pm on 8 May, 2023",
    },
    "qa": [
        {"question": "Who adopted a kitten?", "evidence": ["D1:1"], "category": 4},
        {"question": "What was stolen from Ben?", "evidence": ["D2:1; D9:9"], "category": 1},
        {"question": "What is the name of the kitten?", "evidence": ["D1:2"], "category": 5},
    ],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the sample."""
    (tmp_path / "conv-1.json").write_text(json.dumps(SAMPLE))
    return tmp_path


def test_read__threads_per_session_and_answerable_questions(folder: Path) -> None:
    (conversation,) = locomo.read(folder)
    assert {thread: len(turns) for thread, turns in conversation.threads.items()} == {
        "conv-1/session_1": 2,
        "conv-1/session_2": 1,
    }
    assert [(q.text, set(q.evidence)) for q in conversation.questions] == [
        ("Who adopted a kitten?", {"conv-1/D1:1"}),
        ("What was stolen from Ben?", {"conv-1/D2:1"}),
    ]


def test_read__uses_the_times_of_the_sessions(folder: Path) -> None:
    (conversation,) = locomo.read(folder)
    times = [turn["createdAt"] for turns in conversation.threads.values() for turn in turns]
    assert times == [
        "2023-01-02T09:00:00+00:00",
        "2023-01-02T09:01:00+00:00",
        "2023-05-08T13:56:00+00:00",
    ]
    assert conversation.asked_at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)


@pytest.mark.django_db
def test_measure__finds_everything_among_three_turns(folder: Path) -> None:
    conversations = locomo.read(folder)
    quality.load(conversations)
    figures = quality.measure(conversations)
    assert set(figures) == {"words", "vectors", "hybrid", "hybrid, without time"}
    assert figures["hybrid"]["recall@10"] == figures["words"]["mrr"] == 1.0


@pytest.mark.django_db
def test_load__fails_if_the_embedder_fails(folder: Path) -> None:
    with FakeEmbedder(error=ProviderRefused("no such model")):
        with pytest.raises(servers.ServerError, match="no such model"):
            quality.load(locomo.read(folder))


def test_generate_messages__alternates_resources_and_is_deterministic() -> None:
    sizes = [("a", 2), ("b", 1)]
    rows = list(corpus.generate_messages(sizes))
    assert [row.id for row in rows] == ["a-0-0", "b-0-0", "a-0-1"]
    assert rows == list(corpus.generate_messages(sizes))
    assert corpus.generate_question(1) == corpus.generate_question(1) != corpus.generate_question(2)


@pytest.mark.django_db
def test_load__stores_messages_and_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    # VACUUM cannot run inside the transaction of a test.
    monkeypatch.setattr(loading, "vacuum", lambda: None)
    assert loading.load([("a", 30), ("b", 20)]) == 50
    assert Message.objects.filter(resource_id="a").count() == 30
    assert MessageEmbedding.objects.count() == 50
    monkeypatch.setattr(latency, "WARM_UP_CALLS", 1)
    monkeypatch.setattr(latency, "MEASURED_CALLS", 4)
    assert set(latency.measure_recall(["a", "b"])) == {"p50", "p95"}
    assert latency.count_matches(["a", "b"]) == [4, 4, 4, 4]
    assert set(latency.measure_context("a", mode="hybrid")) == {"p50", "p95", "embedding"}
