"""Threads over HTTP: create, read, change, delete, transfer."""

from typing import Any
from urllib.parse import quote

import pytest

from mastra_memory.models import Message, Thread
from tests.conftest import Person
from tests.support.api_client import Api, fields_of, ids
from tests.support.factories import a_message, make_record, make_thread, save, some_messages

IDS = ["a/b", "a b", "ü☃", "a?b", "a#b", "%2e", "..", "a\nb", "a+b&c=d", "'; --", "i" * 300]
NEW = "new-thread"


def test_create__answers_the_whole_thread(api: Api) -> None:
    body = {"resourceId": "r", "threadId": NEW, "title": "Trip", "metadata": {"n": 1.5}}
    answer = api.post("threads", body)
    assert answer.status == 200
    moment = answer.body["createdAt"]
    assert answer.body == {
        "id": NEW,
        "resourceId": "r",
        "title": "Trip",
        "metadata": {"n": 1.5},
        "createdAt": moment,
        "updatedAt": moment,
    }
    assert api.get(f"threads/{NEW}").body == answer.body


def test_create__without_metadata_the_key_is_absent_and_null_when_read(api: Api) -> None:
    made = api.post("threads", {"resourceId": "r"}).body
    assert "metadata" not in made and made["title"] == ""
    assert api.get(f"threads/{made['id']}").body == made | {"metadata": None}


@pytest.mark.parametrize("empty", [{}, {"threadId": ""}])
def test_create__an_id_is_made_where_none_is_given(api: Api, empty: dict[str, Any]) -> None:
    first, second = (api.post("threads", {"resourceId": "r"} | empty).body["id"] for _ in "12")
    assert first != second and len(first) == 36


def test_create__an_existing_id_of_the_same_resource_comes_back_unchanged(api: Api) -> None:
    thread = make_thread("r", title="Kept", metadata={"k": 1})
    before = api.get(f"threads/{thread.id}").body
    body = {"resourceId": "r", "threadId": thread.id, "title": "New", "metadata": {}}
    assert api.post("threads", body).body == before
    assert api.get(f"threads/{thread.id}").body == before


def test_create__an_existing_id_of_another_resource_is_409_and_changes_nothing(api: Api) -> None:
    thread = make_thread("r", title="Kept", metadata={"k": 1})
    save([a_message(thread, "m1")])
    before = api.get(f"threads/{thread.id}").body
    answer = api.post("threads", {"resourceId": "thief", "threadId": thread.id, "title": "Mine"})
    assert answer.status == 409
    assert "Kept" not in str(answer.body)
    assert api.get(f"threads/{thread.id}").body == before
    assert Message.objects.get(pk="m1").resource_id == "r"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "resourceId"),
        ({"resourceId": None}, "resourceId"),
        ({"resourceId": ""}, "resourceId"),
        ({"resourceId": 5}, "resourceId"),
        ({"resourceId": "r" * 1025}, "resourceId"),
        ({"resourceId": "r", "threadId": 5}, "threadId"),
        ({"resourceId": "r", "threadId": "ü" * 513}, "threadId"),
        ({"resourceId": "r", "title": None}, "title"),
        ({"resourceId": "r", "title": {}}, "title"),
        ({"resourceId": "r", "metadata": []}, "metadata"),
        ({"resourceId": "r", "metadata": None}, "metadata"),
        ({"resourceId": "r", "metadata": "x"}, "metadata"),
        ([], "root"),
        ("x", "root"),
        (5, "root"),
    ],
)
def test_create__bad_bodies_are_400_and_name_the_field(api: Api, body: Any, field: str) -> None:
    assert fields_of(api.post("threads", body)) == [field]
    assert not Thread.objects.exists()


@pytest.mark.parametrize("thread_id", IDS)
def test_ids__any_text_works_in_an_encoded_path(api: Api, thread_id: str) -> None:
    made = api.post("threads", {"resourceId": "r", "threadId": thread_id})
    assert made.body["id"] == thread_id
    path = f"threads/{quote(thread_id, safe='')}"
    assert api.get(path).body["id"] == thread_id
    assert ids(api.get("threads")) == [thread_id]
    assert api.patch(path, {"title": "T"}).body["title"] == "T"
    message = {"id": thread_id, "threadId": thread_id, "resourceId": "r", "role": "user"}
    assert api.post("save-messages", {"messages": [message | {"content": "x"}]}).status == 200
    assert ids(api.get(f"{path}/messages")) == [thread_id]
    assert api.post(f"{path}/clone").body["thread"]["resourceId"] == "r"
    assert api.post("messages/delete", {"messageIds": thread_id}).body["message"].startswith("1 ")
    assert api.delete(path).status == 200
    assert api.get(path).status == 404


def test_get__a_resource_that_does_not_own_it_is_403(api: Api) -> None:
    thread = make_thread("r", title="Secret")
    assert api.get(f"threads/{thread.id}", {"resourceId": "r"}).status == 200
    refused = api.get(f"threads/{thread.id}", {"resourceId": "other"})
    assert refused.status == 403
    assert "Secret" not in str(refused.body)


def test_get__an_unknown_thread_is_404(api: Api) -> None:
    answer = api.get("threads/missing")
    assert (answer.status, answer.body) == (404, {"error": "Thread not found"})


def test_update__changes_what_is_given_and_moves_the_time(api: Api) -> None:
    thread = make_thread("r", title="Old", metadata={"a": 1})
    path = f"threads/{thread.id}"
    before = api.get(path).body
    titled = api.patch(path, {"title": "New"}).body
    assert titled == before | {"title": "New", "updatedAt": titled["updatedAt"]}
    assert titled["updatedAt"] > before["updatedAt"]
    emptied = api.patch(path).body
    assert emptied == titled | {"updatedAt": emptied["updatedAt"]}
    assert api.patch(path, {"title": ""}).body["title"] == ""
    assert api.get(path).body["createdAt"] == before["createdAt"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"title": 3}, "title"),
        ({"title": None}, "title"),
        ({"metadata": "x"}, "metadata"),
        ({"metadata": None}, "metadata"),
        ({"resourceId": 5}, "resourceId"),
        ([], "root"),
    ],
)
def test_update__bad_bodies_are_400_and_change_nothing(api: Api, body: Any, field: str) -> None:
    thread = make_thread("r", title="Old")
    before = api.get(f"threads/{thread.id}").body
    assert fields_of(api.patch(f"threads/{thread.id}", body)) == [field]
    assert api.get(f"threads/{thread.id}").body == before


def test_update__another_resource_in_the_body_is_403(api: Api) -> None:
    thread = make_thread("r", title="Old")
    path = f"threads/{thread.id}"
    assert api.patch(path, {"title": "New", "resourceId": "other"}).status == 403
    assert api.get(path).body["title"] == "Old"
    assert api.patch(path, {"title": "New", "resourceId": "r"}).status == 200


def test_delete__takes_everything_that_hangs_on_the_thread(api: Api) -> None:
    thread, other = make_thread("r"), make_thread("r")
    save([a_message(thread, "gone"), a_message(other, "stays")])
    record = make_record(thread)
    assert api.delete(f"threads/{thread.id}").body == {"result": "Thread deleted"}
    assert list(Message.objects.values_list("pk", flat=True)) == ["stays"]
    assert not type(record).objects.exists()
    assert api.delete(f"threads/{thread.id}").status == 404
    assert api.get(f"threads/{thread.id}/messages").status == 404


def test_delete__another_resource_in_the_query_is_403(api: Api) -> None:
    thread = make_thread("r")
    assert api.delete(f"threads/{thread.id}", {"resourceId": "other"}).status == 403
    assert api.get(f"threads/{thread.id}").status == 200


def test_transfer__moves_thread_messages_and_observations(api: Api, bob: Person) -> None:
    thread = make_thread("alice", title="Trip", metadata={"k": 1})
    save(some_messages(thread, 3))
    record = make_record(thread)
    before = api.get(f"threads/{thread.id}").body
    messages = api.get(f"threads/{thread.id}/messages").body["messages"]
    moved = api.post(f"threads/{thread.id}/transfer", {"resourceId": bob.resource_id}).body
    owner = {"resourceId": bob.resource_id}
    assert moved == before | owner | {"updatedAt": moved["updatedAt"]}
    assert moved["updatedAt"] > before["updatedAt"]
    seen = bob.api.get(f"threads/{thread.id}/messages").body["messages"]
    assert seen == [message | owner for message in messages]
    record.refresh_from_db()
    assert record.resource_id == bob.resource_id


def test_transfer__to_the_same_resource_changes_nothing(api: Api) -> None:
    thread = make_thread("r")
    before = api.get(f"threads/{thread.id}").body
    assert api.post(f"threads/{thread.id}/transfer", {"resourceId": "r"}).body == before


@pytest.mark.parametrize("body", [None, {}, {"resourceId": ""}, {"resourceId": 5}, []])
def test_transfer__needs_a_resource(api: Api, body: Any) -> None:
    thread = make_thread("r")
    assert api.post(f"threads/{thread.id}/transfer", body).status == 400
    assert api.post("threads/missing/transfer", {"resourceId": "s"}).status == 404


def test_transfer__a_scoped_caller_is_refused(alice: Person) -> None:
    thread = make_thread(alice.resource_id)
    answer = alice.api.post(f"threads/{thread.id}/transfer", {"resourceId": "other"})
    assert answer.status == 403
    assert Thread.objects.get().resource_id == alice.resource_id
