"""Observational memory over HTTP."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from mastra_memory.models import ObservationalRecord
from mastra_memory.types import StoredThread
from tests.conftest import Person
from tests.support.api_client import Api, fields_of
from tests.support.factories import (
    api_time,
    held_lease,
    make_chunk,
    make_record,
    make_thread,
    moment,
)

PATH, WAIT = "observational-memory", "observational-memory/buffer-status"
ABOUT = {"resourceId": "r", "threadId": "t"}
DAY = 86_400


@pytest.fixture(autouse=True)
def agents(memory_settings: Callable[..., None]) -> None:
    memory_settings(
        AGENTS={
            "om-agent": {"observationalMemory": True},
            "by-resource": {"observationalMemory": {"scope": "resource"}},
            "test-agent": {},
            "no-memory": None,
        }
    )


@pytest.fixture
def om(api: Api) -> Api:
    """The API through an agent that observes threads."""
    return api.through("om-agent")


def seven_days(thread: StoredThread) -> None:
    """Generations 0 to 6, one a day."""
    for number in range(7):
        made = moment(number * DAY)
        make_record(thread, generation_count=number, created_at=made, updated_at=made)


def generations(answer: Any) -> list[int]:
    """The generations of the history."""
    return [record["generationCount"] for record in answer.body.get("history", ())]


def test_get__the_whole_record(om: Api) -> None:
    made = moment(1)
    record = make_record(make_thread("r", "t"), created_at=made, updated_at=made)
    shown = {
        "id": record.id,
        "scope": "thread",
        "threadId": "t",
        "resourceId": "r",
        "createdAt": api_time(1),
        "updatedAt": api_time(1),
        "originType": "initial",
        "generationCount": 0,
        "activeObservations": "",
        "totalTokensObserved": 0,
        "observationTokenCount": 0,
        "pendingMessageTokens": 0,
        "isReflecting": False,
        "isObserving": False,
        "isBufferingObservation": False,
        "isBufferingReflection": False,
        "lastBufferedAtTokens": 0,
        "lastBufferedAtTime": None,
        "config": {},
    }
    assert om.get(PATH, ABOUT).body == {"record": shown, "history": [shown]}


def test_get__optional_fields_appear_once_they_are_set(om: Api) -> None:
    record = make_record(
        make_thread("r", "t"),
        last_observed_at=moment(2),
        observed_message_ids=["m1"],
        metadata={"k": 1},
        buffered_reflection="short",
    )
    make_chunk(record, 1, id="second", hints={"currentTask": "x"}), make_chunk(record, id="first")
    shown = om.get(PATH, ABOUT).body["record"]
    assert shown["lastObservedAt"] == api_time(2)
    assert shown["observedMessageIds"] == ["m1"] and shown["metadata"] == {"k": 1}
    assert shown["bufferedReflection"] == "short"
    chunks = shown["bufferedObservationChunks"]
    assert [chunk["id"] for chunk in chunks] == ["first", "second"]
    assert chunks[1]["currentTask"] == "x" and chunks[0]["messageIds"] == []


def test_get__the_live_record_is_the_newest_and_history_begins_with_it(om: Api) -> None:
    seven_days(make_thread("r", "t"))
    answer = om.get(PATH, ABOUT)
    assert answer.body["record"]["generationCount"] == 6
    assert generations(answer) == [6, 5, 4, 3, 2]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"limit": 2}, [6, 5]),
        ({"limit": 2, "offset": 1}, [5, 4]),
        ({"offset": 99}, []),
        ({"limit": 2**53 - 1, "offset": 5}, [1, 0]),
        ({"from": api_time(5 * DAY)}, [6, 5]),
        ({"to": api_time(DAY)}, [1, 0]),
        ({"from": api_time(DAY), "to": api_time(3 * DAY)}, [3, 2, 1]),
        ({"from": api_time(99 * DAY)}, []),
    ],
)
def test_get__history_by_page_and_by_date(om: Api, query: Any, found: list[int]) -> None:
    seven_days(make_thread("r", "t"))
    answer = om.get(PATH, ABOUT | query)
    assert generations(answer) == found
    assert answer.body["record"]["generationCount"] == 6
    assert ("history" in answer.body) is bool(found)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": -1}, "limit"),
        ({"limit": "x"}, "limit"),
        ({"offset": -1}, "offset"),
        ({"offset": 1.5}, "offset"),
        ({"from": "nonsense"}, "from"),
        ({"from": "2024-02-30"}, "from"),
        ({"to": "1704067200000"}, "to"),
        ({"resourceId": ""}, "resourceId"),
        ({"resourceId": ("r", "s")}, "resourceId"),
    ],
)
def test_get__bad_parameters_are_400_and_named(om: Api, query: Any, field: str) -> None:
    make_thread("r", "t")
    assert fields_of(om.get(PATH, ABOUT | query)) == [field]


def test_get__nothing_observed_is_null_without_history(om: Api) -> None:
    make_thread("r", "t")
    assert om.get(PATH, ABOUT).body == {"record": None}
    assert om.get(PATH, {"resourceId": "r"}).body == {"record": None}
    assert om.get(PATH, {"resourceId": "r", "threadId": "missing"}).body == {"record": None}


def test_get__by_resource(api: Api) -> None:
    make_thread("r", "t")
    record = make_record(resource_id="r")
    shown = api.through("by-resource").get(PATH, ABOUT).body["record"]
    assert shown["id"] == record.id and shown["threadId"] is None
    assert api.through("om-agent").get(PATH, ABOUT).body == {"record": None}


def test_any__the_thread_of_another_resource_is_403(om: Api) -> None:
    make_record(make_thread("r", "t"), active_observations="secret")
    body = {"resourceId": "s", "threadId": "t"}
    wait = om.post(WAIT, body | {"agentId": "om-agent"})
    for refused in (om.get(PATH, body), wait):
        assert refused.status == 403 and "secret" not in str(refused.body)


def test_any__needs_an_agent_that_observes(api: Api) -> None:
    make_thread("r", "t")
    for agent_id, status in (("test-agent", 400), ("no-memory", 400), ("missing", 404)):
        agent = api.through(agent_id)
        assert agent.get(PATH, ABOUT).status == status
        assert agent.post(WAIT, ABOUT | {"agentId": agent_id}).status == status
    assert fields_of(api.through(None).get(PATH, ABOUT)) == ["agentId"]
    assert fields_of(api.post(WAIT, ABOUT)) == ["agentId"]


def test_wait__answers_at_once_when_nothing_is_buffered(om: Api) -> None:
    record = make_record(make_thread("r", "t"))
    body = om.post(WAIT, ABOUT | {"agentId": "om-agent"}).body
    assert body["record"]["id"] == record.id and "history" not in body


def test_wait__returns_once_the_lease_has_ended(om: Api) -> None:
    record = make_record(make_thread("r", "t"))
    lease_end = timezone.now() + timedelta(seconds=0.4)
    ObservationalRecord.objects.filter(pk=record.pk).update(
        **held_lease("buffering") | {"lease_expires_at": lease_end}
    )
    body = om.post(WAIT, ABOUT | {"agentId": "om-agent"}).body
    assert timezone.now() >= lease_end
    assert body["record"]["isBufferingObservation"] is False


def test_any__a_scoped_caller_sees_only_their_own(alice: Person, bob: Person) -> None:
    make_record(make_thread(bob.resource_id, "t"), active_observations="secret")
    make_record(resource_id=bob.resource_id, active_observations="secret")
    his = {"resourceId": bob.resource_id}
    for agent_id, thread, status in (
        ("om-agent", {"threadId": "t"}, 403),
        ("by-resource", {}, 200),
    ):
        agent = alice.api.through(agent_id)
        answers = (
            agent.get(PATH, his | thread),
            agent.post(WAIT, his | thread | {"agentId": agent_id}),
        )
        for answer in answers:
            assert answer.status == status and "secret" not in str(answer.body)
