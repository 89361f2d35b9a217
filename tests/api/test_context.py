"""What goes in front of a model, over HTTP."""

from collections.abc import Callable
from typing import Any

import pytest

from mastra_memory.memory import Memory
from tests.conftest import Person
from tests.support.api_client import Api, fields_of
from tests.support.factories import (
    a_message,
    fill,
    make_record,
    make_thread,
    moment,
    save,
    text_content,
)

PATH = "threads/t/context"


@pytest.fixture(autouse=True)
def agents(memory_settings: Callable[..., None]) -> None:
    options = {
        "lastMessages": 2,
        "workingMemory": {"enabled": True},
        "semanticRecall": {"topK": 1, "messageRange": 0, "threshold": 0.3},
    }
    memory_settings(OPTIONS=options, MAX_PER_PAGE=5)


def test_get__everything_an_agent_needs(api: Api) -> None:
    thread = make_thread("r", "t")
    save([a_message(thread, f"m{n}", text=f"Message {n}", at=n) for n in range(4)])
    api.post("threads/t/working-memory", {"workingMemory": "name: Ann"})
    body = api.get(PATH, {"query": "hello world"}).body
    new = body["messages"][-1]
    assert [one["id"] for one in body["messages"]] == ["m2", "m3", new["id"]]
    assert (new["role"], new["content"]["parts"][0]["text"]) == ("user", "hello world")
    assert "name: Ann" in body["systemMessage"]
    kinds = [block["kind"] for block in body["blocks"]]
    assert kinds == ["workingMemory", "history", "new"]
    assert body["blocks"][1]["messageIds"] == ["m2", "m3"]
    assert body["tokens"] == 24 + sum(block["tokens"] for block in body["blocks"])
    assert (body["threadId"], body["resourceId"]) == ("t", "r")
    assert (body["hasObservations"], body["omRecord"]) == (False, None)


def test_post__takes_messages_in_every_form(api: Api) -> None:
    make_thread("r", "t")
    new = ["One", {"id": "n2", "role": "user", "content": text_content("Two")}]
    body = api.post(PATH, {"newMessages": new}).body
    assert [one["content"]["parts"][0]["text"] for one in body["messages"]] == ["One", "Two"]
    same = api.get(PATH, {"newMessages": new[1:]}).body
    assert [one["id"] for one in same["messages"]] == ["n2"]


def test_get__recalls_from_other_conversations_of_the_same_resource(api: Api) -> None:
    make_thread("r", "t")
    other = make_thread("r", "o")
    Memory().save_messages([a_message(other, text="My cat is called Mimi")])
    body = api.get(PATH, {"query": "What is the name of my cat?"}).body
    assert "Mimi" in body["systemMessage"]


def test_get__observations(api: Api, memory_settings: Callable[..., None]) -> None:
    memory_settings(OPTIONS={"observationalMemory": True})
    thread = make_thread("r", "t")
    save([a_message(thread, f"m{n}", at=n) for n in range(3)])
    make_record(thread, active_observations="* noted", last_observed_at=moment(1))
    body = api.get(PATH).body
    assert [one["id"] for one in body["messages"]] == ["om-continuation", "m2"]
    assert body["hasObservations"] is True and "* noted" in body["systemMessage"]
    assert body["omRecord"]["activeObservations"] == "* noted"


def test_get__options_of_one_call(api: Api) -> None:
    fill(make_thread("r", "t"), 9)
    config = {"lastMessages": 7, "workingMemory": {"enabled": False}}
    body = api.get(PATH, {"memoryConfig": config}).body
    assert len(body["messages"]) == 7 and body["systemMessage"] is None
    assert len(api.post(PATH, {"memoryConfig": config}).body["messages"]) == 7


def test_get__a_scoped_caller_reads_at_most_a_page(alice: Person) -> None:
    fill(make_thread(alice.resource_id, "t"), 20)
    body = alice.api.get(PATH, {"memoryConfig": {"lastMessages": 1000}}).body
    assert len(body["messages"]) == 5


def test_get__a_scoped_caller_recalls_at_most_a_page(alice: Person) -> None:
    other = make_thread(alice.resource_id, "other")
    messages = [a_message(other, f"o{n}", text=f"Tea number {n}.", at=n) for n in range(20)]
    Memory().save_messages(messages)
    make_thread(alice.resource_id, "t")
    wide = {"topK": 10**6, "messageRange": 10**6, "threshold": 0}
    config = {"semanticRecall": wide, "lastMessages": False}
    text = alice.api.get(PATH, {"query": "tea", "memoryConfig": config}).body["systemMessage"]
    assert 1 <= sum(f"Tea number {n}." in text for n in range(20)) <= 5


def test_get__a_thread_that_does_not_exist_yet(api: Api, alice: Person) -> None:
    assert api.get("threads/new/context", {"query": "Hi"}).status == 404
    named = api.get("threads/new/context", {"query": "Hi", "resourceId": "r"})
    assert (named.status, named.body["resourceId"]) == (200, "r")
    own = alice.api.get("threads/new/context", {"query": "Hi"})
    assert (own.status, own.body["resourceId"]) == (200, alice.resource_id)


def test_any__of_another_resource_is_403(alice: Person, bob: Person) -> None:
    thread = make_thread(alice.resource_id, "t")
    save([a_message(thread, text="SECRET")])
    for answer in (bob.api.get(PATH, {"query": "SECRET"}), bob.api.post(PATH, {})):
        assert answer.status == 403 and b"SECRET" not in answer.raw
    assert alice.api.get(PATH, {"resourceId": bob.resource_id}).status == 200


@pytest.mark.parametrize("given", ["5", '"x"', "{}", "null", "[", ""])
def test_get__new_messages_that_are_no_list_are_400(api: Api, given: str) -> None:
    make_thread("r", "t")
    assert fields_of(api.get(PATH, {"newMessages": given})) == ["newMessages"]


@pytest.mark.parametrize(
    "faulty", [5, None, [], {"role": "robot", "content": "x"}, {"role": "user"}]
)
def test_post__a_faulty_message_is_400(api: Api, faulty: Any) -> None:
    make_thread("r", "t")
    for answer in (
        api.post(PATH, {"newMessages": ["fine", faulty]}),
        api.get(PATH, {"newMessages": ["fine", faulty]}),
    ):
        assert answer.status == 400
        assert answer.body["issues"][0]["field"].startswith("messages.1"), answer.body


def test_post__a_message_of_another_thread_is_400(api: Api) -> None:
    make_thread("r", "t")
    message = {"role": "user", "content": "x", "threadId": "other"}
    assert api.post(PATH, {"newMessages": [message]}).status == 400


def test_any__an_agent_is_needed(api: Api) -> None:
    make_thread("r", "t")
    without_agent = api.through(None)
    assert fields_of(without_agent.get(PATH)) == ["agentId"]
    assert fields_of(without_agent.post(PATH, {})) == ["agentId"]
