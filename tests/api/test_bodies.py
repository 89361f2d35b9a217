"""Bodies, methods and headers: what is checked before a view runs."""

import gc
import gzip
import io
from collections.abc import Callable
from typing import Any
from wsgiref.util import setup_testing_defaults

import pytest
from django.core.handlers.wsgi import WSGIHandler
from django.http import HttpResponseBase
from rest_framework.request import Request

from mastra_memory.models import Thread
from project.models import AccessToken
from tests.api.routes import ROUTES, Named
from tests.support.api_client import BASE, Api, dumped, fields_of
from tests.support.factories import a_message, make_thread, make_user

POSTS = [key for key in ROUTES if key.split(" ")[0] in ("POST", "PATCH")]
NO_JSON = {
    "nothing but a word": b"word",
    "cut off": b'{"resourceId":',
    "more than one": b"{}{}",
    "not a number": b'{"title":NaN}',
    "infinity": b'{"title":-Infinity}',
    "invalid utf-8": b'{"title":"\xff\xfe"}',
    "another encoding": '{"title":"ü"}'.encode("utf-16"),
    "byte order mark": b"\xef\xbb\xbf{}",
    "single quotes": b"{'title':1}",
    "a comment": b"{/**/}",
    "deep": b"[" * 100_000,
    "deep and whole": b"[" * 1000 + b"]" * 1000,
    "deep object": b'{"a":' * 1000 + b"1" + b"}" * 1000,
    "many digits": b"1" * 5_000,
}
OBJECTS_ONLY = (b"[]", b"null", b"5", b'"x"', b"true", b"1e400")


def path_of(key: str) -> tuple[str, str]:
    """Method and path of a route, for thread `t`."""
    method, path = key.split(" ", 1)
    return method, path.replace("<thread>", "t")


def methods_of(path: str) -> set[str]:
    """What a path is served for."""
    known = {method for method, other in map(path_of, ROUTES) if other == path}
    return known | {"OPTIONS"} | ({"HEAD"} if "GET" in known else set())


@pytest.mark.parametrize("key", POSTS)
def test_body__what_is_no_json_object_is_400_on_every_route(api: Api, key: str) -> None:
    make_thread("r", "t", title="Kept")
    for name, raw in NO_JSON.items():
        answer = api.send(*path_of(key), raw)
        assert answer.status == 400 and answer.body["error"], (name, answer.raw)
    for raw in OBJECTS_ONLY:
        answer = api.send(*path_of(key), raw)
        assert answer.status == 400 and answer.body["error"], (raw, answer.raw)
    assert list(Thread.objects.values_list("title", flat=True)) == ["Kept"]


def test_body__null_is_no_body_and_below_it_no_value(api: Api) -> None:
    whole = api.send("POST", "threads/t/clone", b"null")
    assert whole.body["issues"] == [{"field": "root", "message": "No data provided"}]
    below = api.post("threads/t/clone", {"options": {"messageFilter": None}})
    (issue,) = below.body["issues"]
    assert issue["field"] == "options.messageFilter"
    assert issue["message"] == "This field may not be null."


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/vnd.api+json",
        "json",
        "",
    ],
)
def test_body__another_content_type_is_400_and_names_the_right_one(
    api: Api, content_type: str
) -> None:
    answer = api.send("POST", "threads", b'{"resourceId":"r"}', content_type=content_type)
    assert answer.status == 400 and "application/json" in answer.body["error"]
    assert not Thread.objects.exists()


def test_body__compressed_is_415(api: Api) -> None:
    body = gzip.compress(b'{"resourceId":"r"}')
    answer = api.send("POST", "threads", body, headers={"content-encoding": "gzip"})
    assert answer.status == 415 and "Content-Encoding: gzip" in answer.body["error"]
    plain = {"content-encoding": "identity"}
    assert api.send("POST", "threads", b'{"resourceId":"r"}', headers=plain).status == 200


@pytest.mark.parametrize(
    "content_type", ["application/json", "application/json; charset=utf-8", "APPLICATION/JSON"]
)
def test_body__json_under_its_names(api: Api, content_type: str) -> None:
    body = b'{"resourceId":"r","resourceId":"last","title":"\\ud800\\u0000"}'
    made = api.send("POST", "threads", body, content_type=content_type).body
    assert (made["resourceId"], made["title"]) == ("last", "\ufffd\ufffd")


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        (b"1e400", None),
        (b"-1e400", None),
        (b"1" + b"0" * 400, None),
        (b"1180591620717411303424", 1180591620717411300000),  # the same double
        (b"12345678901234567890", 12345678901234567890),
        (b"1.0", 1.0),
        (b"1e3", 1000),
        (b"1e-400", 0),
        (b"-0.0", 0),
        (b'"a\\u0000b"', "a\ufffdb"),
        (b'"\\udc00\\ud800"', "\ufffd\ufffd"),
        (b'{"\\u0000":1}', {"\ufffd": 1}),
        (b'{"a":1,"a":2}', {"a": 2}),
        (b'{"__proto__":{"x":1}}', {"__proto__": {"x": 1}}),
        (b"[" * 240 + b"]" * 240, None),
    ],
)
def test_metadata__what_is_stored_of_odd_values(api: Api, sent: bytes, stored: Any) -> None:
    raw = b'{"resourceId":"r","threadId":"t","metadata":{"x":' + sent + b"}}"
    made = api.send("POST", "threads", raw)
    assert made.status == 200
    assert made.body["metadata"] == api.get("threads/t").body["metadata"]
    if not sent.startswith(b"[["):
        assert made.body["metadata"]["x"] == stored


@pytest.mark.parametrize("key", POSTS)
def test_body__too_large_is_413_on_every_route(
    api: Api, memory_settings: Callable[..., None], key: str
) -> None:
    memory_settings(MAX_BODY_BYTES=100)
    make_thread("r", "t")
    answer = api.send(*path_of(key), b'{"x":"' + b"x" * 100 + b'"}')
    assert answer.status == 413 and "100 bytes" in answer.body["error"]


def test_body__as_large_as_allowed_is_taken(api: Api, memory_settings: Callable[..., None]) -> None:
    body = b'{"resourceId":"r"}'
    memory_settings(MAX_BODY_BYTES=len(body))
    assert api.send("POST", "threads", body).status == 200
    assert api.send("POST", "threads", body + b" ").status == 413


def test_body__a_length_that_is_no_number_is_400(api: Api) -> None:
    for length in ("x", "-5", "1.5"):
        answer = api.client.post(
            "/api/memory/threads?agentId=a", {}, format="json", CONTENT_LENGTH=length
        )
        assert answer.status_code == 400


@pytest.mark.parametrize("key", [key for key in ROUTES if key.startswith("GET")])
def test_head__answers_like_get_without_a_body(api: Api, key: str) -> None:
    make_thread("r", "t")
    seen = ROUTES[key].send(api, key, Named("r", "t", "m"))
    head = ROUTES[key].send(api, key.replace("GET", "HEAD"), Named("r", "t", "m"))
    assert head.status == seen.status and head.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("key", ROUTES)
def test_method__options_lists_methods_and_others_are_405(api: Api, key: str) -> None:
    make_thread("r", "t", title="Kept")
    answer = api.send("OPTIONS", path_of(key)[1])
    assert answer.status == 200 and key.split(" ")[0] in answer.headers["Allow"]
    allowed = answer.headers["Allow"].split(", ")
    for method in {"POST", "PUT", "PATCH", "DELETE", "TRACE"} - set(allowed):
        refused = api.send(method, path_of(key)[1], b'{"messageIds":["m"]}')
        assert refused.status == 405 and refused.body["error"], method
    assert sorted(allowed) == sorted(methods_of(path_of(key)[1]))


@pytest.mark.parametrize("path", ["nothing", "Threads", "threads/", "", "threads/t/nothing/more"])
def test_path__unknown_ones_are_404(api: Api, path: str) -> None:
    make_thread("r", "t")
    assert api.get(path).status == 404


@pytest.mark.parametrize("encoded", ["%00", "a%00b", "%EF%BF%BD"])
def test_path__odd_bytes_in_an_id_mean_the_cleaned_one(api: Api, encoded: str) -> None:
    for route in ("", "/messages", "/working-memory"):
        answer = api.get(f"threads/{encoded}{route}", {"resourceId": "r"})
        assert answer.status in (200, 404), answer.raw
    for route in ("/clone", "/transfer", "/working-memory"):
        body = {"resourceId": "r", "workingMemory": "x"}
        assert api.post(f"threads/{encoded}{route}", body).status == 404
    assert api.patch(f"threads/{encoded}", {}).status == 404
    assert api.delete(f"threads/{encoded}").status == 404


def test_path__an_id_that_is_too_long_is_nobodys(api: Api) -> None:
    long = "i" * 5_000
    assert api.get(f"threads/{long}").status == 404
    assert api.get(f"threads/{long}/messages").status == 404
    assert fields_of(api.post("threads", {"resourceId": "r", "threadId": long})) == ["threadId"]


def test_agent__each_route_that_needs_one_names_the_field(api: Api) -> None:
    make_thread("r", "t")
    silent = {"GET threads", "GET threads/<thread>", "GET threads/<thread>/messages"}
    for key, route in ROUTES.items():
        answer = route.send(api.through(None), key, Named("r", "t", "m"))
        plain = key.replace("network/", "")
        if plain in silent | {"POST threads/<thread>/transfer"} or "agentId" in (route.body or {}):
            assert answer.status < 500 and answer.status != 403, (key, answer.raw)
        else:
            assert fields_of(answer) == ["agentId"], key


def test_agent__an_unknown_one_reads_from_the_storage_and_writes_nothing(
    api: Api, memory_settings: Callable[..., None]
) -> None:
    memory_settings(AGENTS={"known": {"observationalMemory": True}, "none": None})
    make_thread("r", "t")
    for agent_id, refusal in (("missing", 404), ("none", 400)):
        agent = api.through(agent_id)
        for path in ("threads", "threads/t", "threads/t/messages", "threads/t/working-memory"):
            assert agent.get(path).status == 200, path
        assert agent.post("threads/t/transfer", {"resourceId": "r"}).status == 200
        for path, body in {
            "threads": {"resourceId": "r"},
            "threads/t/clone": {},
            "threads/t/working-memory": {"workingMemory": "x"},
            "save-messages": {"messages": []},
            "messages/delete": {"messageIds": []},
        }.items():
            assert agent.post(path, body).status == refusal, path
        assert agent.patch("threads/t", {}).status == refusal
        assert agent.delete("threads/t").status == refusal
        search = {"searchQuery": "x", "resourceId": "r"}
        assert agent.get("search", search).status == refusal


def test_query__more_parameters_than_django_reads_is_400(api: Api) -> None:
    answer = api.get("threads", {f"p{number}": 1 for number in range(1_001)})
    assert (answer.status, answer.body) == (400, {"error": "Too many query parameters"})


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("save-messages", {"messages": [0] * 5_000}),
        ("messages/delete", {"messageIds": [0] * 5_000}),
        ("threads/t/clone", {"options": {"messageFilter": {"messageIds": [0] * 5_000}}}),
        ("threads/t/context", {"newMessages": [0] * 5_000}),
    ],
)
def test_body__many_errors_get_a_short_answer(api: Api, path: str, body: Any) -> None:
    make_thread("r", "t")
    answer = api.post(path, body)
    assert 1 <= len(fields_of(answer)) <= 100 and len(answer.raw) < 10_000


def call_wsgi(token: str, method: str, path: str, body: bytes) -> str:
    """Send a request without the test client, which keeps responses; return the status."""
    environ: dict[str, Any] = {
        "REQUEST_METHOD": method,
        "PATH_INFO": BASE + path,
        "QUERY_STRING": "agentId=test-agent",
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": str(len(body)),
        "HTTP_AUTHORIZATION": f"Bearer {token}",
        "wsgi.input": io.BytesIO(body),
    }
    setup_testing_defaults(environ)
    statuses: list[str] = []
    handler: Any = WSGIHandler()
    response = handler(environ, lambda status, headers: statuses.append(status))
    assert b"".join(response)
    response.close()
    return statuses[0][:3]


def test_body__is_freed_with_its_request_and_not_by_the_garbage_collector(
    transactional_db: None,
) -> None:
    thread = make_thread("r", "t")
    message = a_message(thread, "m")
    token = AccessToken(user=make_user("caller", unscoped=True))
    secret = token.generate_secret()
    token.save()
    requests: list[tuple[str, str, Any, str]] = [
        ("POST", "save-messages", {"messages": [message]}, "200"),
        ("POST", "save-messages", {"messages": [message | {"role": "robot"}]}, "400"),
        ("POST", "save-messages", {"messages": [message | {"threadId": "unknown"}]}, "404"),
        ("GET", "threads/t/messages", None, "200"),
        ("PATCH", "threads/t", {"title": "x"}, "200"),
        ("POST", "threads/t/clone", {}, "200"),
    ]
    for _ in range(2):
        for method, path, body, status in requests:
            gc.collect()
            before = count_requests()
            gc.disable()
            try:
                assert call_wsgi(secret, method, path, dumped(body)) == status
                assert count_requests() == before, (method, path, status)
            finally:
                gc.enable()


def count_requests() -> int:
    """Return how many requests and responses are in memory."""
    kinds = (Request, HttpResponseBase)
    return sum(issubclass(type(item), kinds) for item in gc.get_objects())
