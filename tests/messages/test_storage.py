"""Messages: the plain verbs."""

import base64
import os
from typing import Any

import pytest

from mastra_memory import messages, threads
from mastra_memory.exceptions import AccessDenied, Conflict, InvalidInput, ThreadNotFound
from mastra_memory.models import Message
from mastra_memory.recall import selection
from mastra_memory.search import tsvector
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


def listed(thread_id: str) -> list[str]:
    """The texts of a thread in the order of reading."""
    page = selection.list_messages(thread_id, per_page=False)
    return [message.content["parts"][-1]["text"] for message in page.messages]


def test_save__growing_parts_under_one_id_stay_one_row() -> None:
    thread = make_thread()
    steps = [[{"type": "text", "text": f"step {n}"} for n in range(size)] for size in range(1, 5)]
    for parts in steps:
        save([a_message(thread, "turn", at=1, content={"format": 2, "parts": parts})])
    stored = Message.objects.get()
    assert stored.content["parts"] == steps[-1]
    assert stored.text == "step 0 step 1 step 2 step 3"


def test_save__turns_of_parallel_clients_stay_together(transactional_db: None) -> None:
    thread = make_thread()

    def talk(client: int) -> None:
        for turn in range(4):
            said = f"{client}.{turn}"
            pair = [a_message(thread, text=f"{said}{who}", role=role) for who, role in SPEAKERS]
            save(pair)

    concurrently(talk, list(range(8)))
    said = listed(thread.id)
    assert len(said) == 8 * 4 * 2
    for question, answer in zip(said[::2], said[1::2], strict=True):
        assert (question[:-1], question[-1], answer[-1]) == (answer[:-1], "u", "a")
    assert [text[:-1] for text in said[::2] if text.startswith("3.")] == [
        f"3.{n}" for n in range(4)
    ]


SPEAKERS = (("u", "user"), ("a", "assistant"))


def test_save__parallel_batches_over_the_same_threads_never_deadlock(
    transactional_db: None,
) -> None:
    pair = [make_thread(), make_thread()]

    def both(order: int) -> None:
        for _ in range(5):
            save([a_message(thread) for thread in pair[::order]])

    concurrently(both, [1, -1, 1, -1])
    assert Message.objects.count() == 4 * 5 * 2


def test_save__the_same_id_from_parallel_clients_is_one_row(transactional_db: None) -> None:
    thread = make_thread()
    concurrently(lambda n: save([a_message(thread, "m", text=str(n))]), list(range(8)))
    assert Message.objects.count() == 1


def test_save__beside_a_transfer_is_wholly_the_old_owners_or_refused(
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


def test_save__a_thread_deleted_meanwhile_is_not_found(transactional_db: None) -> None:
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
def test_save__costs_one_statement_whatever_the_number(size: int, statements: Statements) -> None:
    thread = make_thread()
    with statements() as sent:
        save([a_message(thread) for _ in range(size)])
    assert len(sent) == 1


def test_save__a_large_attachment_is_never_searched() -> None:
    thread = make_thread()
    data = base64.b64encode(os.urandom(3_750_000)).decode()
    picture = {"type": "file", "mimeType": "image/png", "data": f"data:image/png;base64,{data}"}
    content = {"format": 2, "parts": [picture, {"type": "text", "text": "a lighthouse"}]}
    save([a_message(thread, "m", content=content)])
    stored = Message.objects.get()
    assert stored.content["parts"][0]["data"] == picture["data"]
    assert stored.text == "a lighthouse" and len(str(stored.search)) < 50


def test_save__any_amount_of_words_is_stored() -> None:
    text = " ".join(f"word{n}" for n in range(200_000))
    save([a_message(make_thread(), "m", text=text)])
    assert Message.objects.get().text == text


def test_draft_messages__working_memory_traces_are_not_stored() -> None:
    thread = make_thread()
    call = {"type": "tool-invocation", "toolInvocation": CALL}
    tagged = "hi <working_memory>secret</working_memory> you"
    save(
        [
            a_message(thread, "call", content={"format": 2, "parts": [call]}),
            a_message(thread, "tagged", text=tagged),
            a_message(thread, "both", content={"format": 2, "parts": [call, _text("said")]}),
        ]
    )
    assert listed(thread.id) == ["hi  you", "said"]
    assert not Message.objects.filter(text__contains="secret").exists()
    kept = messages.validate_messages([a_message(thread, text=tagged)], strip=False)
    assert "secret" in kept[0].content_json


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def test_draft_messages__leaves_out_what_is_not_to_be_stored() -> None:
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


def test_save__errors_store_nothing() -> None:
    mine, theirs = make_thread("r"), make_thread("s")
    save([a_message(theirs, "taken")])
    wrong_owner = a_message(theirs) | {"resourceId": "r"}
    missing = a_message(mine) | {"threadId": "nobody"}
    attempts: list[tuple[Any, type[Exception]]] = [
        (a_message(mine, "taken"), Conflict),
        (wrong_owner, AccessDenied),
        (missing, ThreadNotFound),
        (a_message(mine, role="robot"), InvalidInput),
    ]
    for faulty, error in attempts:
        with pytest.raises(error):
            save([a_message(mine), faulty])
    assert Message.objects.count() == 1


def test_get_messages__by_id_over_threads_in_one_statement(statements: Statements) -> None:
    first, second = make_thread("r"), make_thread("s")
    save([a_message(first, "b", at=2), a_message(first, "a", at=1)])
    save([a_message(second, "c", at=0)])
    with statements() as sent:
        found = messages.get_messages(["a", "b", "c", "nobody", "a"])
    assert len(sent) == 1
    assert [message.id for message in found] == ["c", "a", "b"]
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


def test_update_messages__new_parts_are_searched_and_a_new_time_moves_it() -> None:
    thread = make_thread()
    save(some_messages(thread, 3))
    before = threads.get_thread(thread.id).updated
    change = {"id": "m0", "content": text_content("lighthouse"), "createdAt": moment(9)}
    messages.update_messages([change, {"id": "nobody", "role": "user"}])
    assert listed(thread.id) == ["Message 1", "Message 2", "lighthouse"]
    assert tsvector.list_messages_with_words("lighthouse").exists()
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
def test_update_messages__a_bad_change_is_refused_and_changes_nothing(change: Any) -> None:
    thread = make_thread()
    save(some_messages(thread, 2))
    good = {"id": "m1", "content": text_content("changed")}
    with pytest.raises(InvalidInput):
        messages.update_messages([good, change])
    assert listed(thread.id) == ["Message 0", "Message 1"]


def test_update_messages__parallel_changes_of_one_message_lose_nothing(
    transactional_db: None,
) -> None:
    save([a_message(make_thread(), "m")])

    def mark(n: int) -> None:
        messages.update_messages([{"id": "m", "content": {"metadata": {f"k{n}": n}}}])

    concurrently(mark, list(range(8)))
    (message,) = messages.get_messages(["m"])
    assert message.content["metadata"] == {f"k{n}": n for n in range(8)}


@pytest.mark.parametrize("given", ["m", [5], [""], [None], [{}], 5, {"id": "m"}, [["m"]]])
def test_ids_of__refuses_what_is_no_list_of_ids(given: Any) -> None:
    with pytest.raises(InvalidInput):
        messages.parse_message_ids(given)


def test_delete_messages__counts_rows_and_moves_the_time(statements: Statements) -> None:
    thread = make_thread()
    save(some_messages(thread, 3))
    before = threads.get_thread(thread.id).updated
    with statements() as sent:
        assert messages.delete_messages(["m0", "m1", "m1", "nobody"]) == 2
    assert len(sent) == 1
    assert threads.get_thread(thread.id).updated > before
    assert messages.delete_messages(["m0"]) == 0
    assert messages.delete_messages([]) == 0


def test_delete_messages__of_one_resource_leaves_the_others() -> None:
    mine, theirs = make_thread("r"), make_thread("s")
    save([a_message(mine, "mine"), a_message(theirs, "theirs")])
    before = threads.get_thread(theirs.id).updated
    assert messages.delete_messages(["mine", "theirs"], resource_id="r") == 1
    assert [message.id for message in messages.get_messages(["mine", "theirs"])] == ["theirs"]
    assert threads.get_thread(theirs.id).updated == before


def test_delete_messages__beside_saves_never_deadlocks(transactional_db: None) -> None:
    thread = make_thread()
    save(some_messages(thread, 20))
    names = [f"m{n}" for n in range(20)]

    def act(number: int) -> None:
        for _ in range(5):
            if number % 2:
                messages.delete_messages(names[::-1])
            else:
                save(some_messages(thread, 20))

    concurrently(act, list(range(4)))
