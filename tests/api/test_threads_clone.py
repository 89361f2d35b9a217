"""Cloning over HTTP."""

from typing import Any

import pytest

from mastra_memory.models import Message, Thread
from tests.conftest import Person
from tests.support.api_client import Api, fields_of, texts
from tests.support.factories import a_message, api_time, make_thread, save, some_messages


def source_of_five(**fields: Any) -> str:
    """A thread `source` of five messages."""
    thread = make_thread("r", "source", **fields)
    save(some_messages(thread, 5))
    return thread.id


def cloned(api: Api, **body: Any) -> Any:
    """The answer to cloning `source`."""
    answer = api.post("threads/source/clone", body)
    assert answer.status == 200, answer.raw
    return answer.body


def test_clone__answers_thread_messages_and_the_map_of_ids(api: Api) -> None:
    source_of_five(title="Trip", metadata={"k": 1})
    body = cloned(api, newThreadId="copy", metadata={"z": 2})
    moment = body["thread"]["createdAt"]
    origin = body["thread"]["metadata"].pop("clone")
    assert body["thread"] == {
        "id": "copy",
        "resourceId": "r",
        "title": "Clone of Trip",
        "metadata": {"k": 1, "z": 2},
        "createdAt": moment,
        "updatedAt": moment,
    }
    assert origin == {"sourceThreadId": "source", "lastMessageId": "m4"} | {
        "clonedAt": origin["clonedAt"]
    }
    originals = api.get("threads/source/messages").body["messages"]
    assert body["messageIdMap"].keys() == {message["id"] for message in originals}
    assert body["clonedMessages"] == [
        message | {"id": body["messageIdMap"][message["id"]], "threadId": "copy"}
        for message in originals
    ]
    assert api.get("threads/copy/messages").body["messages"] == body["clonedMessages"]


def test_clone__the_copy_is_independent_of_its_source(api: Api) -> None:
    source_of_five()
    cloned(api, newThreadId="copy")
    api.delete("threads/source")
    assert len(texts(api.get("threads/copy/messages"))) == 5
    assert api.get("threads/copy").body["metadata"]["clone"]["sourceThreadId"] == "source"


def test_clone__without_body_or_agent_options(api: Api) -> None:
    source_of_five()
    assert len(api.post("threads/source/clone").body["clonedMessages"]) == 5


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({}, "01234"),
        ({"messageLimit": 2}, "34"),
        ({"messageLimit": 0}, "01234"),
        ({"messageLimit": -1}, "01234"),
        ({"messageLimit": 99}, "01234"),
        ({"messageFilter": {"endDate": api_time(2)}}, "012"),
        ({"messageFilter": {"startDate": api_time(2)}}, "234"),
        ({"messageFilter": {"startDate": api_time(1), "endDate": api_time(3)}}, "123"),
        ({"messageFilter": {"endDate": api_time(2)}, "messageLimit": 2}, "12"),
        ({"messageFilter": {"startDate": None, "endDate": None}}, "01234"),
        ({"messageFilter": {"startDate": 1704067203000}}, "34"),
        ({"messageFilter": {"messageIds": ["m3", "m1", "foreign", "zzz"]}}, "13"),
        ({"messageFilter": {"messageIds": []}}, "01234"),
        ({"messageFilter": {"messageIds": ["m0", "m4"], "startDate": api_time(1)}}, "4"),
        ({"messageFilter": {"startDate": api_time(99)}}, ""),
    ],
)
def test_clone__options_choose_messages(api: Api, options: Any, kept: str) -> None:
    source_of_five()
    save([a_message(make_thread("r"), "foreign", at=2)])
    body = cloned(api, options=options)
    assert list(body["messageIdMap"]) == [f"m{number}" for number in kept]
    assert [m["content"]["parts"][0]["text"][-1] for m in body["clonedMessages"]] == list(kept)
    assert body["thread"]["metadata"]["clone"].get("lastMessageId") == (
        f"m{kept[-1]}" if kept else None
    )


@pytest.mark.parametrize(
    ("title", "given", "expected"),
    [
        ("Trip", {}, "Clone of Trip"),
        ("Clone of Trip", {}, "Clone of Clone of Trip"),
        ("", {}, ""),
        ("Trip", {"title": ""}, "Clone of Trip"),
        ("Trip", {"title": "Mine"}, "Mine"),
    ],
)
def test_clone__title(api: Api, title: str, given: dict[str, str], expected: str) -> None:
    source_of_five(title=title)
    assert cloned(api, **given)["thread"]["title"] == expected


def test_clone__the_callers_clone_key_is_overwritten(api: Api) -> None:
    source_of_five()
    body = cloned(api, metadata={"clone": {"sourceThreadId": "lie"}, "k": 1})
    assert body["thread"]["metadata"]["clone"]["sourceThreadId"] == "source"
    assert body["thread"]["metadata"]["k"] == 1


def test_clone__an_unknown_source_is_404(api: Api) -> None:
    answer = api.post("threads/missing/clone")
    assert (answer.status, answer.body) == (404, {"error": "Source thread not found"})


@pytest.mark.parametrize("taken", ["source", "other"])
def test_clone__a_taken_id_is_409_and_nothing_is_written(api: Api, taken: str) -> None:
    source_of_five()
    make_thread("s", "other", title="Kept")
    assert api.post("threads/source/clone", {"newThreadId": taken}).status == 409
    assert Thread.objects.count() == 2 and Message.objects.count() == 5
    assert api.get("threads/other").body["title"] == "Kept"


def test_clone__another_resource_is_403_over_http(api: Api) -> None:
    source_of_five()
    assert api.post("threads/source/clone", {"resourceId": "s"}).status == 403
    assert Thread.objects.count() == 1
    assert cloned(api, resourceId="r")["thread"]["resourceId"] == "r"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"newThreadId": None}, "newThreadId"),
        ({"newThreadId": 5}, "newThreadId"),
        ({"newThreadId": "i" * 1025}, "newThreadId"),
        ({"title": None}, "title"),
        ({"metadata": None}, "metadata"),
        ({"metadata": []}, "metadata"),
        ({"options": None}, "options"),
        ({"options": []}, "options"),
        ({"options": {"messageLimit": 1.5}}, "options.messageLimit"),
        ({"options": {"messageLimit": "2"}}, "options.messageLimit"),
        ({"options": {"messageLimit": True}}, "options.messageLimit"),
        ({"options": {"messageFilter": []}}, "options.messageFilter"),
        ({"options": {"messageFilter": {"startDate": "x"}}}, "options.messageFilter.startDate"),
        ({"options": {"messageFilter": {"endDate": True}}}, "options.messageFilter.endDate"),
        ({"options": {"messageFilter": {"messageIds": "m1"}}}, "options.messageFilter.messageIds"),
        (
            {"options": {"messageFilter": {"messageIds": ["m1", 5]}}},
            "options.messageFilter.messageIds.1",
        ),
        ([], "root"),
    ],
)
def test_clone__bad_bodies_are_400_and_name_the_field(api: Api, body: Any, field: str) -> None:
    source_of_five()
    assert fields_of(api.post("threads/source/clone", body)) == [field]
    assert Thread.objects.count() == 1


def test_clone__a_scoped_caller_gets_a_thread_of_their_own(alice: Person, bob: Person) -> None:
    mine, his = make_thread(alice.resource_id), make_thread(bob.resource_id)
    made = alice.api.post(f"threads/{mine.id}/clone").body["thread"]
    assert made["resourceId"] == alice.resource_id
    assert alice.api.post(f"threads/{his.id}/clone").status == 403
    assert Thread.objects.filter(resource_id=bob.resource_id).count() == 1
