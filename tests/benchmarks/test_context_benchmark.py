"""The parts of the context benchmark, with a conversation of a few turns."""

import json
from pathlib import Path

import pytest

from benchmarks.context import evidence, logs
from benchmarks.recall import locomo

FACTS = [f"I bought a rare item{n} in city{n} for {n}00 dollars." for n in range(80)]
SAMPLE = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ann",
        "speaker_b": "Ben",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ann" if n % 2 else "Ben", "dia_id": f"D1:{n}", "text": text}
            for n, text in enumerate(FACTS)
        ],
    },
    "qa": [
        {"question": f"Where is item{n}?", "answer": f"city{n}", "evidence": [f"D1:{n}"]}
        | {"category": 4}
        for n in (3, 4, 5, 78)
    ],
}


@pytest.fixture
def threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[logs.ObservedThread]:
    """Load the sample and observe it in batches of a few messages."""
    (tmp_path / "conv-1.json").write_text(json.dumps(SAMPLE))
    monkeypatch.setattr(logs, "MESSAGE_TOKENS", 400)
    monkeypatch.setattr(logs, "RAW_TOKENS", 200)
    return logs.load(locomo.read(tmp_path, in_one_thread=True))


@pytest.mark.django_db(transaction=True)
def test_measure__observed_messages_and_sizes(threads: list[logs.ObservedThread]) -> None:
    (thread,) = threads
    assert thread.log.count("message boundary") >= 2
    assert len(thread.messages) == 80
    assert 60 <= len(thread.observed_ids) < 80
    assert evidence.list_observed(thread.log, thread.messages).keys() == thread.observed_ids
    figures = evidence.measure_log(threads)
    assert figures["evidence_kept"] == figures["answer_words_kept"] == 1
    assert figures["log_tokens"] == thread.log_tokens


@pytest.mark.django_db(transaction=True)
def test_measure__shares(
    threads: list[logs.ObservedThread], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "BUDGETS", (600,))
    rows = evidence.measure(threads, step=1)
    assert {name: row["share"] for name, row in rows.items()} == {
        "600, last messages": 0.25,
        "600, with recall": 1,
        "600, with observations": 1,
        "600, with both": 1,
    }
    assert all(row["tokens"] <= 600 for row in rows.values())


@pytest.mark.django_db(transaction=True)
def test_list_observed__an_observation_needs_words_and_time_of_the_message(
    threads: list[logs.ObservedThread],
) -> None:
    (thread,) = threads
    message = thread.messages["conv-1/D1:3"]
    for text, ids in (
        (f"Date: May 8, 2023 (2 years ago)\n* 🔴 (13:59) Ann: {FACTS[3]}", {message.id}),
        (f"Date: May 8, 2023\n* 🔴 (13:58) Ann: {FACTS[3]}", set()),
        ("Date: May 8, 2023\n* 🔴 (13:59) Ann: something else entirely", set()),
    ):
        assert evidence.list_observed(text, thread.messages).keys() == ids
