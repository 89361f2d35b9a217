"""Editing: what changes, what is kept, undo, and concurrent edits."""

import json
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from mastra_memory.admin import edits
from mastra_memory.embedding import indexing
from mastra_memory.exceptions import ConcurrentUpdate
from mastra_memory.memory import Memory
from mastra_memory.models import (
    Message,
    MessageEmbedding,
    Thread,
    ThreadChange,
    WorkingMemory,
)
from mastra_memory.working_memory import save_for_resource, save_for_thread
from tests.admin.pages import LIST, do, page_of, text_of, user_of
from tests.support.factories import a_message, make_thread, save, some_messages

pytestmark = pytest.mark.django_db


def was_of(client: Client, address: str) -> str:
    """The fingerprint that a form carries."""
    page = client.get(address).content.decode()
    return page.split('name="was" value="')[1].split('"')[0]


def edit(client: Client, thread_id: str, what: str, text: str, **more: Any) -> Any:
    """Open the editor and save a text."""
    address = f"{LIST}{thread_id}/edit/{what}/"
    fields = {"was": was_of(client, address), "text": text, "save": "", **more}
    return client.post(address, fields, follow=True)


def undo(client: Client, thread_id: str) -> str:
    return text_of(do(client, thread_id, "undo"))


def test_title__is_changed_logged_and_taken_back(admin: Client) -> None:
    thread = make_thread(title="Old")
    edit(admin, thread.id, "title", "  New   title ")
    assert Thread.objects.get().title == "New title"
    assert LogEntry.objects.get().change_message == 'title: was "Old", is "New title"'
    assert "undone" in undo(admin, thread.id)
    assert Thread.objects.get().title == "Old"
    assert "nothing to undo" in undo(admin, thread.id)


def test_title__is_not_overwritten_after_another_edit(admin: Client) -> None:
    thread = make_thread(title="Old")
    address = f"{LIST}{thread.id}/edit/title/"
    was = was_of(admin, address)
    edit(admin, thread.id, "title", "Theirs")
    page = admin.post(address, {"was": was, "text": "Mine"})
    assert Thread.objects.get().title == "Theirs"
    assert "Another user changed this" in text_of(page) and b'value="Mine"' in page.content
    assert b"Theirs" in page.content
    admin.post(address, {"was": was_of_page(page), "text": "Mine"})
    assert Thread.objects.get().title == "Mine"


def was_of_page(response: Any) -> str:
    value: str = response.content.decode().split('name="was" value="')[1].split('"')[0]
    return value


def test_metadata__is_replaced_and_taken_back(admin: Client) -> None:
    thread = make_thread(metadata={"plan": "plus", "n": 1})
    edit(admin, thread.id, "metadata", '{"plan": "business"}')
    assert Thread.objects.get().metadata == {"plan": "business"}
    undo(admin, thread.id)
    assert Thread.objects.get().metadata == {"plan": "plus", "n": 1}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{\n  "a": 1,\n  b: 2\n}', "Line 3, column 3"),
        ("[1]", "must be an object"),
        ("[" * 100_000, "too large or too deep"),
        ('{"a": NaN}', "Line 1, column 7"),
    ],
)
def test_metadata__a_fault_is_named_with_its_place(admin: Client, text: str, fault: str) -> None:
    thread = make_thread(metadata={"plan": "plus"})
    page = edit(admin, thread.id, "metadata", text)
    assert fault in text_of(page)
    assert Thread.objects.get().metadata == {"plan": "plus"}


def test_message__is_changed_whole_parts_stay(admin: Client) -> None:
    thread = make_thread()
    call = {"type": "tool-invocation", "toolInvocation": {"toolName": "look", "state": "call"}}
    parts = [{"type": "text", "text": "teh first"}, call, {"type": "text", "text": "second"}]
    [message] = save([a_message(thread, "m1", content={"format": 2, "parts": parts})])
    address = f"{LIST}{thread.id}/edit/message/?message=m1"
    page = admin.get(address)
    assert b"teh first\n\nsecond" in page.content
    fields = {"was": was_of_page(page), "text": "the first\r\n\r\nsecond"}
    assert b"<p>the first</p>" in admin.post(address, {**fields, "preview": ""}).content
    assert Message.objects.get().edited_at is None
    response = admin.post(address, fields, follow=True)
    changed = Message.objects.get()
    assert changed.content["parts"] == [{"type": "text", "text": "the first\n\nsecond"}, call]
    assert changed.text == "the first\n\nsecond" and changed.edited_at is not None
    assert "edited" in text_of(response)
    assert ThreadChange.objects.get().before == message.content
    assert "Tulip" not in text_of(admin.get(LIST, {"q": "teh"}))
    undo(admin, thread.id)
    assert Message.objects.get().content == message.content


def test_message__is_not_overwritten_after_another_edit(admin: Client) -> None:
    thread = make_thread()
    save([a_message(thread, "m1", text="old")])
    address = f"{LIST}{thread.id}/edit/message/?message=m1"
    was = was_of(admin, address)
    save([a_message(thread, "m1", text="streamed on")])
    page = admin.post(address, {"was": was, "text": "mine"})
    assert Message.objects.get().text == "streamed on"
    assert "Another user changed this" in text_of(page)


def test_undo__of_what_was_changed_since_is_refused(admin: Client) -> None:
    thread = make_thread(title="Old")
    edit(admin, thread.id, "title", "New")
    Thread.objects.update(title="Newer")
    assert "Another user changed this" in undo(admin, thread.id)
    assert Thread.objects.get().title == "Newer"


def test_delete__messages_come_back_with_undo(admin: Client) -> None:
    thread = make_thread()
    save(some_messages(thread, 3))
    before = list(Message.objects.order_by("created_at").values("id", "content", "created_at"))
    do(admin, thread.id, "drop", message="m1")
    assert list(Message.objects.order_by("id").values_list("pk", flat=True)) == ["m0", "m2"]
    undo(admin, thread.id)
    assert (
        list(Message.objects.order_by("created_at").values("id", "content", "created_at")) == before
    )


def test_delete__messages_of_other_threads_stay(admin: Client) -> None:
    thread, other = make_thread(), make_thread("bob")
    save([a_message(other, "foreign")])
    do(admin, thread.id, "drop", message="foreign")
    assert Message.objects.count() == 1


def test_clone__up_to_a_message_ties_of_time_included_by_order(admin: Client) -> None:
    thread = make_thread(title="Source")
    save([a_message(thread, f"t{n}", at=0, text=f"tie {n}") for n in range(5)])
    response = do(admin, thread.id, "clone", message="t2")
    clone = Thread.objects.get(clone_source_id=thread.id)
    assert response.redirect_chain[-1][0] == page_of(clone.pk)
    texts = clone.messages.order_by("created_at", "sequence").values_list("text", flat=True)
    assert list(texts) == ["tie 0", "tie 1", "tie 2"]
    page = text_of(admin.get(page_of(thread.id)))
    assert "Clone of Source" in page


def test_transfer__is_written_down(admin: Client) -> None:
    thread = make_thread("alice")
    save(some_messages(thread, 2))
    do(admin, thread.id, "transfer", resource="bob")
    assert set(Message.objects.values_list("resource_id", flat=True)) == {"bob"}
    change = ThreadChange.objects.get()
    assert (change.kind, change.before, change.after) == ("transfer", "alice", "bob")
    do(admin, thread.id, "transfer", resource="")
    assert Thread.objects.get().resource_id == "bob"


def memory_address(thread_id: str) -> str:
    return f"{LIST}{thread_id}/memory/{WorkingMemory.objects.get().pk}/"


@pytest.mark.parametrize("scope", ["thread", "resource"])
def test_memory__is_edited_and_restored(admin: Client, scope: str) -> None:
    thread = make_thread("alice")
    if scope == "thread":
        save_for_thread(thread.id, "alice", "likes tea", source="agent")
    else:
        save_for_resource("alice", "likes tea", source="agent")
    address = memory_address(thread.id)
    page = admin.post(address, {"content": "likes coffee", "version": "1"}, follow=True)
    row = WorkingMemory.objects.get()
    assert (row.content, row.version) == ("likes coffee", 2)
    assert row.revisions.get(version=2).author_id == str(user_of(admin).pk)
    assert "- likes tea + likes coffee" in text_of(page)
    admin.post(address, {"content": "late", "version": "1"})
    assert WorkingMemory.objects.get().content == "likes coffee"
    admin.post(address, {"restore": "1", "version": "2"})
    assert WorkingMemory.objects.get().content == "likes tea"
    change = ThreadChange.objects.order_by("id").first()
    assert change and (change.before, change.after) == ("likes tea", "likes coffee")


def test_memory__of_another_thread_or_resource_is_not_there(admin: Client) -> None:
    thread, other = make_thread("alice"), make_thread("bob")
    save_for_thread(other.id, "bob", "his", source="agent")
    assert (
        admin.post(memory_address(thread.id), {"content": "x", "version": "1"}).status_code == 404
    )
    assert WorkingMemory.objects.get().content == "his"


def test_memory__its_own_page(admin: Client, reviewer: Client) -> None:
    save_for_resource("alice", json.dumps({"name": "Anna"}), source="agent")
    make_thread("alice")
    row = WorkingMemory.objects.get()
    address = f"/admin/mastra_memory/workingmemory/{row.pk}/change/"
    assert '"name": "Anna"' in text_of(reviewer.get(address))
    assert reviewer.post(address, {"content": "x", "version": "1"}).status_code == 403
    admin.post(address, {"content": "{}", "version": "1"})
    assert WorkingMemory.objects.get().content == "{}"


def test_message__an_edit_is_found_by_its_new_meaning(admin: Client) -> None:
    thread = make_thread()
    Memory(options={"semanticRecall": True}).save_messages([a_message(thread, "m1", text="snow")])
    indexing.embed_pending(seconds=20)
    before = MessageEmbedding.objects.get().text_hash
    address = f"{LIST}{thread.id}/edit/message/?message=m1"
    admin.post(address, {"was": was_of(admin, address), "text": "a refund of money"})
    indexing.embed_pending(seconds=20)
    assert MessageEmbedding.objects.get().text_hash != before
    do(admin, thread.id, "drop", message="m1")
    assert not MessageEmbedding.objects.exists()
    undo(admin, thread.id)
    save([a_message(thread, "other")])
    assert Message.objects.filter(pk="m1").exists()


def test_memory__is_previewed_before_it_is_saved(admin: Client, reviewer: Client) -> None:
    thread = make_thread("alice")
    save_for_resource("alice", "likes tea", source="agent")
    own = f"/admin/mastra_memory/workingmemory/{WorkingMemory.objects.get().pk}/change/"
    fields = {"content": "likes **coffee**", "version": "1", "preview": ""}
    for address in (memory_address(thread.id), own):
        page = admin.post(address, fields)
        assert b"<strong>coffee</strong>" in page.content
        assert "- likes tea + likes **coffee**" in text_of(page)
        assert reviewer.post(address, fields).status_code == 403
    assert WorkingMemory.objects.get().content == "likes tea"


def test_edit__that_conflicts_shows_a_page(admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    thread = make_thread()

    def conflict(*args: object, **kwargs: object) -> None:
        raise ConcurrentUpdate

    monkeypatch.setattr(edits, "change_title", conflict)
    page = admin.post(f"{LIST}{thread.id}/edit/title/", {"text": "x", "was": "y"})
    assert page.status_code == 409 and "The change was not saved" in text_of(page)
