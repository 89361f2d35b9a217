"""Tests of importing ShareGPT data sets."""

import gzip
import zipfile
from pathlib import Path
from typing import Any

import pytest

from mastra_memory.importers.records import ResourceMapping
from mastra_memory.models import Message, Thread
from tests.support.importing import (
    count_outcomes,
    get_only_thread,
    import_path,
    list_contents,
    list_texts,
    write_json,
)

pytestmark = pytest.mark.django_db


def conversation(conversation_id: str = "c1", *turns: tuple[str, Any]) -> dict[str, Any]:
    return {
        "id": conversation_id,
        "conversations": [{"from": speaker, "value": value} for speaker, value in turns],
    }


HELLO = conversation("c1", ("human", "Hello"), ("gpt", "Hi there"))


def test_read__record_becomes_a_thread(tmp_path: Path) -> None:
    report = import_path(write_json(tmp_path / "data.json", [HELLO]))
    assert list_texts(get_only_thread()) == [("user", "Hello"), ("assistant", "Hi there")]
    assert get_only_thread().resource_id == "alice"
    assert get_only_thread().metadata == {"import": {"from": "sharegpt", "id": "c1"}}
    assert count_outcomes(report, "threads") == {"stored": 1}
    assert count_outcomes(report, "messages") == {"stored": 2}


def test_read__second_import_changes_nothing(tmp_path: Path) -> None:
    path = write_json(tmp_path / "data.json", [HELLO])
    import_path(path)
    before = list(Message.objects.order_by("sequence").values())
    report = import_path(path)
    assert list(Message.objects.order_by("sequence").values()) == before
    assert count_outcomes(report, "threads") == {"already there": 1}
    assert count_outcomes(report, "messages") == {"already there": 2}


def test_read__import_for_two_resources_makes_two_copies(tmp_path: Path) -> None:
    path = write_json(tmp_path / "data.json", [HELLO])
    import_path(path)
    import_path(path, ResourceMapping(resource="bob"))
    assert sorted(Thread.objects.values_list("resource_id", flat=True)) == ["alice", "bob"]


def test_read__repeated_id_with_other_turns_is_another_thread(tmp_path: Path) -> None:
    other = conversation("c1", ("human", "Something else"))
    report = import_path(write_json(tmp_path / "data.json", [HELLO, other, HELLO]))
    assert sorted(list_texts()) == [
        ("assistant", "Hi there"),
        ("user", "Hello"),
        ("user", "Something else"),
    ]
    assert count_outcomes(report, "threads") == {"stored": 2, "already there": 1}
    assert count_outcomes(report, "messages") == {"stored": 3, "already there": 2}


def test_read__keeps_empty_turns_and_conversations(tmp_path: Path) -> None:
    empty = conversation("c2")
    import_path(
        write_json(
            tmp_path / "data.json", [conversation("c1", ("human", "Hm"), ("gpt", "")), empty]
        )
    )
    assert list_texts() == [("user", "Hm"), ("assistant", "")]
    assert Thread.objects.count() == 2


def test_read__omits_instructions_and_unknown_speakers(tmp_path: Path) -> None:
    turns = [("system", "Obey"), ("human", "Hello"), ("martian", "Zork"), ("gpt", 5), ("bing", "B")]
    report = import_path(write_json(tmp_path / "data.json", [conversation("c1", *turns)]))
    assert list_texts() == [("user", "Hello"), ("assistant", "B")]
    assert count_outcomes(report, "messages") == {"stored": 2, "skipped": 1, "refused": 2}
    assert report.count_read("messages") == 5


def test_read__observation_joins_its_call(tmp_path: Path) -> None:
    call = '{"name": "weather", "arguments": {"city": "Paris"}}'
    turns = [("human", "Weather?"), ("function_call", call), ("observation", "21"), ("gpt", "21.")]
    report = import_path(write_json(tmp_path / "data.json", [conversation("c1", *turns)]))
    assert list_contents(get_only_thread())[1]["parts"] == [
        {
            "type": "tool-invocation",
            "toolInvocation": {
                "state": "result",
                "toolCallId": "1",
                "toolName": "weather",
                "args": {"city": "Paris"},
                "result": "21",
            },
        }
    ]
    assert count_outcomes(report, "messages") == {"stored": 3, "joined": 1}


def test_read__observation_without_a_call_becomes_a_message(tmp_path: Path) -> None:
    import_path(write_json(tmp_path / "data.json", [conversation("c1", ("observation", "21"))]))
    (content,) = list_contents(get_only_thread())
    assert content["parts"][0]["toolInvocation"]["result"] == "21"
    assert list_texts()[0][0] == "tool"


def test_read__prefix_makes_a_resource_for_each_record(tmp_path: Path) -> None:
    path = write_json(tmp_path / "data.json", [HELLO, conversation("c2", ("human", "x"))])
    import_path(path, ResourceMapping(prefix="sg-"))
    resources = Thread.objects.values_list("resource_id", flat=True)
    assert sorted(resources) == ["sg-c1", "sg-c2"]


def test_read__times_keep_the_order(tmp_path: Path) -> None:
    turns = [("human", str(n)) for n in range(50)]
    import_path(write_json(tmp_path / "data.json", [conversation("c1", *turns)]), batch=7)
    by_time = Message.objects.order_by("created_at").values_list("text", flat=True)
    assert list(by_time) == [str(n) for n in range(50)]
    assert get_only_thread().updated_at == Message.objects.latest("created_at").created_at


def test_read__truncated_file_gives_complete_records(tmp_path: Path) -> None:
    path = write_json(tmp_path / "data.json", [HELLO, conversation("c2", ("human", "lost"))])
    path.write_bytes(path.read_bytes()[:-20])
    report = import_path(path)
    assert list_texts() == [("user", "Hello"), ("assistant", "Hi there")]
    assert count_outcomes(report, "threads") == {"stored": 1, "refused": 1}


def test_read__malformed_records_are_refused_alone(tmp_path: Path) -> None:
    odd = [{"id": "x"}, {"conversations": {}}, ["a"], {"id": 5, "conversations": [None, 1, []]}]
    report = import_path(
        write_json(tmp_path / "data.json", [HELLO, *odd, conversation("z", ("human", "End"))])
    )
    assert count_outcomes(report, "threads") == {"stored": 2, "skipped": 1, "refused": 3}
    assert count_outcomes(report, "messages") == {"stored": 3, "refused": 3}


def test_read__text_is_cleaned(tmp_path: Path) -> None:
    record = b'[{"id":"c\\u0000","conversations":[{"from":"human","value":"a\\u0000b\\ud800c"}]}]'
    (tmp_path / "data.json").write_bytes(record)
    import_path(tmp_path / "data.json")
    assert list_texts() == [("user", "a\ufffdb\ufffdc")]


def test_read__very_long_message(tmp_path: Path) -> None:
    text = " ".join(f"word{n}" for n in range(120_000))
    import_path(write_json(tmp_path / "data.json", [conversation("c1", ("human", text))]))
    assert list_texts() == [("user", text)]


def test_read__compressed_files_and_archives(tmp_path: Path) -> None:
    plain = write_json(tmp_path / "data.jsonl", [HELLO]).read_bytes()
    (tmp_path / "one.json.gz").write_bytes(gzip.compress(plain))
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("folder/data.json", plain)
        archive.writestr("__MACOSX/data.json", b"rubbish")
    for name in ("data.jsonl", "one.json.gz", "two.zip"):
        report = import_path(tmp_path / name)
        assert report.count_read("threads") == 1, name
    assert Thread.objects.count() == 1


@pytest.mark.parametrize(
    ("user", "assistant"),
    [("Human", "GPT"), ("USER", "ASSISTANT"), (" human ", "ChatGPT"), ("User", "Bot")],
)
@pytest.mark.parametrize("keys", [("from", "value"), ("role", "content"), ("role", "value")])
def test_read__speakers_in_any_case_and_with_either_key(
    tmp_path: Path, keys: tuple[str, str], user: str, assistant: str
) -> None:
    turns = [("System", "Obey"), (user, "Hello"), (assistant, "Hi there")]
    record = {"id": "c1", "conversations": [dict(zip(keys, turn, strict=True)) for turn in turns]}
    report = import_path(write_json(tmp_path / "data.json", [record]))
    assert list_texts(get_only_thread()) == [("user", "Hello"), ("assistant", "Hi there")]
    assert count_outcomes(report, "messages") == {"stored": 2, "skipped": 1}


def test_read__content_with_parts_and_tool_calls(tmp_path: Path) -> None:
    call = {"id": "t1", "function": {"name": "weather", "arguments": '{"city": "Paris"}'}}
    turns = [
        {"role": "user", "content": [{"type": "text", "text": "Weather?"}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "t1", "content": "21"},
    ]
    record = {"id": "c1", "conversations": turns}
    report = import_path(write_json(tmp_path / "data.jsonl", [record]))
    first, second = list_contents(get_only_thread())
    assert first["parts"] == [{"type": "text", "text": "Weather?"}]
    assert second["parts"][0]["toolInvocation"]["result"] == "21"
    assert count_outcomes(report, "messages") == {"stored": 2, "joined": 1}


def test_read__conversation_without_usable_turns_leaves_no_thread(tmp_path: Path) -> None:
    records = [conversation("c1", ("martian", "Zork")), conversation("c2", ("system", "Obey"))]
    report = import_path(write_json(tmp_path / "data.json", records))
    assert count_outcomes(report, "threads") == {"skipped": 2}
    assert count_outcomes(report, "messages") == {"refused": 1, "skipped": 1}
    assert not Thread.objects.exists()
