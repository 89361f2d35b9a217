"""Where we answer otherwise than Mastra on purpose: one test for each case."""

from collections.abc import Callable
from typing import Any

import pytest

from mastra_memory.memory import Memory
from mastra_memory.models import Message, Thread
from mastra_memory.types import StoredThread
from tests.conftest import Person
from tests.support.api_client import Api, fields_of, ids, texts
from tests.support.concurrency import concurrently
from tests.support.factories import (
    a_message,
    api_time,
    make_record,
    make_thread,
    make_user,
    save,
    some_messages,
)

LIST = "threads/t/messages"
WM = {"workingMemory": {"enabled": True}}


@pytest.fixture
def thread(db: None, memory_settings: Callable[..., None]) -> StoredThread:
    """A thread `t` of r, of messages m0 … m4."""
    memory_settings(OPTIONS=WM | {"observationalMemory": True})
    made = make_thread("r", "t", title="Trip", metadata={"k": 1})
    save(some_messages(made, 5))
    return made


def post(api: Api, *batch: Any) -> Any:
    """The answer to saving a batch."""
    return api.post("save-messages", {"messages": list(batch)})


def test_create__an_existing_id_is_never_taken_over(api: Api, thread: StoredThread) -> None:
    before = api.get("threads/t").body
    same = {"resourceId": "r", "threadId": "t", "title": "New"}
    assert api.post("threads", same).body == before
    assert api.post("threads", same | {"resourceId": "thief"}).status == 409
    assert api.get("threads/t").body == before and len(ids(api.get(LIST))) == 5


def test_save__an_existing_id_stays_with_its_resource(api: Api, thread: StoredThread) -> None:
    again = post(api, a_message(thread, "m0", at=99, text="again")).body["messages"]
    assert again[0]["createdAt"] == api_time(0) and texts(api.get(LIST))[0] == "again"
    assert post(api, a_message(make_thread("r", "t2"), "m0")).status == 200
    assert ids(api.get("threads/t2/messages")) == ["m0"]
    answer = post(api, a_message(make_thread("s", "t3"), "new"), a_message(make_thread("s"), "m1"))
    assert answer.status == 409 and "messages.1" in answer.body["error"]
    assert "m1" in answer.body["error"] and ids(api.get("threads/t3/messages")) == []


def test_patch__metadata_is_replaced_but_working_memory_stays(
    api: Api, thread: StoredThread
) -> None:
    api.patch("threads/t", {"metadata": {"workingMemory": "# this"}})
    assert api.get("threads/t").body["metadata"] == {"workingMemory": "# this"}
    replaced = api.patch("threads/t", {"metadata": {"new": 1}}).body
    assert replaced["metadata"] == {"new": 1, "workingMemory": "# this"}


def test_patch__merging_on_demand(api: Api, thread: StoredThread) -> None:
    merge = {"metadataMode": "merge"}
    merged = api.patch("threads/t", {"metadata": {"b": {"c": 1}}}, merge).body["metadata"]
    assert merged == {"k": 1, "b": {"c": 1}}
    assert Memory().update_thread("t", metadata={"d": 2}).metadata == merged | {"d": 2}
    for odd in ("Merge", "x", ""):
        answer = api.patch("threads/t", {"metadata": {}}, {"metadataMode": odd})
        assert answer.status == (400 if odd else 200)


@pytest.mark.django_db(transaction=True)
def test_patch__merging_in_parallel_loses_nothing() -> None:
    make_thread("r", "t")
    boss = make_user("boss", unscoped=True)

    def patch(number: int) -> int:
        body = {"metadata": {f"k{number}": number}}
        return Api(boss).patch("threads/t", body, {"metadataMode": "merge"}).status

    assert set(concurrently(patch, list(range(8)))) == {200}
    assert Memory().get_thread("t").metadata == {f"k{number}": number for number in range(8)}


def test_patch__reserved_keys_stay_unless_named(api: Api) -> None:
    reserved = {"clone": {"sourceThreadId": "x"}, "mastra": {"om": {}}, "titlePinned": True}
    make_thread("r", "t", metadata=reserved | {"gone": 1})
    assert api.patch("threads/t", {"metadata": {}}).body["metadata"] == reserved
    named = api.patch("threads/t", {"metadata": {"mastra": 5}}).body["metadata"]
    assert named == reserved | {"mastra": 5}


def test_clone__the_sources_metadata_is_merged(api: Api, thread: StoredThread) -> None:
    made = api.post("threads/t/clone", {"metadata": {"z": 2}}).body["thread"]["metadata"]
    assert made.pop("clone") and made == {"k": 1, "z": 2}


def test_list__descends_when_asked_to(api: Api, thread: StoredThread) -> None:
    down = {"perPage": 2, "orderBy[direction]": "DESC"}
    storage = api.through(None)
    assert ids(api.get(LIST, down)) == ids(storage.get(LIST, down)) == ["m4", "m3"]
    assert ids(api.get(LIST, {"perPage": 2})) == ["m3", "m4"]
    assert ids(storage.get(LIST, {"perPage": 2})) == ["m0", "m1"]
    recalled = Memory().recall("t", per_page=2, direction="DESC").messages
    assert [message.id for message in recalled] == ["m3", "m4"]


def test_resource__another_than_the_threads_is_403_everywhere(
    api: Api, thread: StoredThread
) -> None:
    make_record(thread)
    other = {"resourceId": "other"}
    wait = {"agentId": "a", "threadId": "t"}
    answers = [
        api.patch("threads/t", other),
        api.post("threads/t/clone", other),
        api.get("observational-memory", other | {"threadId": "t"}),
        api.post("observational-memory/buffer-status", other | wait),
        api.post("messages/delete", {"messageIds": ["m0"]}, other),
        api.get("threads/t", other),
        api.delete("threads/t", other),
        api.get(LIST, other),
    ]
    assert {answer.status for answer in answers} == {403}
    assert Memory().clone_thread("t", resource_id="other").thread.resource_id == "other"


def test_resource__a_scoped_callers_own_stands_in(alice: Person, thread: StoredThread) -> None:
    named = {"resourceId": "r"}
    made = alice.api.post("threads", named | {"threadId": "mine"}).body
    assert made["resourceId"] == alice.resource_id
    assert ids(alice.api.get("threads", named)) == ["mine"]
    found = alice.api.get("search", named | {"searchQuery": "message"}).body
    assert found["results"] == []


def test_save__answers_by_time_and_keeps_text_as_sent(api: Api, thread: StoredThread) -> None:
    batch = [a_message(thread, name, at=at, text="  x \n") for name, at in (("b", 9), ("a", 8))]
    tied = [a_message(thread, name, at=8) for name in ("c", "d")]
    answer = post(api, *batch, *tied)
    assert ids(answer) == ["a", "c", "d", "b"] and texts(answer)[0] == "  x \n"
    tagged = a_message(thread, text="hi <working_memory>x</working_memory> you")
    assert texts(post(api, tagged)) == ["hi  you"]


def test_save__one_bad_message_refuses_the_batch(api: Api, thread: StoredThread) -> None:
    answer = post(api, a_message(thread, "new"), a_message(thread) | {"content": 5})
    assert fields_of(answer) == ["messages.1.content"]
    assert not Message.objects.filter(pk="new").exists()


def test_bad_input__is_400_or_409_where_mastra_fails(api: Api, thread: StoredThread) -> None:
    assert post(api, a_message(thread) | {"createdAt": "never"}).status == 400
    assert api.get("threads", {"metadata": {"a-b": 1}}).status == 400
    assert api.post("threads/t/clone", {"newThreadId": "t"}).status == 409


def test_order__equal_times_keep_the_order_of_the_array(api: Api) -> None:
    thread = make_thread("r", "t")
    names = [f"{n}" for n in (3, 1, 2, 0)]
    post(api, *(a_message(thread, name, at=0) for name in names))
    assert ids(api.get(LIST)) == ids(api.get(LIST, {"include": [{"id": "0"}]})) == names
    limited = api.post("threads/t/clone", {"options": {"messageLimit": 2}}).body
    assert list(limited["messageIdMap"]) == ["2", "0"]


def test_list__include_and_roles_are_honoured(api: Api, thread: StoredThread) -> None:
    assert ids(api.get(LIST, {"perPage": 1, "include": [{"id": "m1"}]})) == ["m1", "m4"]
    answer = api.get(LIST, {"filter": {"roles": ["assistant"]}})
    assert ids(answer) == ["m1", "m3"] and answer.body["total"] == 2


def test_roles__system_is_dropped_and_unknown_ones_are_400(api: Api, thread: StoredThread) -> None:
    kept = [a_message(thread, role, role=role) for role in ("user", "assistant", "tool", "signal")]
    assert ids(post(api, a_message(thread, role="system"), *kept)) == [m["id"] for m in kept]
    assert fields_of(post(api, a_message(thread, role="developer"))) == ["messages.0.role"]


@pytest.mark.parametrize("odd", ["\x00", "\ud800"])
def test_text__what_no_database_holds_becomes_one_character(api: Api, odd: str) -> None:
    body = {"resourceId": f"r{odd}", "threadId": f"t{odd}", "title": odd, "metadata": {odd: odd}}
    made = api.post("threads", body).body
    assert (made["resourceId"], made["id"], made["title"]) == ("r\ufffd", "t\ufffd", "\ufffd")
    assert made["metadata"] == {"\ufffd": "\ufffd"}
    message = a_message(make_thread("r\ufffd", "t\ufffd"), f"m{odd}", text=odd, type=odd)
    (saved,) = post(api, message).body["messages"]
    assert (saved["id"], saved["type"]) == ("m\ufffd", "\ufffd")
    assert saved["content"]["parts"][0]["text"] == "\ufffd"
    api.post("threads/t%EF%BF%BD/working-memory", {"workingMemory": odd, **SCOPE})
    assert api.get("threads/t%EF%BF%BD").body["metadata"]["workingMemory"] == "\ufffd"


SCOPE = {"memoryConfig": {"workingMemory": {"enabled": True, "scope": "thread"}}}


def test_delete__returns_the_true_count(api: Api, thread: StoredThread) -> None:
    text = api.post("messages/delete", {"messageIds": ["m0", "missing"]}).body["message"]
    assert text == "1 message deleted successfully"


def test_search__without_vectors_is_by_words(api: Api, thread: StoredThread) -> None:
    save([a_message(thread, "found", text="a lighthouse")])

    def found(words: str) -> list[str]:
        query = {"searchQuery": words, "resourceId": "r"}
        return [hit["id"] for hit in api.get("search", query).body["results"]]

    assert found("lighthouse") == ["found"] and found("zebra") == []


def test_working_memory__undefined_means_the_threads_own_resource(
    api: Api, thread: StoredThread
) -> None:
    path = "threads/t/working-memory"
    api.post(path, {"workingMemory": "# me"})
    for query in ({"resourceId": "undefined"}, {}):
        assert api.get(path, query).body["workingMemory"] == "# me"
        assert api.get("threads/missing/working-memory", query).status == 400


def test_access__is_closed_unless_something_opens_it(thread: StoredThread) -> None:
    for path in ("threads", "threads/t", LIST, "status", "config"):
        assert Api().get(path).status == 401
    assert Thread.objects.count() == 1
