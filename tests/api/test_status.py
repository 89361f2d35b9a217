"""Status and configuration of agents over HTTP."""

from collections.abc import Callable

import pytest

from mastra_memory.options import DEFAULT_TEMPLATE
from tests.conftest import Person
from tests.support.api_client import Api, fields_of
from tests.support.factories import api_time, make_record, make_thread, moment

OBSERVING = {"observationalMemory": {"enabled": True, "model": "openai/gpt-5-mini"}}


@pytest.fixture(autouse=True)
def agents(memory_settings: Callable[..., None]) -> None:
    memory_settings(
        AGENTS={
            "test-agent": {"workingMemory": {"enabled": True}},
            "observer": OBSERVING,
            "many": {"lastMessages": 20, "readOnly": True, "messageHistory": {"maxTokens": 9}},
            "no-memory": None,
        }
    )


def test_status__of_each_kind_of_agent(api: Api) -> None:
    assert api.get("status").body == {"result": True, "memoryType": "local"}
    assert api.through("no-memory").get("status").body == {"result": False}
    assert api.through("missing").get("status").body == {"result": True}
    assert fields_of(api.through(None).get("status")) == ["agentId"]


def test_status__observations_of_a_thread(api: Api) -> None:
    thread = make_thread("r", "t")
    observer = api.through("observer")
    query = {"resourceId": "r", "threadId": "t"}
    assert observer.get("status").body["observationalMemory"] == {"enabled": True}
    assert observer.get("status", query).body["observationalMemory"] == {
        "enabled": True,
        "hasRecord": False,
    }
    make_record(thread, last_observed_at=moment(5), total_tokens_observed=7)
    assert observer.get("status", query).body["observationalMemory"] == {
        "enabled": True,
        "hasRecord": True,
        "originType": "initial",
        "lastObservedAt": api_time(5),
        "tokenCount": 7,
        "observationTokenCount": 0,
        "isObserving": False,
        "isReflecting": False,
    }


def test_status__a_record_without_observations_has_no_time(api: Api) -> None:
    make_record(make_thread("r", "t"))
    query = {"resourceId": "r", "threadId": "t"}
    status = api.through("observer").get("status", query).body["observationalMemory"]
    assert status["hasRecord"] is True and "lastObservedAt" not in status


def test_status__shows_nothing_of_other_owners(alice: Person, bob: Person) -> None:
    thread = make_thread(bob.resource_id, "t")
    make_record(thread)
    observer = alice.api.through("observer")
    for owner in (bob.resource_id, alice.resource_id):
        assert observer.get("status", {"resourceId": owner, "threadId": "t"}).status == 403


def test_config__defaults_filled_in(api: Api) -> None:
    assert api.get("config").body == {
        "config": {
            "lastMessages": 10,
            "semanticRecall": False,
            "generateTitle": False,
            "workingMemory": {"enabled": True, "template": DEFAULT_TEMPLATE},
            "observationalMemory": {"enabled": False},
        }
    }


def test_config__what_an_agent_has_of_its_own(api: Api) -> None:
    config = api.through("many").get("config").body["config"]
    assert config["lastMessages"] == 20 and config["readOnly"] is True
    assert config["messageHistory"] == {"maxTokens": 9}
    assert api.through("observer").get("config").body["config"]["observationalMemory"] == {
        "enabled": True,
        "scope": "thread",
        "messageTokens": 30_000,
        "observationTokens": 40_000,
        "observationModel": "openai/gpt-5-mini",
        "reflectionModel": "openai/gpt-5-mini",
    }


def test_config__null_without_memory(api: Api) -> None:
    for agent_id in ("no-memory", "missing"):
        assert api.through(agent_id).get("config").body == {"config": None}
    assert fields_of(api.through(None).get("config")) == ["agentId"]


def test_agents__none_configured_means_that_every_id_gets_the_defaults(
    api: Api, memory_settings: Callable[..., None]
) -> None:
    memory_settings(OPTIONS={"lastMessages": 3})
    assert api.through("any-agent").get("config").body["config"]["lastMessages"] == 3
    memory_settings()
    assert api.through("any-agent").get("config").body["config"]["lastMessages"] == 10
