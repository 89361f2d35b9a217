"""Tests of importing Claude exports."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from mastra_memory.importers.records import ResourceMapping
from mastra_memory.memory import Memory
from mastra_memory.models import Thread, WorkingMemory
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
ROOT = "00000000-0000-4000-8000-000000000000"


def message(name: str, sender: str, text: str = "", **more: Any) -> Json:
    blocks = [{"type": "text", "text": text}] if text else []
    return {"uuid": name, "sender": sender, "text": text, "content": blocks, **more}


def conversation(*messages: Any, **more: Any) -> Json:
    defaults = {
        "uuid": "conv-1",
        "name": "A talk",
        "created_at": "2024-05-01T10:00:00.123456Z",
        "updated_at": "2024-05-02T10:00:00Z",
        "account": {"uuid": "acct"},
    }
    return {**defaults, "chat_messages": list(messages), **more}


TALK = conversation(
    message("m1", "human", "Hello", created_at="2024-05-01T10:00:01Z"),
    message("m2", "assistant", "Hi", created_at="2024-05-01T10:00:02Z"),
)


def test_read__conversation_becomes_a_thread(tmp_path: Path) -> None:
    import_path(write_json(tmp_path / "conversations.json", [TALK]), ResourceMapping(prefix="c-"))
    thread = get_only_thread()
    assert list_texts(thread) == [("user", "Hello"), ("assistant", "Hi")]
    assert (thread.title, thread.resource_id) == ("A talk", "c-acct")
    assert thread.created_at.isoformat(timespec="milliseconds") == "2024-05-01T10:00:00.123+00:00"
    assert list_contents(thread)[0]["metadata"] == {"importId": "m1"}


def test_read__edited_message_makes_a_branch(tmp_path: Path) -> None:
    record = conversation(
        message("u1", "human", "Tea?", parent_message_uuid=ROOT),
        message("a1", "assistant", "Green.", parent_message_uuid="u1"),
        message("u2", "human", "Coffee?", parent_message_uuid="a1", created_at="2024-05-01"),
        message("u3", "human", "Juice?", parent_message_uuid="a1", created_at="2024-05-02"),
    )
    import_path(write_json(tmp_path / "conversations.json", [record]))
    main = Thread.objects.get(clone_source_id=None)
    (branch,) = Memory().list_clones(main.pk)
    assert [text for _, text in list_texts(main)] == ["Tea?", "Green.", "Juice?"]
    texts = [text for _, text in list_texts(Thread.objects.get(pk=branch.id))]
    assert texts == ["Tea?", "Green.", "Coffee?"]


def test_read__current_leaf_selects_the_main_path(tmp_path: Path) -> None:
    record = conversation(
        message("u1", "human", "Old", parent_message_uuid=ROOT, created_at="2024-05-01"),
        message("u2", "human", "New", parent_message_uuid=ROOT, created_at="2024-05-02"),
        current_leaf_message_uuid="u1",
    )
    import_path(write_json(tmp_path / "conversations.json", [record]))
    main = Thread.objects.get(clone_source_id=None)
    assert list_texts(main) == [("user", "Old")]


def test_read__converts_each_kind_of_block(tmp_path: Path) -> None:
    blocks = [
        {"type": "thinking", "thinking": "Hm."},
        {"type": "tool_use", "id": "t1", "name": "search", "input": {"q": "tea"}},
        {"type": "tool_use", "name": "search", "input": {"q": "milk"}},
        {"type": "tool_result", "name": "search", "tool_use_id": "t1", "is_error": True,
         "content": [{"type": "text", "text": "no"}, {"type": "text", "text": "luck"}]},
        {"type": "tool_result", "name": "search", "content": [{"type": "image", "id": 1}]},
        {"type": "token_budget"},
        {"type": "text", "text": "Sorry."},
        {"type": "hologram", "x": 1},
    ]  # fmt: skip
    record = conversation({"uuid": "m1", "sender": "assistant", "content": blocks})
    import_path(write_json(tmp_path / "conversations.json", [record]))
    (content,) = list_contents(get_only_thread())
    thinking, first, second, text, odd = content["parts"]
    assert thinking["reasoning"] == "Hm."
    assert first["toolInvocation"] == {
        "state": "result",
        "toolCallId": "t1",
        "toolName": "search",
        "args": {"q": "tea"},
        "result": "no\nluck",
        "isError": True,
    }
    assert second["toolInvocation"]["result"] == [{"type": "image", "id": 1}]
    assert text == {"type": "text", "text": "Sorry."}
    assert odd == {"type": "data-claude-hologram", "data": {"type": "hologram", "x": 1}}


def test_read__attached_documents_become_text(tmp_path: Path) -> None:
    attachment = {"file_name": "a.txt", "file_type": "txt", "extracted_content": "Pasted"}
    files = [{"file_name": "b.png"}, {"file_uuid": "nameless"}, {}]
    record = conversation(message("m1", "human", attachments=[attachment], files=files))
    import_path(write_json(tmp_path / "conversations.json", [record]))
    (content,) = list_contents(get_only_thread())
    named = {"filename": "a.txt", "mimeType": "txt"}
    assert content["parts"] == [
        {"type": "text", "text": "Pasted", "metadata": named},
        {"type": "file", "filename": "b.png"},
        {"type": "file", "filename": "nameless", "metadata": {"id": "nameless"}},
    ]
    assert content["metadata"] == {"importId": "m1"}
    assert list_texts() == [("user", "Pasted")]


def test_read__message_of_uploads_only_is_stored(tmp_path: Path) -> None:
    attachment = {"file_name": "budget.xlsx", "file_type": "", "file_size": 7}
    record = conversation(
        message("m1", "human", files=[{"file_uuid": "f1", "file_name": "photo.png"}]),
        message("m2", "human", attachments=[{**attachment, "extracted_content": ""}]),
    )
    report = import_path(write_json(tmp_path / "conversations.json", [record]))
    assert count_outcomes(report, "messages") == {"stored": 2}
    (photo,), (budget,) = (content["parts"] for content in list_contents(get_only_thread()))
    assert photo == {"type": "file", "filename": "photo.png", "metadata": {"id": "f1"}}
    assert budget == {"type": "file", "filename": "budget.xlsx", "metadata": {"size": 7}}


def test_read__empty_messages_and_unknown_senders_are_omitted(tmp_path: Path) -> None:
    messages = [
        message("m1", "human"),
        message("m2", "martian", "Zork"),
        7,
        message("", "human", "x"),
    ]
    report = import_path(write_json(tmp_path / "conversations.json", [conversation(*messages)]))
    assert count_outcomes(report, "messages") == {"stored": 1, "skipped": 1, "refused": 2}


def test_read__empty_conversation_is_an_empty_thread(tmp_path: Path) -> None:
    report = import_path(write_json(tmp_path / "conversations.json", [conversation()]))
    assert count_outcomes(report, "threads") == {"stored": 1}


def test_read__archive_with_memories_and_projects(tmp_path: Path) -> None:
    memory = {
        "account_uuid": "acct",
        "conversations_memory": "Likes tea.",
        "project_memories": {"p1": "Build a shed.", "p2": "Secret.", "p3": " "},
    }
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("conversations.json", json.dumps([TALK]))
        archive.writestr("memories.json", json.dumps([memory, {"account_uuid": "b"}]))
        archive.writestr("projects.json", json.dumps([{"uuid": "p1", "name": "Garden"}]))
        archive.writestr("users.json", json.dumps([{"uuid": "acct", "full_name": "Ann"}]))
    report = import_path(tmp_path / "export.zip", ResourceMapping(prefix="c-"))
    stored = WorkingMemory.objects.get()
    assert (stored.scope, stored.resource_id) == ("resource", "c-acct")
    assert stored.content == "Likes tea.\n\n## Garden\n\nBuild a shed.\n\n## p2\n\nSecret."
    assert [revision.source for revision in stored.revisions.all()] == ["import"]
    assert count_outcomes(report, "working memories") == {"stored": 1, "skipped": 1}
    assert count_outcomes(report, "threads") == {"stored": 1}


def test_read__memories_do_not_overwrite_working_memory(tmp_path: Path) -> None:
    Memory(options={"workingMemory": {"enabled": True}}).update_working_memory(
        "any", "Known here", resource_id="alice"
    )
    folder = tmp_path / "export"
    write_json(folder / "conversations.json", [TALK])
    write_json(folder / "memories" / "acct.json", {"conversations_memory": "Known there"})
    report = import_path(folder)
    assert count_outcomes(report, "working memories") == {"already there": 1}
    assert WorkingMemory.objects.get().content == "Known here"
    assert count_outcomes(import_path(folder, update=True), "working memories") == {"updated": 1}
    stored = WorkingMemory.objects.get()
    assert (stored.content, stored.version) == ("Known there", 2)
    assert [r.content for r in stored.revisions.order_by("version")] == [
        "Known here",
        "Known there",
    ]


def write_export_of_today(folder: Path) -> Path:
    """Write an export as several archives with a manifest."""
    account, project = "0198aaaa", "p1"
    second = {**TALK, "uuid": "conv-2", "name": "Another"}
    design = {
        "uuid": "d1",
        "title": "A logo",
        "created_at": "2026-05-01T10:00:00Z",
        "project": {"uuid": project, "name": "Garden"},
        "messages": [
            {"role": "user", "content": {"content": "Draw it", "authorAccountUuid": "acct"}},
            {"role": "assistant", "content": {"content": [{"type": "text", "text": "Done"}]}},
            {"role": "assistant", "content": {}},
        ],
    }
    memory = {
        "conversations_memory": "Likes tea.",
        "project_memories": {project: "Build a shed."},
        "memory_files": [{"path": "/areas/home.md", "content": "Has a garden."}, None],
    }
    archives: dict[str, dict[str, Any]] = {
        "conversations-000.zip": {"conversations.json": [TALK]},
        "conversations-001.zip": {"conversations.json": [second]},
        "projects-000.zip": {f"projects/{project}.json": {"uuid": project, "name": "Garden"}},
        "memories-000.zip": {f"memories/{account}.json": memory},
        "design_chats-000.zip": {"design_chats/d1.json": design},
        "light_metadata-000.zip": {"users.json": [{"uuid": account}], "login_history.json": {}},
        "frames-000.zip": {"artifacts/a/artifact.json": {}, "artifacts/a/versions/1.html": {}},
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, files in archives.items():
        with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as archive:
            for inner, value in files.items():
                archive.writestr(inner, json.dumps(value))
    entries = [{"filename": name, "category": name[:-8]} for name in archives]
    write_json(folder / "manifest-1.json", {"total_files": 7, "data_files": entries})
    return folder


def test_read__folder_of_numbered_archives(tmp_path: Path) -> None:
    report = import_path(write_export_of_today(tmp_path / "export"), ResourceMapping(prefix="c-"))
    assert sorted(Thread.objects.values_list("title", flat=True)) == [
        "A logo", "A talk", "Another",
    ]  # fmt: skip
    assert count_outcomes(report, "threads") == {"stored": 3}
    assert count_outcomes(report, "messages") == {"stored": 6, "skipped": 1}
    stored = WorkingMemory.objects.get()
    assert stored.resource_id == "c-0198aaaa"
    assert stored.content == (
        "Likes tea.\n\n## Garden\n\nBuild a shed.\n\n## /areas/home.md\n\nHas a garden."
    )
    notes = [line for line in report.format_lines() if line.startswith("note")]
    assert sorted(notes) == [
        "note: 1 files without conversations in frames-000.zip",
        "note: 1 files without conversations in manifest-1.json",
        "note: 2 files without conversations in light_metadata-000.zip",
    ]


def test_read__archive_of_archives(tmp_path: Path) -> None:
    folder = write_export_of_today(tmp_path / "export")
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for path in folder.iterdir():
            archive.write(path, path.name)
    report = import_path(tmp_path / "all.zip")
    assert count_outcomes(report, "threads") == {"stored": 3}
    assert count_outcomes(report, "working memories") == {"stored": 1}


@pytest.mark.parametrize("name", ["memories.json", "0198aaaa.json", "folder/memories/x.json"])
@pytest.mark.parametrize("key", ["conversations_memory", "memory_files"])
def test_read__lone_memories_become_working_memory(tmp_path: Path, name: str, key: str) -> None:
    memory = {"conversations_memory": "Likes tea."}
    if key == "memory_files":
        memory = {"memory_files": [{"content": "Likes tea."}]}  # type: ignore[dict-item]
    write_json(tmp_path / "export" / name, [memory])
    report = import_path(tmp_path / "export")
    assert count_outcomes(report, "working memories") == {"stored": 1}
    stored = WorkingMemory.objects.get()
    assert (stored.scope, stored.resource_id) == ("resource", "alice")
    assert stored.content == "Likes tea."


def test_read__pages_that_an_answer_cites_become_sources(tmp_path: Path) -> None:
    citations = [
        {"details": {"type": "web_search_citation", "url": "https://tea.example/"}},
        {"type": "web_search_result_location", "url": "https://tea.example/", "title": "Tea"},
        {"url": "https://milk.example/", "title": "Milk"},
        {"start_index": 1},
    ]
    block = {"type": "text", "text": "Green.", "citations": citations}
    record = conversation({"uuid": "m1", "sender": "assistant", "content": [block]})
    import_path(write_json(tmp_path / "conversations.json", [record]))
    text, *sources = list_contents(get_only_thread())[0]["parts"]
    assert text == {"type": "text", "text": "Green."}
    assert [(part["source"]["url"], part["source"]["title"]) for part in sources] == [
        ("https://tea.example/", ""),
        ("https://milk.example/", "Milk"),
    ]
