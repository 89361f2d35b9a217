"""Saving messages over HTTP: what is stored, what is refused, and in which order."""

from typing import Any

import pytest

from mastra_memory.models import Message, Thread
from mastra_memory.types import StoredThread
from tests.conftest import Person
from tests.support.api_client import Answer, Api, fields_of, ids, texts
from tests.support.factories import (
    Json,
    a_message,
    api_time,
    make_thread,
    some_messages,
    text_content,
)

LIST = "threads/t/messages"


@pytest.fixture
def thread(db: None) -> StoredThread:
    return make_thread("r", "t")


def post(api: Api, *batch: Any) -> Answer:
    """The answer to saving a batch."""
    return api.post("save-messages", {"messages": list(batch)})


def stored(api: Api, message: Json) -> Json:
    """Return a message of the list, and check that the save returned the same."""
    answer = post(api, message)
    assert answer.status == 200, answer.raw
    listed: Json = api.get(LIST).body["messages"][-1]
    assert answer.body["messages"] == [listed]
    return listed


def test_save__answers_what_was_stored(api: Api, thread: StoredThread) -> None:
    message = a_message(thread, "m1", at=5, role="assistant")
    assert stored(api, message) == message


def test_save__the_same_body_twice_makes_no_second_row(api: Api, thread: StoredThread) -> None:
    batch = some_messages(thread, 3)
    answers = [post(api, *batch) for _ in range(2)]
    assert [ids(answer) for answer in answers] == [["m0", "m1", "m2"]] * 2
    assert api.get(LIST).body["total"] == 3


def test_save__a_history_sent_again_keeps_its_first_times(api: Api, thread: StoredThread) -> None:
    first = post(api, a_message(thread, "u1"), a_message(thread, "a1")).body["messages"]
    turn = [a_message(thread, name, at=99) for name in ("u1", "a1", "u2")]
    again = post(api, *turn).body["messages"]
    assert api.get(LIST).body["total"] == 3
    times = {message["id"]: message["createdAt"] for message in first}
    for message in [*again, *api.get(LIST).body["messages"]]:
        if message["id"] in times:
            assert message["createdAt"] == times[message["id"]]


def test_save__equal_texts_under_fresh_ids_are_more_rows(api: Api, thread: StoredThread) -> None:
    for _ in range(2):
        post(api, *(a_message(thread, text="same", at=1) for _ in range(3)))
    assert texts(api.get(LIST)) == ["same"] * 6


def test_save__the_answer_has_the_same_time_as_the_list(api: Api, thread: StoredThread) -> None:
    post(api, a_message(thread, "m1", at=1))
    for again in (a_message(thread, "m1", at=2), a_message(thread, "m1")):
        assert stored(api, again)["createdAt"] == api_time(1)


def test_save__an_update_replaces_content_role_and_type(api: Api, thread: StoredThread) -> None:
    post(api, a_message(thread, "m1", at=1, text="old"), a_message(thread, "m2", at=1))
    new = a_message(thread, "m1", at=1, text="new", role="assistant", type="text")
    assert post(api, new).body["messages"] == [new]
    assert ids(api.get(LIST)) == ["m1", "m2"]
    assert api.get(LIST).body["messages"][0] == new
    assert Message.objects.get(pk="m1").text == "new"


def test_save__a_type_belongs_to_content_of_format_2(api: Api, thread: StoredThread) -> None:
    older: list[Json] = [
        {"content": "x"},
        {"content": [{"type": "text", "text": "x"}]},
        {"content": None, "parts": [{"type": "text", "text": "x"}]},
    ]
    for number, form in enumerate(older):
        assert "type" not in stored(api, a_message(thread, f"m{number}", type="text") | form)
    assert stored(api, a_message(thread, "v2", type="text"))["type"] == "text"


def test_save__sorted_by_time_with_ties_in_the_order_of_the_array(
    api: Api, thread: StoredThread
) -> None:
    moments = {"c": 3, "a1": 1, "b": 2, "a2": 1}
    answer = post(api, *(a_message(thread, name, at=at) for name, at in moments.items()))
    assert ids(answer) == ids(api.get(LIST)) == ["a1", "a2", "b", "c"]


def test_save__an_id_twice_in_one_batch_is_saved_once_as_last_given(
    api: Api, thread: StoredThread
) -> None:
    batch = [a_message(thread, name, text=text) for name, text in ("ax", "by", "az")]
    assert texts(post(api, *batch)) == texts(api.get(LIST)) == ["z", "y"]


@pytest.mark.parametrize("missing", ["", None, "absent"])
def test_save__an_id_is_made_where_none_is_given(
    api: Api, thread: StoredThread, missing: str | None
) -> None:
    message = a_message(thread) | {"id": missing}
    if missing == "absent":
        del message["id"]
    made = [stored(api, message)["id"] for _ in range(2)]
    assert made[0] != made[1] and len(made[0]) == 36


def test_save__a_batch_may_reach_several_threads(api: Api, thread: StoredThread) -> None:
    other = make_thread("s", "t2")
    answer = post(api, a_message(thread, "m1", at=2), a_message(other, "m2", at=1))
    assert ids(answer) == ["m2", "m1"]
    assert ids(api.get("threads/t2/messages")) == ["m2"]


def test_save__an_id_of_another_thread_of_the_resource_moves(
    api: Api, thread: StoredThread
) -> None:
    post(api, a_message(thread, "m1", at=1))
    other = make_thread("r", "t2")
    assert post(api, a_message(other, "m1", at=9, text="new")).body["messages"][0][
        "createdAt"
    ] == api_time(1)
    assert ids(api.get(LIST)) == [] and texts(api.get("threads/t2/messages")) == ["new"]


def test_save__an_id_of_another_resource_is_409_and_nothing_is_stored(
    api: Api, thread: StoredThread
) -> None:
    theirs = make_thread("s", "theirs")
    post(api, a_message(theirs, "taken", text="theirs"))
    answer = post(api, a_message(thread, "new"), a_message(thread, "taken", text="mine"))
    assert answer.status == 409
    assert "messages.1" in answer.body["error"] and "taken" in answer.body["error"]
    assert ids(api.get(LIST)) == [] and texts(api.get("threads/theirs/messages")) == ["theirs"]


def test_save__a_thread_of_another_resource_is_403(api: Api, thread: StoredThread) -> None:
    answer = post(api, a_message(thread, "m1") | {"resourceId": "s"})
    assert answer.status == 403
    assert not Message.objects.exists()


def test_save__two_resources_for_one_thread_are_400(api: Api, thread: StoredThread) -> None:
    batch = [a_message(thread, "m1"), a_message(thread, "m2") | {"resourceId": "s"}]
    assert fields_of(post(api, *batch)) == ["messages.1.resourceId"]
    assert not Message.objects.exists()


def test_save__an_unknown_thread_is_404_and_nothing_is_stored(
    api: Api, thread: StoredThread
) -> None:
    answer = post(api, a_message(thread, "m1"), a_message(thread, "m2") | {"threadId": "missing"})
    assert answer.status == 404 and "missing" in answer.body["error"]
    assert not Message.objects.exists()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"createdAt": "not-a-date"}, "createdAt"),
        ({"createdAt": "2024-02-30"}, "createdAt"),
        ({"createdAt": "2024-02-30T00:00:00Z"}, "createdAt"),
        ({"createdAt": "0000-01-01T00:00:00Z"}, "createdAt"),
        ({"createdAt": "10000-01-01T00:00:00Z"}, "createdAt"),
        ({"createdAt": "+020000-01-01T00:00:00.000Z"}, "createdAt"),
        ({"createdAt": "9999-12-31T23:59:59-01:00"}, "createdAt"),
        ({"createdAt": "0001-01-01T00:00:00+01:00"}, "createdAt"),
        ({"createdAt": "1704067201000"}, "createdAt"),
        ({"createdAt": True}, "createdAt"),
        ({"createdAt": {}}, "createdAt"),
        ({"createdAt": 1e300}, "createdAt"),
        ({"createdAt": 10**400}, "createdAt"),
        ({"createdAt": -(10**18)}, "createdAt"),
        ({"createdAt": 253402300800000}, "createdAt"),
        ({"role": "robot"}, "role"),
        ({"role": None}, "role"),
        ({"role": 5}, "role"),
        ({"role": []}, "role"),
        ({"content": None}, "content"),
        ({"content": 5}, "content"),
        ({"content": True}, "content"),
        ({"content": {}}, "content.parts"),
        ({"content": {"format": 3, "parts": []}}, "content.format"),
        ({"content": {"format": 2, "parts": "x"}}, "content.parts"),
        ({"content": {"format": 2, "parts": [5]}}, "content.parts.0"),
        ({"content": {"format": 2, "parts": [{"text": "x"}]}}, "content.parts.0"),
        ({"content": {"format": 2, "parts": [], "metadata": 5}}, "content.metadata"),
        ({"content": ["x"]}, "content.0"),
        ({"id": 5}, "id"),
        ({"id": "i" * 1025}, "id"),
        ({"id": "ü" * 513}, "id"),
        ({"type": 5}, "type"),
    ],
)
def test_save__one_bad_message_is_400_with_its_index_and_nothing_is_stored(
    api: Api, thread: StoredThread, change: Json, field: str
) -> None:
    bad = a_message(thread, "bad") | change
    answer = post(api, a_message(thread, "good"), bad, a_message(thread, "later"))
    assert fields_of(answer) == [f"messages.1.{field}"]
    assert not Message.objects.exists()
    assert Thread.objects.get(pk="t").updated_at == thread.updated_at


@pytest.mark.parametrize(
    "change",
    [{"threadId": ""}, {"threadId": None}, {"threadId": 0}, {"resourceId": ""}, {"resourceId": []}],
)
def test_save__every_message_names_thread_and_resource(
    api: Api, thread: StoredThread, change: Json
) -> None:
    answer = post(api, a_message(thread), a_message(thread) | change)
    assert fields_of(answer) == ["messages.1"]
    assert "All messages must have threadId and resourceId" in answer.body["error"]


@pytest.mark.parametrize("owner", [5, True, {"a": 1}, ["r"]])
@pytest.mark.parametrize("name", ["threadId", "resourceId"])
def test_save__an_owner_that_is_no_text_is_400(
    api: Api, thread: StoredThread, name: str, owner: Any
) -> None:
    assert fields_of(post(api, a_message(thread) | {name: owner})) == [f"messages.0.{name}"]


@pytest.mark.parametrize("batch", [{}, "x", 5, None, True])
def test_save__messages_must_be_a_list(api: Api, batch: Any) -> None:
    assert fields_of(api.post("save-messages", {"messages": batch})) == ["messages"]
    assert fields_of(api.post("save-messages", {})) == ["messages"]
    assert fields_of(api.post("save-messages", [])) == ["root"]


@pytest.mark.parametrize("item", [None, 5, "x", []])
def test_save__an_item_that_is_no_object_is_named(
    api: Api, thread: StoredThread, item: Any
) -> None:
    assert fields_of(post(api, a_message(thread), item)) == ["messages.1"]


def test_save__nothing_is_answered_with_nothing(api: Api) -> None:
    assert post(api).body == {"messages": []}


def test_save__system_messages_are_left_out(api: Api, thread: StoredThread) -> None:
    secret = a_message(thread, "sys", role="system", text="instructions")
    assert ids(post(api, secret, a_message(thread, "m1"))) == ["m1"]
    assert ids(post(api, secret)) == []
    assert ids(api.get(LIST)) == ["m1"]
    assert ids(api.get("threads", {"text": "instructions"})) == []
    clone = api.post("threads/t/clone").body["clonedMessages"]
    assert len(clone) == 1 and Message.objects.count() == 2


def test_save__a_scoped_caller_saves_only_their_own(alice: Person, bob: Person) -> None:
    mine, his = make_thread(alice.resource_id), make_thread(bob.resource_id)
    for message in (a_message(his), a_message(his) | {"resourceId": alice.resource_id}):
        assert post(alice.api, a_message(mine), message).status == 403
    assert not Message.objects.exists()
    assert post(alice.api, a_message(mine)).status == 200


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (1704067201123, "2024-01-01T00:00:01.123Z"),
        (1704067201123.9, "2024-01-01T00:00:01.123Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (0, "1970-01-01T00:00:00.000Z"),
        ("2024-01-01T00:00:01.123456Z", "2024-01-01T00:00:01.123Z"),
        ("2024-01-01T02:00:01+02:00", "2024-01-01T00:00:01.000Z"),
        ("2024-01-01T00:00:01", "2024-01-01T00:00:01.000Z"),
        ("2024-01-01", "2024-01-01T00:00:00.000Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
        ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
    ],
)
def test_save__times_are_stored_in_milliseconds(
    api: Api, thread: StoredThread, given: Any, shown: str
) -> None:
    assert stored(api, a_message(thread, "m1") | {"createdAt": given})["createdAt"] == shown


def test_save__far_times_keep_their_order(api: Api, thread: StoredThread) -> None:
    moments = {
        "future": "9999-12-31T23:59:59.999Z",
        "past": "0001-01-01T00:00:00Z",
        "later": 1704067201001.7,
        "epoch": 0,
        "sooner": 1704067201001.2,
    }
    post(api, *(a_message(thread, name) | {"createdAt": at} for name, at in moments.items()))
    post(api, a_message(thread, "now"))
    assert ids(api.get(LIST)) == ["past", "epoch", "later", "sooner", "now", "future"]


@pytest.mark.parametrize("empty", [None, ""])
def test_save__an_empty_time_is_now(api: Api, thread: StoredThread, empty: Any) -> None:
    shown = stored(api, a_message(thread) | {"createdAt": empty})["createdAt"]
    assert shown == api.get("threads/t").body["updatedAt"]


def test_save__metadata_survives_in_every_form(api: Api, thread: StoredThread) -> None:
    metadata = {"k": [1, {"a": None}]}
    forms: dict[str, Json] = {
        "v2": {"content": text_content("x", metadata=metadata)},
        "core": {"content": "x", "metadata": metadata},
        "core parts": {"content": [{"type": "text", "text": "x"}], "metadata": metadata},
        "ui": {"content": None, "parts": [{"type": "text", "text": "x"}], "metadata": metadata},
        "ui content": {"content": {"parts": [{"type": "text", "text": "x"}], "metadata": metadata}},
    }
    for name, form in forms.items():
        content = stored(api, a_message(thread, name) | form)["content"]
        assert content["metadata"] == metadata, name
        assert content["parts"] == [{"type": "text", "text": "x"}], name


def test_save__parts_of_any_type_come_back_key_for_key(api: Api, thread: StoredThread) -> None:
    call = {"state": "call", "toolCallId": "c", "toolName": "f", "args": {"a": [1.5, None, True]}}
    parts = [
        {"type": "text", "text": "  kept as sent \n", "providerMetadata": {"x": {"y": 1}}},
        {"type": "reasoning", "reasoning": "why", "details": [{"type": "text", "text": "why"}]},
        {"type": "file", "data": "https://example.org/a.png", "mimeType": "image/png"},
        {"type": "source", "source": {"id": "s", "url": "https://example.org"}},
        {"type": "step-start", "createdAt": 1704067200000},
        {"type": "tool-invocation", "toolInvocation": call | {"state": "result", "result": None}},
        {"type": "tool-invocation", "toolInvocation": call, "providerExecuted": False},
        {"type": "data-tool-call-suspended", "data": {"runId": "r", "deep": [[{}]]}},
        {"type": "x-unknown", "extra": {"ü": "☃"}, "text": 5},
    ]
    content = {"format": 2, "parts": parts, "annotations": [], "reasoning": "", "x": {"y": 0}}
    message = a_message(thread, "m1", at=1, content=content, role="assistant")
    assert stored(api, message) == message
    assert api.get(LIST).body["messages"] == [message]
