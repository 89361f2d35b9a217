"""Observing, reflecting and correcting over HTTP, which Mastra does not have."""

from collections.abc import Callable
from typing import Any

import pytest

from mastra_memory.exceptions import ProviderRefused, ProviderUnavailable
from mastra_memory.memory import Memory
from mastra_memory.models import ObservationalRecord, ObservationEvent
from mastra_memory.observational import claims
from tests.conftest import Person
from tests.observational.engine import live, observer, say
from tests.support.api_client import Api
from tests.support.factories import make_thread

pytestmark = pytest.mark.django_db
PATH = "observational-memory"
ABOUT = {"resourceId": "r", "threadId": "t"}
NOTES = """<observations>
Date: Jan 1, 2024
* 🔴 (10:00) Lives in Rome
* 🟡 Likes tea
</observations>"""


@pytest.fixture(autouse=True)
def agents(memory_settings: Callable[..., None]) -> None:
    memory_settings(
        AGENTS={
            "test-agent": {"observationalMemory": True},
            "read-only": {"observationalMemory": True, "readOnly": True},
            "off": {},
        }
    )


@pytest.fixture
def observed(api: Api) -> Api:
    """The API, after one message of the thread was observed."""
    say(Memory("test-agent"), make_thread("r", "t"), 10, message_id="m")
    with observer(NOTES):
        assert api.post(f"{PATH}/observe", ABOUT).status == 200
    return api


def test_observe__observes_at_once_and_names_the_person(observed: Api) -> None:
    event = ObservationEvent.objects.get(operation="observation")
    assert (event.state, event.user_name) == ("done", "boss")
    with observer(NOTES) as model:
        answer = observed.post(f"{PATH}/observe", ABOUT)
    assert answer.status == 200 and not model.requests
    flags = {name: answer.body[name] for name in ("observed", "activated", "reflected")}
    assert flags == {"observed": False, "activated": False, "reflected": False}
    assert answer.body["record"]["activeObservations"].endswith("Likes tea")


def test_reflect__makes_a_generation(observed: Api) -> None:
    with observer("<observations>\n* 🔴 Roman\n</observations>") as model:
        answer = observed.post(f"{PATH}/reflect", ABOUT | {"prompt": "Be brief"})
    assert answer.status == 200 and answer.body["reflected"] is True
    assert answer.body["record"]["generationCount"] == 1
    assert answer.body["record"]["originType"] == "reflection"
    assert "Be brief" in model.requests[0].prompt


def test_status__tells_what_is_due(observed: Api) -> None:
    say(Memory("test-agent"), make_thread("r", "t"), 100)
    body = observed.get(f"{PATH}/status", ABOUT).body
    assert body.pop("record")["threadId"] == "t"
    assert 100 <= body["pendingTokens"] == body["unbufferedPendingTokens"] <= 200
    assert body["observationTokens"] > 0
    expected = {
        "scope": "thread",
        "threshold": 30_000,
        "effectiveObservationTokensThreshold": 40_000,
        "bufferedChunkCount": 0,
        "bufferedChunkTokens": 0,
        "asyncObservationEnabled": True,
        "asyncReflectionEnabled": True,
        "shouldObserve": False,
        "shouldBuffer": False,
        "shouldReflect": False,
        "canActivate": False,
        "error": None,
        "attempts": 0,
    }
    assert {name: body[name] for name in expected} == expected


def test_observations__each_with_its_messages(observed: Api) -> None:
    first, second = observed.get(f"{PATH}/observations", ABOUT).body["observations"]
    assert first == {
        "id": "0.1",
        "text": "Lives in Rome",
        "line": "* 🔴 (10:00) Lives in Rome",
        "priority": "high",
        "date": "2024-01-01",
        "time": "10:00",
        "depth": 0,
        "isPinned": False,
        "messageIds": ["m"],
        "isExact": True,
    }
    assert (second["priority"], second["time"]) == ("medium", None)


def correct(api: Api, **body: Any) -> Any:
    return api.post(f"{PATH}/corrections", ABOUT | body)


def test_corrections__edit_pin_delete_and_undo(observed: Api) -> None:
    edited = correct(observed, action="edit", observation="0.1", text="Lives in Paris")
    assert edited.status == 200 and edited.body["record"]["originType"] == "edit"
    assert correct(observed, action="pin", observation="1.1").status == 200
    assert observed.get(f"{PATH}/observations", ABOUT).body["observations"][0]["isPinned"]
    assert correct(observed, action="unpin", observation="2.1").status == 200
    assert correct(observed, action="delete", observation="3.1").status == 200
    assert "Paris" not in live_text()
    assert correct(observed, action="restore", generation=1).status == 200
    assert "Lives in Paris" in live_text()
    names = set(ObservationEvent.objects.filter(operation="edit").values_list("user_name"))
    assert names == {("boss",)}
    page = observed.get(f"{PATH}/history", ABOUT | {"perPage": 2, "page": 1}).body
    assert [item["generationCount"] for item in page["generations"]] == [3, 2]
    assert (page["total"], page["page"], page["perPage"], page["hasMore"]) == (6, 1, 2, True)


def live_text() -> str:
    return str(ObservationalRecord.objects.live().get().active_observations)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "action"),
        ({"action": "burn"}, "action"),
        ({"action": "edit", "observation": "0.1"}, "text"),
        ({"action": "edit", "text": "x"}, "observation"),
        ({"action": "pin", "observation": "first"}, "observation"),
        ({"action": "restore"}, "generation"),
        ({"action": "restore", "generation": -1}, "generation"),
        ({"action": "restore", "generation": 7}, "generation"),
        ({"action": "edit", "observation": "0.1", "text": " "}, "text"),
    ],
)
def test_corrections__bad_input_is_one_clear_error(observed: Api, body: Any, field: str) -> None:
    answer = correct(observed, **body)
    assert answer.status == 400 and answer.body["issues"][0]["field"] == field
    assert ObservationalRecord.objects.count() == 1


def test_corrections__of_changed_observations_are_a_conflict(observed: Api) -> None:
    correct(observed, action="delete", observation="0.2")
    answer = correct(observed, action="edit", observation="0.1", text="x")
    assert answer.status == 409 and "have changed" in answer.body["error"]


def test_busy__is_a_conflict(observed: Api) -> None:
    say(Memory("test-agent"), make_thread("r", "t"), 10)
    record = ObservationalRecord.objects.live().get()
    assert claims.claim_observing(record, "observing")
    assert claims.claim_reflecting(record, "reflecting")
    for path in ("observe", "reflect"):
        answer = observed.post(f"{PATH}/{path}", ABOUT)
        assert answer.status == 409 and "Try again" in answer.body["error"]


@pytest.mark.parametrize(
    ("error", "status"), [(ProviderUnavailable("away"), 503), (ProviderRefused("no key"), 502)]
)
def test_provider__errors_have_their_status_and_change_nothing(
    api: Api, error: Exception, status: int
) -> None:
    thread = make_thread("r", "t")
    say(Memory("test-agent"), thread, 10)
    with observer(error):
        assert api.post(f"{PATH}/observe", ABOUT).status == status
    assert live(thread).active_observations == ""
    with observer(NOTES):
        assert api.post(f"{PATH}/observe", ABOUT).body["observed"] is True


@pytest.mark.parametrize("path", ["observe", "reflect"])
def test_missing_ids__are_clear_errors(api: Api, path: str) -> None:
    assert api.post(f"{PATH}/{path}", {}).body["issues"][0]["field"] == "resourceId"
    answer = api.post(f"{PATH}/{path}", {"resourceId": "r"})
    assert answer.status == 400 and answer.body["issues"][0]["field"] == "threadId"
    assert api.post(f"{PATH}/{path}", ABOUT | {"threadId": "unknown"}).status == 404


def test_agents__without_it_or_read_only_are_refused(observed: Api) -> None:
    for path, body in (("observe", {}), ("reflect", {}), ("corrections", {"action": "pin"})):
        more = body | {"observation": "0.1"} if body else {}
        assert observed.through("read-only").post(f"{PATH}/{path}", ABOUT | more).status == 400
        assert observed.through("off").post(f"{PATH}/{path}", ABOUT | more).status == 400
    assert observed.through("read-only").get(f"{PATH}/observations", ABOUT).status == 200
    assert ObservationalRecord.objects.count() == 1


def test_owners__may_correct_their_own_and_nobody_elses(alice: Person, bob: Person) -> None:
    memory = Memory("test-agent")
    thread = make_thread(alice.resource_id, "t")
    say(memory, thread, 10)
    with observer(NOTES):
        assert alice.api.post(f"{PATH}/observe", {"threadId": "t"}).status == 200
    edit = {"threadId": "t", "action": "edit", "observation": "0.1", "text": "x"}
    assert bob.api.post(f"{PATH}/corrections", edit).status == 403
    assert bob.api.post(f"{PATH}/reflect", {"threadId": "t"}).status == 403
    assert bob.api.get(f"{PATH}/observations", {"threadId": "t"}).status == 403
    assert alice.api.post(f"{PATH}/corrections", edit).status == 200
