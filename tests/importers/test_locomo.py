"""Tests of importing LoCoMo conversations."""

from pathlib import Path
from typing import Any

import pytest

from mastra_memory.importers.records import ImportNote, ResourceMapping
from mastra_memory.models import Message, Thread
from tests.support.importing import (
    count_outcomes,
    import_path,
    list_contents,
    list_texts,
    read_items,
    write_json,
)

pytestmark = pytest.mark.django_db


def turn(speaker: str, dia_id: str, text: str, **more: Any) -> dict[str, Any]:
    return {"speaker": speaker, "dia_id": dia_id, "text": text, **more}


def sample(**sessions: Any) -> dict[str, Any]:
    conversation = {"speaker_a": "Ann", "speaker_b": "Ben", **sessions}
    return {"sample_id": "conv-1", "conversation": conversation, "qa": []}


PHOTO = {"img_url": ["https://example.com/dog.jpg"], "blip_caption": "a dog", "query": "dog"}
TWO_SESSIONS = sample(
    session_10=[turn("Ben", "D10:1", "Back again")],
    session_10_date_time="9:05 am on 1 June, 2023",
    session_1=[turn("Ann", "D1:1", "Hi Ben"), turn("Ben", "D1:2", "Hi Ann", **PHOTO)],
    session_1_date_time="1:56 pm on 8 May, 2023",
    session_11_date_time="9:05 am on 2 June, 2023",
)


def test_read__each_session_becomes_a_thread_with_its_date(tmp_path: Path) -> None:
    import_path(write_json(tmp_path / "conv.json", TWO_SESSIONS), ResourceMapping(prefix="locomo-"))
    first, second = Thread.objects.order_by("created_at")
    assert (first.resource_id, second.resource_id) == ("locomo-conv-1", "locomo-conv-1")
    assert first.title == "Ann and Ben, session 1"
    assert first.created_at.isoformat() == "2023-05-08T13:56:00+00:00"
    assert second.created_at.isoformat() == "2023-06-01T09:05:00+00:00"
    assert list_texts(first) == [("user", "Hi Ben"), ("assistant", "Hi Ann")]
    assert second.metadata == {
        "import": {"from": "locomo", "id": "conv-1", "session": 10},
        "speakers": {"user": "Ann", "assistant": "Ben"},
    }


def test_read__keeps_names_ids_and_captions(tmp_path: Path) -> None:
    import_path(write_json(tmp_path / "conv.json", TWO_SESSIONS))
    first = Thread.objects.order_by("created_at")[0]
    assert list_contents(first)[1] == {
        "format": 2,
        "parts": [
            {"type": "text", "text": "Hi Ann"},
            {
                "type": "image",
                "image": "https://example.com/dog.jpg",
                "metadata": {"caption": "a dog"},
            },
        ],
        "metadata": {"dia_id": "D1:2", "speaker": "Ben", **PHOTO},
    }
    assert Message.objects.filter(content__metadata__dia_id="D1:1").count() == 1


def test_read__second_import_changes_nothing(tmp_path: Path) -> None:
    path = write_json(tmp_path / "all.json", [TWO_SESSIONS])
    import_path(path)
    report = import_path(path)
    assert count_outcomes(report, "threads") == {"already there": 2}
    assert count_outcomes(report, "messages") == {"already there": 3}


def test_read__unknown_speakers_and_missing_texts_are_refused(tmp_path: Path) -> None:
    session = [turn("Zoe", "D1:1", "Hi"), {"speaker": "Ann"}, 5, turn(["Ann"], "x", "y")]  # type: ignore[arg-type]
    report = import_path(write_json(tmp_path / "conv.json", sample(session_1=session)))
    assert count_outcomes(report, "messages") == {"refused": 4}


def test_read__unreadable_date_is_replaced_and_noted(tmp_path: Path) -> None:
    odd = sample(session_1=[turn("Ann", "D1:1", "Hi")], session_1_date_time="yesterday")
    items = read_items(write_json(tmp_path / "conv.json", odd))
    assert [item for item in items if isinstance(item, ImportNote)] == [
        ImportNote("LoCoMo sessions without a readable date got the time of the file")
    ]


@pytest.mark.parametrize("names", [{"speaker_a": "Ann"}, {"speaker_a": "A", "speaker_b": "A"}])
def test_read__sample_without_two_speakers_is_refused(
    tmp_path: Path, names: dict[str, str]
) -> None:
    path = write_json(tmp_path / "conv.json", {"conversation": names})
    assert count_outcomes(import_path(path, format="locomo"), "threads") == {"refused": 1}
