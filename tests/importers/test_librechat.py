"""Tests of importing conversations of LibreChat."""

import json
from pathlib import Path
from typing import Any

import pytest

from mastra_memory.importers.records import ResourceMapping
from mastra_memory.models import Thread
from tests.support.importing import (
    count_outcomes,
    get_only_thread,
    import_path,
    list_contents,
    list_texts,
    write_json,
)

pytestmark = pytest.mark.django_db

Json = dict[str, Any]
ROOT = "00000000-0000-0000-0000-000000000000"


def message(name: str, parent: str, text: str = "", at: int = 0, **more: Any) -> Json:
    return {
        "messageId": name,
        "parentMessageId": parent,
        "isCreatedByUser": name.startswith("u"),
        "text": text,
        "createdAt": f"2024-05-01T10:00:{at:02}.000Z",
        **more,
    }


def conversation(*messages: Any, **more: Any) -> Json:
    return {
        "conversationId": "c1",
        "endpoint": "openAI",
        "title": "A talk",
        "exportAt": "10:00:00 GMT",
        "branches": True,
        "recursive": False,
        "messages": list(messages),
        **more,
    }


def test_read__conversation_becomes_a_thread(tmp_path: Path) -> None:
    record = conversation(
        message("u1", ROOT, "Hello", 1, user="ann"), message("a1", "u1", "Hi", 2, model="gpt-4o")
    )
    import_path(write_json(tmp_path / "talk.json", record), ResourceMapping(prefix="l-"))
    thread = get_only_thread()
    assert list_texts(thread) == [("user", "Hello"), ("assistant", "Hi")]
    assert (thread.title, thread.resource_id) == ("A talk", "l-ann")
    assert list_contents(thread)[1]["metadata"] == {"importId": "a1", "model": "gpt-4o"}
    assert thread.created_at.isoformat() == "2024-05-01T10:00:01+00:00"


def test_read__newest_path_is_the_thread(tmp_path: Path) -> None:
    record = conversation(
        message("u1", ROOT, "Tea?", 1),
        message("a1", "u1", "No.", 9),
        message("a2", "u1", "Yes.", 5),
        message("u2", "a2", "Why?", 20),
    )
    report = import_path(write_json(tmp_path / "talk.json", [record]))
    main = Thread.objects.get(clone_source_id=None)
    assert [text for _, text in list_texts(main)] == ["Tea?", "Yes.", "Why?"]
    assert count_outcomes(report, "threads") == {"stored": 2}


@pytest.mark.parametrize("depth", [3, 130, 400])
def test_read__nested_messages(tmp_path: Path, depth: int) -> None:
    """LibreChat nests each answer in its question, as deep as the conversation is long."""
    tree: list[Json] = []
    for number in reversed(range(depth)):
        name = f"{'ua'[number % 2]}{number}"
        tree = [{**message(name, "ignored", str(number), number % 60), "children": tree}]
        del tree[0]["createdAt"]
    record = {"conversationId": "c1", "recursive": True, "messagesTree": tree}
    (tmp_path / "talk.json").write_text(json.dumps(record))
    report = import_path(tmp_path / "talk.json")
    assert [text for _, text in list_texts()] == [str(number) for number in range(depth)]
    assert count_outcomes(report, "messages") == {"stored": depth}


def test_read__tree_with_a_single_root(tmp_path: Path) -> None:
    root = {**message("u1", ROOT, "Hello"), "children": [message("a1", "u1", "Hi", 1)]}
    import_path(write_json(tmp_path / "talk.json", {**conversation(), "messages": root}))
    assert list_texts() == [("user", "Hello"), ("assistant", "Hi")]


def test_read__content_becomes_parts(tmp_path: Path) -> None:
    call = {"id": "t1", "name": "weather", "args": '{"city": "Paris"}', "output": "21"}
    content = [
        {"type": "think", "think": "Hm."},
        {"type": "tool_call", "tool_call": {**call, "type": "tool_call"}},
        {"type": "text", "text": {"value": "Warm."}},
        {"type": "text", "text": "Yes."},
        {"type": "error", "error": "stopped"},
        {"type": "agent_update", "agent_update": {}},
    ]
    record = conversation(message("a1", ROOT, "ignored", content=content))
    import_path(write_json(tmp_path / "talk.json", record))
    reasoning, tool, first, second, error = list_contents(get_only_thread())[0]["parts"]
    assert reasoning["reasoning"] == "Hm."
    assert tool["toolInvocation"]["args"] == {"city": "Paris"}
    assert tool["toolInvocation"]["result"] == "21"
    assert (first["text"], second["text"]) == ("Warm.", "Yes.")
    assert error == {"type": "error", "error": "stopped"}


def test_read__thinking_in_the_text(tmp_path: Path) -> None:
    record = conversation(message("a1", ROOT, ":::thinking\nHm.\n:::\n\nWarm."))
    import_path(write_json(tmp_path / "talk.json", record))
    reasoning, text = list_contents(get_only_thread())[0]["parts"]
    assert (reasoning["reasoning"], text["text"]) == ("Hm.", "Warm.")


def test_read__uploads_are_kept(tmp_path: Path) -> None:
    files = [
        {"filename": "budget.xlsx", "type": "application/x", "file_id": "f1", "bytes": 7},
        {"filename": "cat.png", "type": "image/png", "filepath": "https://e.com/cat.png"},
        {},
    ]
    record = conversation(message("u1", ROOT, files=files), message("a1", "u1"))
    report = import_path(write_json(tmp_path / "talk.json", record))
    budget, cat = list_contents(get_only_thread())[0]["parts"]
    assert (budget["filename"], budget["metadata"]) == ("budget.xlsx", {"id": "f1", "size": 7})
    assert cat == {"type": "image", "image": "https://e.com/cat.png", "filename": "cat.png"}
    assert count_outcomes(report, "messages") == {"stored": 1, "skipped": 1}
