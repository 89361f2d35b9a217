"""Working memory over HTTP."""

from collections.abc import Callable
from typing import Any

import pytest

from mastra_memory.models import WorkingMemory, WorkingMemoryRevision
from tests.conftest import Person
from tests.support.api_client import Api, fields_of
from tests.support.factories import Json, make_thread

PATH = "threads/t/working-memory"
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "level": {"type": "integer", "default": 3},
        "address": {"type": "object", "properties": {"city": {"type": "string"}}},
        "tags": {"type": "array"},
    },
}


@pytest.fixture(autouse=True)
def agents(memory_settings: Callable[..., None]) -> None:
    """Agents that keep working memory by resource, by thread, by a schema, and not at all."""
    agents: dict[str, Json | None] = {
        "test-agent": {"enabled": True},
        "by-thread": {"enabled": True, "scope": "thread", "template": "# Notes\n- Topic:\n"},
        "by-schema": {"enabled": True, "schema": SCHEMA},
        "off": {"enabled": False},
    }
    configured: dict[str, Any] = {name: {"workingMemory": wm} for name, wm in agents.items()}
    memory_settings(AGENTS=configured | {"no-memory": None})


def read_memory(api: Api, **query: Any) -> Any:
    """The answer to reading the working memory of thread `t`."""
    answer = api.get(PATH, query)
    assert answer.status == 200, answer.raw
    return answer.body


def test_get__nothing_yet(api: Api) -> None:
    make_thread("r", "t")
    body = read_memory(api)
    template = body.pop("workingMemoryTemplate")
    assert body == {"workingMemory": None, "source": "resource", "threadExists": True}
    assert template["format"] == "markdown"
    assert template["content"].startswith("# User Information\n- **First Name**:")


def test_post__resource_scope_is_shared_by_the_threads_of_a_resource(api: Api) -> None:
    make_thread("r", "t"), make_thread("r", "t2"), make_thread("s", "t3")
    assert api.post(PATH, {"workingMemory": "# me"}).body == {"success": True}
    assert read_memory(api)["workingMemory"] == "# me"
    assert api.get("threads/t2/working-memory").body["workingMemory"] == "# me"
    assert api.get("threads/t3/working-memory").body["workingMemory"] is None


def test_post__thread_scope_belongs_to_one_thread_and_shows_in_its_metadata(api: Api) -> None:
    make_thread("r", "t", metadata={"k": 1}), make_thread("r", "t2")
    agent = api.through("by-thread")
    agent.post(PATH, {"workingMemory": "# this"})
    assert (
        read_memory(agent)["workingMemory"] == "# this" and read_memory(agent)["source"] == "thread"
    )
    assert read_memory(agent)["workingMemoryTemplate"]["content"] == "# Notes\n- Topic:"
    assert agent.get("threads/t2/working-memory").body["workingMemory"] is None
    assert api.get("threads/t").body["metadata"] == {"k": 1, "workingMemory": "# this"}


def test_post__replaces_and_keeps_every_text_as_a_revision(alice: Person) -> None:
    make_thread(alice.resource_id, "t")
    for text in ("one", "two", "three"):
        alice.api.post(PATH, {"workingMemory": text})
    assert WorkingMemory.objects.get().content == "three"
    revisions = WorkingMemoryRevision.objects.order_by("version")
    shown = revisions.values_list("version", "content", "source", "author_id")
    author = str(alice.user.pk)
    assert list(shown) == [
        (1, "one", "api", author),
        (2, "two", "api", author),
        (3, "three", "api", author),
    ]


@pytest.mark.parametrize("named", ["undefined", ""])
def test_get__the_word_undefined_is_no_resource(api: Api, named: str) -> None:
    make_thread("r", "t")
    api.post(PATH, {"workingMemory": "# me"})
    assert read_memory(api, resourceId=named)["workingMemory"] == "# me"
    assert api.post(PATH, {"workingMemory": "# new", "resourceId": named}).status == 200
    assert read_memory(api)["workingMemory"] == "# new"


def test_get__without_a_thread_or_a_resource_is_400(api: Api) -> None:
    for query in ({}, {"resourceId": "undefined"}, {"resourceId": ""}):
        assert api.get("threads/missing/working-memory", query).status == 400


def test_get__without_a_thread_the_resource_named_is_meant(api: Api) -> None:
    make_thread("r", "t")
    api.post(PATH, {"workingMemory": "# me"})
    body = api.get("threads/missing/working-memory", {"resourceId": "r"}).body
    assert body["workingMemory"] == "# me" and body["threadExists"] is False


def test_any__a_resource_that_does_not_own_the_thread_is_403(api: Api) -> None:
    make_thread("r", "t")
    api.post(PATH, {"workingMemory": "secret"})
    refused = api.get(PATH, {"resourceId": "s"})
    assert refused.status == 403 and "secret" not in str(refused.body)
    assert api.post(PATH, {"workingMemory": "x", "resourceId": "s"}).status == 403
    assert read_memory(api)["workingMemory"] == "secret"


@pytest.mark.parametrize("value", [{"a": 1}, [], 5, None, True, ""])
def test_post__anything_but_text_is_400_and_named(api: Api, value: Any) -> None:
    make_thread("r", "t")
    assert fields_of(api.post(PATH, {"workingMemory": value})) == ["workingMemory"]
    assert fields_of(api.post(PATH, {})) == ["workingMemory"]
    assert not WorkingMemory.objects.exists()


def test_post__an_unknown_thread_is_404(api: Api) -> None:
    for agent in (api, api.through("by-thread")):
        assert agent.post("threads/missing/working-memory", {"workingMemory": "x"}).status == 404


def test_any__an_agent_without_working_memory(api: Api) -> None:
    make_thread("r", "t")
    off = api.through("off")
    assert (
        read_memory(off)["workingMemory"] is None
        and read_memory(off)["workingMemoryTemplate"] is None
    )
    assert off.post(PATH, {"workingMemory": "x"}).status == 400
    for agent_id in ("no-memory", "missing"):
        assert read_memory(api.through(agent_id)) == {
            "workingMemory": None,
            "source": "thread",
            "workingMemoryTemplate": None,
            "threadExists": False,
        }


def test_get__a_schema_shows_the_empty_object(api: Api) -> None:
    make_thread("r", "t")
    template = read_memory(api.through("by-schema"))["workingMemoryTemplate"]
    content = '{"name":"","level":3,"address":{"city":""},"tags":[]}'
    assert template == {"format": "json", "content": content}


def test_any__options_of_one_call(api: Api) -> None:
    make_thread("r", "t")
    by_thread = {"workingMemory": {"scope": "thread", "template": "# Z"}}
    api.post(PATH, {"workingMemory": "# this", "memoryConfig": by_thread})
    assert read_memory(api)["workingMemory"] is None
    body = read_memory(api, memoryConfig=by_thread)
    assert body["workingMemory"] == "# this" and body["source"] == "thread"
    assert body["workingMemoryTemplate"]["content"] == "# Z"
    off = {"workingMemory": {"enabled": False}}
    assert read_memory(api, memoryConfig=off)["workingMemory"] is None
    assert api.post(PATH, {"workingMemory": "x", "memoryConfig": off}).status == 400


@pytest.mark.parametrize("given", ["{bad", "5", "[]", "null", ""])
def test_any__options_that_are_no_object_are_400(api: Api, given: str) -> None:
    make_thread("r", "t")
    assert fields_of(api.get(PATH, {"memoryConfig": given})) == ["memoryConfig"]
    odd: list[Any] = [5, None, [], "x"]
    for value in odd:
        body = {"workingMemory": "x", "memoryConfig": value}
        assert fields_of(api.post(PATH, body)) == ["memoryConfig"]


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"lastMessages": -1}, "last_messages"),
        ({"workingMemory": {"scope": "planet"}}, "working_memory.scope"),
        ({"workingMemory": {"schema": 5}}, "memoryConfig.workingMemory.schema"),
        ({"workingMemory": {"template": 5}}, "working_memory.template"),
        ({"semanticRecall": {"topK": "x"}}, "semantic_recall.top_k"),
        ({"semanticRecall": "yes"}, "semantic_recall"),
    ],
)
def test_any__options_that_mean_nothing_are_400_and_named(
    api: Api, options: Json, field: str
) -> None:
    make_thread("r", "t")
    assert fields_of(api.get(PATH, {"memoryConfig": options})) == [field]
    assert fields_of(api.post(PATH, {"workingMemory": "x", "memoryConfig": options})) == [field]


def test_any__a_person_reads_and_edits_their_own(alice: Person, bob: Person) -> None:
    make_thread(alice.resource_id, "t")
    assert alice.api.post(PATH, {"workingMemory": "mine"}).status == 200
    assert read_memory(alice.api)["workingMemory"] == "mine"
    for request in (bob.api.get(PATH), bob.api.post(PATH, {"workingMemory": "x"})):
        assert request.status == 403 and "mine" not in str(request.body)
    other = {"resourceId": alice.resource_id}
    assert bob.api.get("threads/missing/working-memory", other).body["workingMemory"] is None
    assert read_memory(alice.api)["workingMemory"] == "mine"


def test_create__working_memory_given_with_a_thread(api: Api) -> None:
    body = {"resourceId": "r", "threadId": "t", "metadata": {"workingMemory": "# given", "k": 1}}
    made = api.post("threads", body).body
    assert made["metadata"] == {"workingMemory": "# given", "k": 1}
    assert read_memory(api)["workingMemory"] == "# given"
    assert read_memory(api.through("by-thread"))["workingMemory"] == "# given"
