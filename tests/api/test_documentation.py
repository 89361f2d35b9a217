"""The OpenAPI schema: complete, without a warning, and true of real answers."""

import re
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator

from tests.api.routes import ROUTES, Named
from tests.conftest import Person
from tests.support.api_client import Answer, Api, dumped
from tests.support.factories import a_message, make_record, make_thread, save

BASE = "/api/memory/"
REFUSALS: list[tuple[str, Any, int]] = [
    ("POST threads", {}, 400),
    ("POST threads", {"resourceId": "r", "threadId": "t"}, 409),
    ("GET threads/missing", None, 404),
    ("GET threads", None, 400),
]


def operation(schema: Any, key: str) -> Any:
    """Return the description of a route in the schema."""
    method, path = key.split(" ", 1)
    return schema["paths"][BASE + path.replace("<thread>", "{thread_id}")][method.lower()]


def assert_described(schema: Any, key: str, answer: Answer) -> None:
    """Check that the answer is valid against the schema."""
    described = operation(schema, key)["responses"][str(answer.status)]
    shape = described["content"]["application/json"]["schema"]
    whole = _as_json_schema(shape | {"components": schema["components"]})
    jsonschema.validate(answer.body, whole)


def _as_json_schema(value: Any) -> Any:
    """OpenAPI 3.0's `nullable` in the words of JSON schema; undescribed keys are refused."""
    if isinstance(value, list):
        return [_as_json_schema(part) for part in value]
    if not isinstance(value, dict):
        return value
    made = {key: _as_json_schema(part) for key, part in value.items() if key != "nullable"}
    if value.get("type") == "object" and "properties" in value:
        made.setdefault("additionalProperties", False)
    return {"anyOf": [made, {"type": "null"}]} if value.get("nullable") else made


def test_schema__is_made_without_a_warning() -> None:
    GENERATOR_STATS.reset()
    SchemaGenerator().get_schema(request=None, public=True)
    assert [*GENERATOR_STATS._warn_cache, *GENERATOR_STATS._error_cache] == []


def test_schema__describes_every_route_and_no_other(schema: Any) -> None:
    described = {
        f"{method.upper()} {path.removeprefix(BASE).replace('{thread_id}', '<thread>')}"
        for path, operations in schema["paths"].items()
        if path.startswith(BASE)
        for method in operations
    }
    assert described == set(ROUTES)


@pytest.mark.parametrize("key", ROUTES)
def test_schema__every_route_has_a_description_and_error_responses(schema: Any, key: str) -> None:
    described = operation(schema, key)
    assert len(described["description"]) > 10
    assert {"200", "400", "401", "403"} <= described["responses"].keys()
    assert described["security"] and {} not in described["security"]
    for parameter in described.get("parameters", ()):
        assert parameter["in"] == "path" or parameter["description"]
    for name in re.findall(r"<(\w+)>", key):
        assert name == "thread"


def test_schema__the_agent_is_required_where_it_is(schema: Any) -> None:
    optional = {"GET threads", "GET threads/<thread>", "GET threads/<thread>/messages"}
    in_body = {"POST observational-memory/buffer-status"}
    for key in ROUTES:
        parameters = {p["name"]: p for p in operation(schema, key).get("parameters", ())}
        plain = key.replace("network/", "")
        if plain not in in_body and plain != "POST threads/<thread>/transfer":
            required = parameters["agentId"].get("required", False)
            assert required is (plain not in optional), key


@pytest.mark.parametrize("key", ROUTES)
def test_schema__real_answers_are_as_described(
    schema: Any, api: Api, memory_settings: Callable[..., None], key: str
) -> None:
    memory_settings(
        OPTIONS={"workingMemory": {"enabled": True}, "observationalMemory": {"enabled": True}}
    )
    thread = make_thread("r", "t", title="T", metadata={"k": 1})
    save([a_message(thread, "m", text="lighthouse"), a_message(thread, "m2", type="text")])
    make_record(thread, active_observations="* Likes tea")
    api.post("threads/t/working-memory", {"workingMemory": "# me"})
    answer = ROUTES[key].send(api, key, Named("r", "t", "m"))
    assert answer.status == 200
    assert_described(schema, key, answer)


@pytest.mark.parametrize(("key", "body", "status"), REFUSALS)
def test_schema__real_refusals_are_as_described(
    schema: Any, api: Api, key: str, body: Any, status: int
) -> None:
    make_thread("s", "t")
    method, path = key.split(" ")
    answer = api.send(method, path, dumped(body), query={"page": "x"})
    assert answer.status == status
    assert_described(schema, key.replace("missing", "<thread>"), answer)


@pytest.mark.parametrize("key", [key for key in ROUTES if key.startswith("GET")])
def test_browsable__a_person_may_look_at_every_route(alice: Person, key: str) -> None:
    make_thread(alice.resource_id, "t", title="<b>Trip</b>")
    named = Named(alice.resource_id, "t", "m")
    answer = ROUTES[key].send(alice.api, key, named, accept="text/html")
    kind = "text/html" if answer.status == 200 else "application/json"
    assert answer.headers["Content-Type"].startswith(kind)
    assert answer.status in (200, 400, 404) and b"<b>Trip" not in answer.raw


def test_browsable__shows_what_is_nested_as_deeply_as_can_be_stored(api: Api) -> None:
    deep = b'{"a":' * 253 + b"1" + b"}" * 253
    body = b'{"resourceId":"r","threadId":"t","metadata":%b}' % deep
    assert api.send("POST", "threads", body).status == 200
    answer = api.send("GET", "threads", headers={"accept": "text/html"})
    assert answer.status == 200 and b"&quot;a&quot;:" in answer.raw


def test_browsable__a_form_cannot_be_posted_as_json(alice: Person) -> None:
    body = b"resourceId=x"
    form = "application/x-www-form-urlencoded"
    assert alice.api.send("POST", "threads", body, content_type=form).status == 400


@pytest.mark.parametrize("page", ["/api/schema/", "/api/docs/"])
def test_page__is_served(alice: Person, page: str) -> None:
    assert alice.api.send("GET", page).status == 200
