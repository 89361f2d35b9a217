"""Working memory over HTTP: merging, checking, revisions; many writers at once."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mastra_memory.models import WorkingMemoryRevision
from mastra_memory.options import DEFAULT_TEMPLATE
from tests.conftest import Person
from tests.support.api_client import Api, fields_of
from tests.support.factories import Json, make_thread, make_user
from tests.support.live_server import RealServer, real_server

PATH = "threads/t/working-memory"
MERGE = {"mode": "merge"}
SCHEMA: Json = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "prefs": {"type": "object", "properties": {"lang": {"type": "string"}}},
        "tags": {"type": "array"},
    },
    "required": ["name"],
}


@pytest.fixture(autouse=True)
def agents(memory_settings: Callable[..., None]) -> None:
    agents: Json = {
        "test-agent": {"enabled": True},
        "by-thread": {"enabled": True, "scope": "thread"},
        "by-schema": {"enabled": True, "schema": SCHEMA},
        "by-keys": {"enabled": True, "schema": {"type": "object"}},
        "off": {"enabled": False},
    }
    memory_settings(AGENTS={name: {"workingMemory": wm} for name, wm in agents.items()})


def write(api: Api, value: Any, query: Json | None = None, **body: Any) -> Any:
    text = value if isinstance(value, str) else json.dumps(value)
    return api.post(PATH, {"workingMemory": text, **body}, query)


def read(api: Api) -> Any:
    return json.loads(api.get(PATH).body["workingMemory"])


def test_post__merge_keeps_what_is_not_mentioned(api: Api) -> None:
    make_thread("r", "t")
    agent = api.through("by-schema")
    assert write(agent, {"name": "Ann", "prefs": {"tone": "dry"}, "tags": [1]}).status == 200
    answer = write(agent, {"prefs": {"lang": "de"}, "tags": [2]}, MERGE)
    assert (answer.status, answer.body) == (200, {"success": True})
    assert read(agent) == {"name": "Ann", "prefs": {"tone": "dry", "lang": "de"}, "tags": [2]}
    assert write(agent, {"prefs": None}, MERGE).status == 200
    assert read(agent) == {"name": "Ann", "tags": [2]}


def test_post__merge_without_a_schema_replaces_as_the_tool_does(api: Api) -> None:
    make_thread("r", "t")
    write(api, "one")
    assert write(api, "two", MERGE).status == 200
    assert api.get(PATH).body["workingMemory"] == "two"


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({"name": 5}, "workingMemory.name"),
        ({"name": "A", "prefs": {"lang": 5}}, "workingMemory.prefs.lang"),
        ({"prefs": {}}, "workingMemory"),
        ("not json", "workingMemory"),
    ],
)
def test_post__what_does_not_fit_the_schema_is_400_and_named(
    api: Api, value: Any, field: str
) -> None:
    make_thread("r", "t")
    agent = api.through("by-schema")
    write(agent, {"name": "Ann"})
    assert fields_of(write(agent, value)) == [field]
    assert read(agent) == {"name": "Ann"}


def test_post__the_empty_template_is_refused_where_it_would_wipe(api: Api) -> None:
    make_thread("r", "t")
    write(api, "name: Ann")
    for placeholder in (DEFAULT_TEMPLATE, DEFAULT_TEMPLATE.replace("\n", " \r\n")):
        assert fields_of(write(api, placeholder)) == ["workingMemory"]
    assert api.get(PATH).body["workingMemory"] == "name: Ann"
    agent = api.through("by-schema")
    write(agent, {"name": "Ann"})
    template = agent.get(PATH).body["workingMemoryTemplate"]["content"]
    assert fields_of(write(agent, template)) == ["workingMemory"]
    assert read(agent) == {"name": "Ann"}


@pytest.mark.parametrize("mode", ["x", "MERGE", "merge,replace"])
def test_post__an_unknown_mode_is_400_and_named(api: Api, mode: str) -> None:
    make_thread("r", "t")
    assert fields_of(write(api, "x", {"mode": mode})) == ["mode"]


def test_post__a_schema_comes_from_the_settings_only(api: Api) -> None:
    make_thread("r", "t")
    agent = api.through("by-schema")
    own = {"workingMemory": {"schema": SCHEMA}}
    assert write(agent, {"name": "Ann"}, memoryConfig=own).status == 200
    assert fields_of(write(agent, {"name": 5}, memoryConfig=own)) == ["workingMemory.name"]
    other = {"workingMemory": {"schema": {"type": "object"}}}
    for refused in (
        write(api, {"name": "Ann"}, memoryConfig=other),
        write(agent, {"name": 5}, memoryConfig=other),
        write(agent, {"name": 5}, memoryConfig={"workingMemory": {"schema": None}}),
        api.get(PATH, {"memoryConfig": other}),
        api.get(f"{PATH}/revisions", {"memoryConfig": other}),
        api.get("threads/t/context", {"memoryConfig": other}),
    ):
        assert fields_of(refused) == ["memoryConfig.workingMemory.schema"]
    assert read(agent) == {"name": "Ann"}


def test_revisions__are_listed_and_restored(alice: Person) -> None:
    make_thread(alice.resource_id, "t")
    for text in ("one", "two"):
        write(alice.api, text)
    body = alice.api.get(f"{PATH}/revisions").body
    times = [one.pop("createdAt") for one in body["revisions"]]
    assert body == {
        "revisions": [
            {"version": 2, "workingMemory": "two", "source": "api", "author": "alice"},
            {"version": 1, "workingMemory": "one", "source": "api", "author": "alice"},
        ],
        "total": 2,
        "page": 0,
        "perPage": 20,
        "hasMore": False,
    }
    assert times == sorted(times, reverse=True) and times[0].endswith("Z")
    answer = alice.api.post(f"{PATH}/restore", {"version": 1})
    assert (answer.status, answer.body) == (200, {"success": True, "version": 3})
    assert alice.api.get(PATH).body["workingMemory"] == "one"
    page = alice.api.get(f"{PATH}/revisions", {"page": 1, "perPage": 1}).body
    assert [one["version"] for one in page["revisions"]] == [2]
    assert page["hasMore"] is True


def test_revisions__of_thread_scope(api: Api) -> None:
    make_thread("r", "t")
    agent = api.through("by-thread")
    write(api, "for the resource")
    write(agent, "for the thread")
    revisions = agent.get(f"{PATH}/revisions").body["revisions"]
    assert [one["workingMemory"] for one in revisions] == ["for the thread"]
    config = {"memoryConfig": {"workingMemory": {"scope": "thread"}}}
    assert api.get(f"{PATH}/revisions", config).body["revisions"] == revisions


@pytest.mark.parametrize("version", [2, 0, -1, 10**30])
def test_restore__an_unknown_version_is_400_and_named(api: Api, version: int) -> None:
    make_thread("r", "t")
    write(api, "one")
    assert fields_of(api.post(f"{PATH}/restore", {"version": version})) == ["version"]


@pytest.mark.parametrize("body", [{}, {"version": "1"}, {"version": 1.5}, {"version": None}])
def test_restore__the_version_must_be_a_number(api: Api, body: Json) -> None:
    make_thread("r", "t")
    assert fields_of(api.post(f"{PATH}/restore", body)) == ["version"]


def test_revisions__where_there_are_none(api: Api) -> None:
    assert api.get("threads/missing/working-memory/revisions").status == 404
    assert api.post("threads/missing/working-memory/restore", {"version": 1}).status == 404
    make_thread("r", "t")
    assert api.get(f"{PATH}/revisions").body["revisions"] == []
    assert api.through("off").get(f"{PATH}/revisions").status == 400


def test_revisions__are_their_owners(alice: Person, bob: Person) -> None:
    make_thread(alice.resource_id, "t")
    write(alice.api, "mine")
    for answer in (
        bob.api.get(f"{PATH}/revisions"),
        bob.api.post(f"{PATH}/restore", {"version": 1}),
    ):
        assert answer.status == 403 and b"mine" not in answer.raw


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RealServer]:
    with real_server(tmp_path, DJANGO_SETTINGS_MODULE="tests.support.schema_settings") as running:
        yield running


def _post_at_once(
    server: RealServer, agent_id: str, mode: str, bodies: list[dict[str, Any]]
) -> list[int]:
    """Return the statuses of concurrent requests, each on its own connection."""
    path = f"{PATH}?agentId={agent_id}&mode={mode}"
    with ThreadPoolExecutor(50) as pool:
        return [status for status, _ in pool.map(partial(server.send, "POST", path), bodies)]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_post__fifty_merges_at_once_keep_fifty_keys(server: RealServer) -> None:
    make_thread("r", "t")
    keys = [json.dumps({f"k{number}": number}) for number in range(50)]
    bodies = [{"workingMemory": key} for key in keys]
    assert set(_post_at_once(server, "by-keys", "merge", bodies)) == {200}
    newest = WorkingMemoryRevision.objects.order_by("-version")[0]
    assert json.loads(newest.content) == {f"k{number}": number for number in range(50)}
    assert newest.version == WorkingMemoryRevision.objects.count() == 50


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_post__fifty_replacements_at_once_leave_one_whole(server: RealServer) -> None:
    make_thread("r", "t")
    texts = [f"# text {number}\n" * 300 for number in range(50)]
    assert set(_post_at_once(server, "a", "replace", [{"workingMemory": t} for t in texts])) == {
        200
    }
    revisions = WorkingMemoryRevision.objects.order_by("version")
    assert sorted(one.content for one in revisions) == sorted(texts)
    api = Api(make_user("reader", unscoped=True))
    assert api.get(PATH).body["workingMemory"] == revisions.reverse()[0].content
