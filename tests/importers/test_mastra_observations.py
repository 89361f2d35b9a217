"""Tests of importing Mastra's observational memory."""

from pathlib import Path
from typing import Any

import pytest

from mastra_memory.importers.records import ImportNote, ResourceMapping
from mastra_memory.models import ObservationalRecord, ObservationChunk
from mastra_memory.observational import generations
from tests.support.importing import count_outcomes, import_path, list_omitted, read_items
from tests.support.mastra_databases import (
    make_chunk,
    make_libsql,
    make_message_row,
    make_record_row,
    make_thread_row,
)

pytestmark = pytest.mark.django_db

KEEP = ResourceMapping()


def store(tmp_path: Path, *records: dict[str, Any], extra: str = "") -> Path:
    rows = {
        "mastra_threads": [make_thread_row()],
        "mastra_messages": [make_message_row()],
        "mastra_observational_memory": records,
    }
    return make_libsql(tmp_path / "mastra.db", rows, record_column=extra)


def list_notes(path: Path) -> list[str]:
    return [item.text for item in read_items(path, KEEP) if isinstance(item, ImportNote)]


def head() -> ObservationalRecord:
    found = generations.find_live_in_scope("thread", thread_id="t1", resource_id="r1")
    assert found is not None
    return found


def test_read__all_generations_without_work_in_progress(tmp_path: Path) -> None:
    facts = {
        "originType": "reflection",
        "lastObservedAt": "2024-01-01T10:00:00.124Z",
        "observedMessageIds": ["m1"],
        "observedTimezone": "Europe/Vienna",
        "lastBufferedAtTime": "2024-01-01T10:00:00.789Z",
        "bufferedReflection": "shorter",
        "bufferedReflectionTokens": 7,
        "bufferedReflectionInputTokens": 8,
        "reflectedObservationLineCount": 9,
        "metadata": {"k": 1},
    }
    path = store(tmp_path, make_record_row("o1", 0), make_record_row("o2", 1, **facts))
    report = import_path(path, KEEP)
    found = head()
    assert (found.id, found.generation_count, found.origin_type) == ("o2", 1, "reflection")
    assert found.active_observations == "noted 1"
    assert (found.observation_token_count, found.total_tokens_observed) == (3, 2)
    assert (found.pending_message_tokens, found.last_buffered_at_tokens) == (1, 4)
    assert found.last_observed_at and found.last_observed_at.microsecond == 124_000
    assert found.last_buffered_at_time and found.last_buffered_at_time.microsecond == 789_000
    assert (found.observed_message_ids, found.observed_timezone) == (["m1"], "Europe/Vienna")
    assert (found.buffered_reflection, found.buffered_reflection_tokens) == ("shorter", 7)
    assert found.buffered_reflection_input_tokens == 8
    assert found.reflected_observation_line_count == 9
    assert found.metadata == {"k": 1}
    assert not (found.is_observing or found.is_reflecting)
    assert not (found.is_buffering_observation or found.is_buffering_reflection)
    assert found.created_at.microsecond == 500_000
    assert count_outcomes(report, "observations") == {"stored": 2}
    assert count_outcomes(import_path(path, KEEP), "observations") == {"already there": 2}


def test_read__record_of_a_resource(tmp_path: Path) -> None:
    about: dict[str, Any] = {"scope": "resource", "lookupKey": "resource:r9", "threadId": None}
    import_path(store(tmp_path, make_record_row("o1", **about, resourceId="r9")), KEEP)
    found = generations.find_live_in_scope("resource", thread_id=None, resource_id="r9")
    assert found and (found.thread_id, found.resource_id) == (None, "r9")


def test_read__resource_id_from_the_lookup_key(tmp_path: Path) -> None:
    about: dict[str, Any] = {"scope": "resource", "lookupKey": "resource:r9", "threadId": None}
    import_path(store(tmp_path, make_record_row("o1", **about, resourceId=None)), KEEP)
    assert ObservationalRecord.objects.get().resource_id == "r9"


def test_read__keeps_only_thresholds_of_the_config(tmp_path: Path) -> None:
    config = {
        "scope": "thread",
        "observation": {"messageTokens": 30000, "model": "m", "instructions": "long"},
        "reflection": {"observationTokens": {"min": 1, "max": 2}, "prompt": "long"},
        "_overrides": {"observation": {"messageTokens": 9, "model": "m"}, "other": 1},
        "extractors": [{"instructions": "secret"}],
    }
    import_path(store(tmp_path, make_record_row(config=config)), KEEP)
    assert head().config == {
        "scope": "thread",
        "observation": {"messageTokens": 30000},
        "reflection": {"observationTokens": {"min": 1, "max": 2}},
        "_overrides": {"observation": {"messageTokens": 9}},
    }


def test_read__chunks_of_the_live_generation(tmp_path: Path) -> None:
    hints = {"currentTask": "task", "threadTitle": "title", "extractedValues": {"a": 1}}
    chunks = [make_chunk("ombuf-1", **hints), make_chunk("ombuf-2", observations="later")]
    import_path(store(tmp_path, make_record_row(bufferedObservationChunks=chunks)), KEEP)
    first, second = head().chunks.order_by("position")
    assert (first.id, first.cycle_id, first.observations) == ("ombuf-1", "buffer-obs-1", "soon")
    assert (first.token_count, first.message_tokens, first.message_ids) == (5, 31, ["m1"])
    assert first.last_observed_at.microsecond == 124_000
    assert first.hints == hints
    assert (second.id, second.position) == ("ombuf-2", 1)


def test_read__chunks_of_earlier_generations_are_dropped(tmp_path: Path) -> None:
    path = store(
        tmp_path,
        make_record_row("o1", 0, bufferedObservationChunks=[make_chunk()]),
        make_record_row("o2", 1),
    )
    import_path(path, KEEP)
    assert not ObservationChunk.objects.exists()
    assert list_notes(path) == ["chunks of earlier generations were dropped"]


def test_read__single_buffer_of_older_databases_is_a_chunk(tmp_path: Path) -> None:
    buffered: dict[str, Any] = {
        "bufferedObservations": "old way",
        "bufferedObservationTokens": 6,
        "bufferedMessageIds": ["m1"],
        "lastBufferedAtTime": "2024-01-01T10:00:00.789Z",
    }
    path = store(tmp_path, make_record_row(**buffered))
    import_path(path, KEEP)
    import_path(path, KEEP)
    found = ObservationChunk.objects.get()
    assert (found.observations, found.token_count, found.message_ids) == ("old way", 6, ["m1"])
    assert found.last_observed_at.microsecond == 789_000
    assert found.id.startswith("ombuf-")


def test_read__chunk_id_used_by_a_clone_is_replaced(tmp_path: Path) -> None:
    path = make_libsql(
        tmp_path / "mastra.db",
        {
            "mastra_threads": [make_thread_row("t1"), make_thread_row("t2")],
            "mastra_observational_memory": [
                make_record_row("o1", bufferedObservationChunks=[make_chunk()]),
                make_record_row(
                    "o2",
                    lookupKey="thread:t2",
                    threadId="t2",
                    bufferedObservationChunks=[make_chunk()],
                ),
            ],
        },
    )
    report = import_path(path, KEEP)
    assert count_outcomes(report, "observations") == {"stored": 2}
    assert ObservationChunk.objects.count() == 2
    assert ObservationChunk.objects.filter(record_id="o1", id="ombuf-1").exists()


def test_read__older_row_of_a_repeated_generation_is_used(tmp_path: Path) -> None:
    late = {"createdAt": "2024-01-05T00:00:00.000Z"}
    path = store(
        tmp_path,
        make_record_row("a", 1, **late),
        make_record_row("b", 1),
        make_record_row("c", 1, **late),
    )
    import_path(path, KEEP)
    assert head().id == "b"
    reason = "another row of the same generation is used"
    assert list_omitted(read_items(path, KEEP)) == [("observations", "skipped", reason)] * 2


def test_read__record_not_superseded_is_live(tmp_path: Path) -> None:
    path = store(
        tmp_path,
        make_record_row("a", 1, supersededBy="c"),
        make_record_row("b", 1),
        make_record_row("c", 2, supersededBy="b"),
        extra="supersededBy",
    )
    import_path(path, KEEP)
    assert head().id == "b"
    assert sorted(list_omitted(read_items(path, KEEP))) == [
        ("observations", "skipped", "another row of the same generation is used"),
        ("observations", "skipped", "newer than the live generation"),
    ]


def test_read__newest_record_is_live_by_default(tmp_path: Path) -> None:
    import_path(
        store(tmp_path, make_record_row("a", 0), make_record_row("b", 1), extra="supersededBy"),
        KEEP,
    )
    assert head().id == "b"


def test_read__orphans_are_skipped_and_resources_corrected(tmp_path: Path) -> None:
    path = store(
        tmp_path,
        make_record_row("a", lookupKey="thread:gone", threadId="gone"),
        make_record_row("b", resourceId="other"),
    )
    report = import_path(path, KEEP)
    assert count_outcomes(report, "observations") == {"stored": 1, "skipped": 1}
    assert head().resource_id == "r1"
    text = "observations with another resource than their thread got the resource of the thread"
    assert list_notes(path) == [text]


def test_read__invalid_rows_are_refused_alone(tmp_path: Path) -> None:
    path = store(
        tmp_path,
        make_record_row("a", 0),
        make_record_row("b", 1, createdAt="never"),
        make_record_row("c", 2, scope="galaxy"),
        make_record_row("d", 3, totalTokensObserved=2**70 // 2**8, originType="mystery"),
        make_record_row("e", 4, totalTokensObserved="many", config="no JSON", metadata="{"),
        make_record_row("f", -1),
    )
    report = import_path(path, KEEP)
    assert count_outcomes(report, "observations") == {"stored": 3, "refused": 3}
    assert head().id == "e"
    assert ObservationalRecord.objects.get(pk="d").origin_type == "initial"
