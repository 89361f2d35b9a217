"""Saving, reading, changing and deleting messages."""

import base64
import os
from typing import Any

import pytest

from mastra_memory import messages, threads
from mastra_memory.exceptions import AccessDenied, Conflict, InvalidInput, ThreadNotFound
from mastra_memory.messages import validation
from mastra_memory.models import Message
from mastra_memory.recall import selection
from mastra_memory.search import lists
from tests.conftest import Statements
from tests.support.concurrency import concurrently
from tests.support.factories import (
    a_message,
    make_thread,
    moment,
    save,
    some_messages,
    text_content,
)

pytestmark = pytest.mark.django_db
CALL = {"state": "call", "toolCallId": "c", "toolName": "updateWorkingMemory", "args": {}}


def list_texts(thread_id: str) -> list[str]:
    """Return the texts of a thread, oldest first."""
    page = selection.list_messages(thread_id, per_page=False)
    return [message.content["parts"][-1]["text"] for message in page.messages]


def test_save_messages__growing_parts_of_one_id_stay_one_row() -> None:
    thread = make_thread()
    steps = [[{"type": "text", "text": f"step {n}"} for n in range(size)] for size in range(1, 5)]
    for parts in steps:
        save([a_message(thread, "turn", at=1, content={"format": 2, "parts": parts})])
    stored = Message.objects.get()
    assert stored.content["parts"] == steps[-1]
    assert stored.text == "step 0 step 1 step 2 step 3"


def test_save_messages__keeps_turns_of_parallel_clients_together(transactional_db: None) -> None:
    thread = make_thread()

    def save_turns(client: int) -> None:
        for turn in range(4):
            label = f"{client}.{turn}"
            pair = [a_message(thread, text=f"{label}{who}", role=role) for who, role in SPEAKERS]
            save(pair)

    concurrently(save_turns, list(range(8)))
    texts = list_texts(thread.id)
    assert len(texts) == 8 * 4 * 2
    for question, answer in zip(texts[::2], texts[1::2], strict=True):
        assert (question[:-1], question[-1], answer[-1]) == (answer[:-1], "u", "a")
    assert [text[:-1] for text in texts[::2] if text.startswith("3.")] == [
        f"3.{n}" for n in range(4)
    ]


SPEAKERS = (("u", "user"), ("a", "assistant"))


def test_save_messages__parallel_batches_never_deadlock(
    transactional_db: None,
) -> None:
    pair = [make_thread(), make_thread()]

    def save_both(order: int) -> None:
        for _ in range(5):
            save([a_message(thread) for thread in pair[::order]])

    concurrently(save_both, [1, -1, 1, -1])
    assert Message.objects.count() == 4 * 5 * 2


def test_save_messages__one_id_of_parallel_clients_is_one_row(transactional_db: None) -> None:
    thread = make_thread()
    concurrently(lambda n: save([a_message(thread, "m", text=str(n))]), list(range(8)))
    assert Message.objects.count() == 1


def test_save_messages__during_a_transfer_saves_all_or_nothing(
    transactional_db: None,
) -> None:
    thread = make_thread("r")

    def act(number: int) -> str:
        if number == 0:
            return threads.transfer_thread(thread.id, "s").resource_id
        try:
            save([a_message(thread) for _ in range(20)])
        except (AccessDenied, Conflict):
            return "refused"
        return "saved"

    outcomes = concurrently(act, list(range(5)))
    owners = Message.objects.values_list("resource_id", flat=True)
    assert list(owners) == ["s"] * 20 * outcomes.count("saved")


def test_save_messages__thread_deleted_meanwhile_is_not_found(transactional_db: None) -> None:
    thread = make_thread()

    def act(deletes: bool) -> None:
        if deletes:
            threads.delete_thread(thread.id)
            return
        try:
            save([a_message(thread) for _ in range(50)])
        except ThreadNotFound:
            pass

    concurrently(act, [False, True, False])
    assert not Message.objects.exists()


@pytest.mark.parametrize("size", [1, 30])
def test_save_messages__needs_one_statement_for_any_size(size: int, statements: Statements) -> None:
    thread = make_thread()
    with statements() as sent:
        save([a_message(thread) for _ in range(size)])
    assert len(sent) == 1


def test_save_messages__leaves_attachments_out_of_the_index() -> None:
    thread = make_thread()
    data = base64.b64encode(os.urandom(3_750_000)).decode()
    picture = {"type": "file", "mimeType": "image/png", "data": f"data:image/png;base64,{data}"}
    content = {"format": 2, "parts": [picture, {"type": "text", "text": "a lighthouse"}]}
    save([a_message(thread, "m", content=content)])
    stored = Message.objects.get()
    assert stored.content["parts"][0]["data"] == picture["data"]
    assert stored.text == "a lighthouse" and len(str(stored.search)) < 50


def test_save_messages__stores_any_number_of_words() -> None:
    text = " ".join(f"word{n}" for n in range(200_000))
    save([a_message(make_thread(), "m", text=text)])
    assert Message.objects.get().text == text


def test_validate_messages__strips_working_memory() -> None:
    thread = make_thread()
    call = {"type": "tool-invocation", "toolInvocation": CALL}
    tagged = "hi <working_memory>secret</working_memory> you"
    save(
        [
            a_message(thread, "call", content={"format": 2, "parts": [call]}),
            a_message(thread, "tagged", text=tagged),
            a_message(thread, "both", content={"format": 2, "parts": [call, _text("answer")]}),
        ]
    )
    assert list_texts(thread.id) == ["hi  you", "answer"]
    assert not Message.objects.filter(text__contains="secret").exists()
    validated = messages.validate_messages([a_message(thread, text=tagged)], strip_memory=False)
    assert "secret" in validated[0].content_json


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def test_validate_messages__leaves_out_messages_not_to_store() -> None:
    thread = make_thread()
    transient = text_content("x", metadata={"signal": {"type": "state", "transient": True}})
    drafts = messages.validate_messages(
        [
            a_message(thread, role="system"),
            a_message(thread, role="signal", content=transient),
            a_message(thread, content={"format": 2, "parts": []}),
            a_message(thread, "kept"),
        ]
    )
    assert [draft.id for draft in drafts] == ["kept"]


def test_save_messages__errors_store_nothing() -> None:
    mine, theirs = make_thread("r"), make_thread("s")
    save([a_message(theirs, "taken")])
    wrong_owner = a_message(theirs) | {"resourceId": "r"}
    missing = a_message(mine) | {"threadId": "missing"}
    attempts: list[tuple[Any, type[Exception]]] = [
        (a_message(mine, "taken"), Conflict),
        (wrong_owner, AccessDenied),
        (missing, ThreadNotFound),
        (a_message(mine, role="robot"), InvalidInput),
    ]
    for invalid, error in attempts:
        with pytest.raises(error):
            save([a_message(mine), invalid])
    assert Message.objects.count() == 1


def test_get_messages__reads_all_threads_in_one_statement(statements: Statements) -> None:
    first, second = make_thread("r"), make_thread("s")
    save([a_message(first, "b", at=2), a_message(first, "a", at=1)])
    save([a_message(second, "c", at=0)])
    with statements() as sent:
        rows = messages.get_messages(["a", "b", "c", "missing", "a"])
    assert len(sent) == 1
    assert [message.id for message in rows] == ["c", "a", "b"]
    assert [m.id for m in messages.get_messages(["a", "c"], resource_id="s")] == ["c"]
    assert messages.get_messages([]) == []


def test_update_messages__merges_content_and_its_metadata() -> None:
    thread = make_thread()
    content = text_content("old", metadata={"a": 1, "b": {"c": 1}}, x=1)
    save([a_message(thread, "m", at=1, content=content)])
    change = {"id": "m", "content": {"metadata": {"b": {"d": 2}}, "y": 2}, "role": "assistant"}
    (updated,) = messages.update_messages([change])
    assert updated.content == text_content("old", metadata={"a": 1, "b": {"d": 2}}, x=1, y=2)
    assert updated.role == "assistant" and updated.created_at == moment(1)
    row = Message.objects.get()
    assert row.edited_at is not None and row.text == "old"


def test_update_messages__updates_the_index_and_the_position() -> None:
    thread = make_thread()
    save(some_messages(thread, 3))
    before = threads.get_thread(thread.id).updated
    change = {"id": "m0", "content": text_content("lighthouse"), "createdAt": moment(9)}
    messages.update_messages([change, {"id": "missing", "role": "user"}])
    assert list_texts(thread.id) == ["Message 1", "Message 2", "lighthouse"]
    assert lists.search_messages("lighthouse").exists()
    assert threads.get_thread(thread.id).updated > before


@pytest.mark.parametrize(
    "change",
    [
        {"id": "m0", "role": "robot"},
        {"id": "m0", "role": "system"},
        {"id": "m0", "content": {"parts": []}},
        {"id": "m0", "content": 5},
        {"id": "m0", "createdAt": "never"},
        {"id": ""},
        {},
    ],
)
def test_update_messages__an_invalid_change_changes_nothing(change: Any) -> None:
    thread = make_thread()
    save(some_messages(thread, 2))
    valid = {"id": "m1", "content": text_content("changed")}
    with pytest.raises(InvalidInput):
        messages.update_messages([valid, change])
    assert list_texts(thread.id) == ["Message 0", "Message 1"]


def test_update_messages__parallel_changes_lose_nothing(
    transactional_db: None,
) -> None:
    save([a_message(make_thread(), "m")])

    def mark(n: int) -> None:
        messages.update_messages([{"id": "m", "content": {"metadata": {f"k{n}": n}}}])

    concurrently(mark, list(range(8)))
    (message,) = messages.get_messages(["m"])
    assert message.content["metadata"] == {f"k{n}": n for n in range(8)}


@pytest.mark.parametrize("value", ["m", [5], [""], [None], [{}], 5, {"id": "m"}, [["m"]]])
def test_parse_message_ids__refuses_other_than_lists_of_ids(value: Any) -> None:
    with pytest.raises(InvalidInput):
        messages.parse_message_ids(value)


def test_delete_messages__counts_rows_and_updates_the_thread(statements: Statements) -> None:
    thread = make_thread()
    save(some_messages(thread, 3))
    before = threads.get_thread(thread.id).updated
    with statements() as sent:
        assert messages.delete_messages(["m0", "m1", "m1", "missing"]) == 2
    assert len(sent) == 1
    assert threads.get_thread(thread.id).updated > before
    assert messages.delete_messages(["m0"]) == 0
    assert messages.delete_messages([]) == 0


def test_delete_messages__leaves_messages_of_other_resources() -> None:
    mine, theirs = make_thread("r"), make_thread("s")
    save([a_message(mine, "mine"), a_message(theirs, "theirs")])
    before = threads.get_thread(theirs.id).updated
    assert messages.delete_messages(["mine", "theirs"], resource_id="r") == 1
    assert [message.id for message in messages.get_messages(["mine", "theirs"])] == ["theirs"]
    assert threads.get_thread(theirs.id).updated == before


def test_delete_messages__parallel_saves_never_deadlock(transactional_db: None) -> None:
    thread = make_thread()
    save(some_messages(thread, 20))
    message_ids = [f"m{n}" for n in range(20)]

    def act(number: int) -> None:
        for _ in range(5):
            if number % 2:
                messages.delete_messages(message_ids[::-1])
            else:
                save(some_messages(thread, 20))

    concurrently(act, list(range(4)))


@pytest.mark.parametrize("ignored", [{"role": "system"}, {"content": []}])
def test_save_messages__checks_messages_that_are_not_stored(ignored: dict[str, Any]) -> None:
    thread = make_thread()
    message = {
        "threadId": thread.id,
        "resourceId": thread.resource_id,
        "role": "user",
        "content": "Hello",
        "createdAt": "tomorrow",
        **ignored,
    }
    with pytest.raises(InvalidInput, match="createdAt"):
        validation.validate_messages([message])
