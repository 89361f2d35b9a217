"""Tests of importing ChatGPT exports."""

import zipfile
from pathlib import Path
from typing import Any

import pytest

from mastra_memory.importers.records import ResourceMapping
from mastra_memory.memory import Memory
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

Json = dict[str, Any]


def node(parent: str | None, role: str = "user", text: Any = "", **message: Any) -> Json:
    content = text if isinstance(text, dict) else {"content_type": "text", "parts": [text]}
    name = {"name": message.pop("tool")} if "tool" in message else {}
    full_message = {"author": {"role": role, **name}, "content": content, **message}
    return {"parent": parent, "message": full_message}


def conversation(current: str | None = None, **nodes: Json) -> Json:
    root = {"root": {"parent": None, "message": None}}
    return {
        "conversation_id": "conv-1",
        "title": "A talk",
        "create_time": 1700000000.5,
        "update_time": 1700009999,
        "mapping": root | nodes,
        "current_node": current or list(nodes or root)[-1],
    }


TALK = conversation(
    u1=node("root", "user", "Hello", create_time=1700000001.25),
    a1=node("u1", "assistant", "Hi", create_time=1700000002, metadata={"model_slug": "gpt-4o"}),
)
EDITED = conversation(
    "a2b",
    u1=node("root", "user", "Tea?"),
    a1=node("u1", "assistant", "Green."),
    u2a=node("a1", "user", "And coffee?"),
    a2a=node("u2a", "assistant", "No."),
    u2b=node("a1", "user", "And juice?"),
    a2b=node("u2b", "assistant", "Yes."),
)


def test_read__current_path_becomes_a_thread(tmp_path: Path) -> None:
    import_path(write_json(tmp_path / "conversations.json", [TALK]))
    thread = get_only_thread()
    assert list_texts(thread) == [("user", "Hello"), ("assistant", "Hi")]
    assert (thread.title, thread.title_source) == ("A talk", "manual")
    assert thread.created_at.isoformat(timespec="milliseconds") == "2023-11-14T22:13:20.500+00:00"
    assert thread.updated_at.isoformat() == "2023-11-15T00:59:59+00:00"
    first, second = thread.messages.order_by("created_at")
    assert first.created_at.isoformat(timespec="milliseconds") == "2023-11-14T22:13:21.250+00:00"
    assert second.content["metadata"] == {"importId": "a1", "model": "gpt-4o"}


def test_read__edited_branch_becomes_a_clone(tmp_path: Path) -> None:
    report = import_path(write_json(tmp_path / "conversations.json", [EDITED]))
    main = Thread.objects.get(clone_source_id=None)
    branch = Thread.objects.get(clone_source_id=main.pk)
    texts = [text for _, text in list_texts(main)]
    assert texts == ["Tea?", "Green.", "And juice?", "Yes."]
    assert [text for _, text in list_texts(branch)] == ["Tea?", "Green.", "And coffee?", "No."]
    assert count_outcomes(report, "threads") == {"stored": 2}
    assert count_outcomes(report, "messages") == {"stored": 6}
    assert count_outcomes(report, "branch copies") == {"stored": 2}
    clone = Memory().get_clone_metadata(Memory().get_thread(branch.pk))
    assert clone is not None
    shared = Message.objects.get(thread=main, text="Green.")
    assert (clone["sourceThreadId"], clone["lastMessageId"]) == (main.pk, shared.pk)
    assert [thread.id for thread in Memory().list_clones(main.pk)] == [branch.pk]


def test_read__nested_branches_and_regenerated_answers(tmp_path: Path) -> None:
    record = conversation(
        "a1",
        u1=node("root", "user", "1"),
        a1=node("u1", "assistant", "2"),
        a1x=node("u1", "assistant", "2x"),
        u2x=node("a1x", "user", "3x"),
        u2y=node("a1x", "user", "3y"),
    )
    report = import_path(write_json(tmp_path / "conversations.json", [record]))
    paths = sorted([text for _, text in list_texts(thread)] for thread in Thread.objects.all())
    assert paths == [["1", "2"], ["1", "2x", "3x"], ["1", "2x", "3y"]]
    assert count_outcomes(report, "messages") == {"stored": 5}
    assert count_outcomes(report, "branch copies") == {"stored": 3}


def grown(current: str, **nodes: Json) -> Json:
    return {**EDITED, "current_node": current, "mapping": {**EDITED["mapping"], **nodes}}


def test_read__second_import_adds_messages_to_both_paths(tmp_path: Path) -> None:
    import_path(write_json(tmp_path / "conversations.json", [EDITED]))
    later = grown("u3b", u3a=node("a2a", "user", "Why?"), u3b=node("a2b", "user", "Good."))
    report = import_path(write_json(tmp_path / "conversations.json", [later]))
    assert count_outcomes(report, "threads") == {"already there": 2}
    assert count_outcomes(report, "messages") == {"stored": 2, "already there": 6}
    assert sorted(len(list_texts(thread)) for thread in Thread.objects.all()) == [5, 5]


def test_read__second_import_after_an_edit_keeps_both_paths(tmp_path: Path) -> None:
    """The path that was current before stays a thread of its own."""
    import_path(write_json(tmp_path / "conversations.json", [EDITED]))
    later = grown("a2c", u2c=node("a1", "user", "Milk?"), a2c=node("u2c", "assistant", "Yes."))
    report = import_path(write_json(tmp_path / "conversations.json", [later]))
    assert count_outcomes(report, "threads") == {"stored": 1, "already there": 2}
    texts = sorted([text for _, text in list_texts(thread)] for thread in Thread.objects.all())
    assert texts == [
        ["Tea?", "Green.", "And coffee?", "No."],
        ["Tea?", "Green.", "And juice?", "Yes."],
        ["Tea?", "Green.", "Milk?", "Yes."],
    ]


def test_read__tool_result_joins_its_call(tmp_path: Path) -> None:
    code = {"content_type": "code", "language": "python", "text": "print(1)"}
    output = {"content_type": "execution_output", "text": "1"}
    record = conversation(
        u1=node("root", "user", "Run"),
        c1=node("u1", "assistant", code, recipient="python"),
        t1=node("c1", "tool", output, tool="python"),
        a1=node("t1", "assistant", "Done", recipient="all"),
    )
    report = import_path(write_json(tmp_path / "conversations.json", [record]))
    assert list_contents(get_only_thread())[1]["parts"] == [
        {
            "type": "tool-invocation",
            "toolInvocation": {
                "state": "result",
                "toolCallId": "c1",
                "toolName": "python",
                "args": {"input": "print(1)", "language": "python"},
                "result": "1",
            },
        }
    ]
    assert count_outcomes(report, "messages") == {"stored": 3, "joined": 1}


def test_read__tool_call_with_images_and_several_results(tmp_path: Path) -> None:
    prompt = '{"prompt": "a cat", "n": 1}'
    image = {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file-1"}
    record = conversation(
        c1=node("root", "assistant", prompt, recipient="dalle.text2im"),
        t1=node("c1", "tool", {"content_type": "multimodal_text", "parts": [image, "made"]},
                tool="dalle"),
        t2=node("t1", "tool", "also", tool="dalle"),
    )  # fmt: skip
    import_path(write_json(tmp_path / "conversations.json", [record]))
    (content,) = list_contents(get_only_thread())
    call, picture = content["parts"]
    assert call["toolInvocation"]["args"] == {"prompt": "a cat", "n": 1}
    assert call["toolInvocation"]["result"] == ["made", "also"]
    assert picture == {"type": "image", "image": "sediment://file-1"}


def test_read__skips_instructions_and_hidden_messages(tmp_path: Path) -> None:
    hidden = {"is_visually_hidden_from_conversation": True}
    profile = {"content_type": "user_editable_context", "user_profile": "x"}
    record = conversation(
        s1=node("root", "system", "Obey"),
        p1=node("s1", "user", profile),
        h1=node("p1", "user", "hidden", metadata=hidden),
        e1=node("h1", "assistant", ""),
        m1=node("e1", "martian", "Zork"),
        u1=node("m1", "user", "Hello"),
    )
    report = import_path(write_json(tmp_path / "conversations.json", [record]))
    assert list_texts() == [("user", "Hello")]
    assert count_outcomes(report, "messages") == {"stored": 1, "skipped": 4, "refused": 1}


def test_read__converts_each_kind_of_content(tmp_path: Path) -> None:
    thoughts = {"content_type": "thoughts", "thoughts": [{"summary": "Plan", "content": "Tea."}]}
    quote = {"content_type": "tether_quote", "url": "https://e.com", "title": "E", "text": "quoted"}
    image = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://1", "width": 8}
    speech = {"content_type": "audio_transcription", "text": "spoken"}
    new = {"content_type": "hologram", "x": 1}
    record = conversation(
        r1=node("root", "assistant", thoughts),
        q1=node("r1", "assistant", quote),
        i1=node("q1", "user", {"content_type": "multimodal_text", "parts": [image, speech, new]}),
        n1=node("i1", "assistant", new),
        c1=node("n1", "assistant", {"content_type": "code", "language": "sql", "text": "SELECT 1"}),
    )
    import_path(write_json(tmp_path / "conversations.json", [record]))
    reasoning, quoted, shown, unknown, code = (c["parts"] for c in list_contents(get_only_thread()))
    assert reasoning[0]["reasoning"] == "Plan\nTea."
    assert [part["type"] for part in quoted] == ["source", "text"]
    assert shown == [
        {"type": "image", "image": "file-service://1", "metadata": {"width": 8}},
        {"type": "text", "text": "spoken"},
        {"type": "data-chatgpt-hologram", "data": new},
    ]
    assert unknown == [{"type": "data-chatgpt-hologram", "data": new}]
    assert code == [{"type": "text", "text": "```sql\nSELECT 1\n```"}]


def test_read__decreasing_times_do_not_change_the_order(tmp_path: Path) -> None:
    record = conversation(
        u1=node("root", "user", "1", create_time=1700000100),
        a1=node("u1", "assistant", "2", create_time=1700000050),
        u2=node("a1", "user", "3", create_time=None),
        a2=node("u2", "assistant", "4", create_time=1e300),
    )
    import_path(write_json(tmp_path / "conversations.json", [record]))
    assert [text for _, text in list_texts()] == ["1", "2", "3", "4"]


@pytest.mark.parametrize(
    "broken",
    [
        {"mapping": {"a": node("b"), "b": node("a")}, "current_node": "a"},
        {"mapping": {"a": node("a")}},
        {"mapping": [1]},
        {"title": "none"},
    ],
)
def test_read__invalid_tree_is_refused(tmp_path: Path, broken: Json) -> None:
    report = import_path(write_json(tmp_path / "conversations.json", [TALK, broken]))
    assert count_outcomes(report, "threads") == {"stored": 1, "refused": 1}


def test_read__malformed_nodes_do_not_affect_others(tmp_path: Path) -> None:
    record = conversation(
        "a1", x=5, y={"parent": ["x"], "message": {"author": "me", "content": "text"}},  # type: ignore[arg-type]
        u1=node("missing", "user", "Hello"), a1=node("u1", "assistant", {"parts": {"a": 1}}),
    )  # fmt: skip
    import_path(write_json(tmp_path / "conversations.json", [record]))
    assert ("user", "Hello") in list_texts()


def test_read__very_deep_tree(tmp_path: Path) -> None:
    nodes: Any = {f"n{i}": node(f"n{i - 1}" if i else None, "user", str(i)) for i in range(5000)}
    report = import_path(write_json(tmp_path / "conversations.json", [conversation(**nodes)]))
    assert count_outcomes(report, "messages") == {"stored": 5000}


def test_read__archive_with_several_conversation_files(tmp_path: Path) -> None:
    import json

    second = {**TALK, "conversation_id": "conv-2"}
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("conversations-000.json", json.dumps([TALK]))
        archive.writestr("conversations-001.json", json.dumps([second]))
        archive.writestr("message_feedback.json", json.dumps([{"id": "x"}]))
        archive.writestr("user.json", json.dumps({"id": "user-7", "email": "a@example.com"}))
        archive.writestr("chat.html", "<html>")
    report = import_path(tmp_path / "export.zip", ResourceMapping(prefix="gpt-"))
    assert count_outcomes(report, "threads") == {"stored": 2}
    assert set(Thread.objects.values_list("resource_id", flat=True)) == {"gpt-user-7"}


def test_read__message_of_uploads_only_is_stored(tmp_path: Path) -> None:
    uploads = [
        {"id": "file-1", "name": "budget.xlsx", "mimeType": "application/vnd.ms-excel", "size": 9},
        {"name": "notes.txt"},
        {"id": "file-3"},
        {},
    ]
    record = conversation(
        u1=node("root", "user", "", metadata={"attachments": uploads}),
        u2=node("u1", "user", "Read it", metadata={"attachments": [{"name": "plan.pdf"}]}),
    )
    report = import_path(write_json(tmp_path / "conversations.json", [record]))
    first, second = (content["parts"] for content in list_contents(get_only_thread()))
    assert first == [
        {
            "type": "file",
            "filename": "budget.xlsx",
            "mimeType": "application/vnd.ms-excel",
            "metadata": {"id": "file-1", "size": 9},
        },
        {"type": "file", "filename": "notes.txt"},
        {"type": "file", "filename": "file-3", "metadata": {"id": "file-3"}},
    ]
    assert [part.get("filename", part.get("text")) for part in second] == ["Read it", "plan.pdf"]
    assert count_outcomes(report, "messages") == {"stored": 2}


def test_read__uploaded_image_gets_its_name(tmp_path: Path) -> None:
    image = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1"}
    content = {"content_type": "multimodal_text", "parts": [image, "What is it?"]}
    uploads = [{"id": "file-1", "name": "cat.png", "mime_type": "image/png"}]
    record = conversation(u1=node("root", "user", content, metadata={"attachments": uploads}))
    import_path(write_json(tmp_path / "conversations.json", [record]))
    (stored,) = list_contents(get_only_thread())
    assert stored["parts"] == [
        {"type": "image", "image": "file-service://file-1", "filename": "cat.png"},
        {"type": "text", "text": "What is it?"},
    ]


def test_read__conversation_of_instructions_only_leaves_no_thread(tmp_path: Path) -> None:
    record = conversation(s1=node("root", "system", "Obey"))
    report = import_path(write_json(tmp_path / "conversations.json", [record]))
    assert count_outcomes(report, "threads") == {"skipped": 1}
    assert count_outcomes(report, "messages") == {"skipped": 1}
    assert not Thread.objects.exists()
