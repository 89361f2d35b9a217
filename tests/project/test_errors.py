"""Errors below `/api/` are JSON, and responses of the API are not cached."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import Client
from pytest_django import Settings

from mastra_memory.memory import Memory
from tests.api.routes import ROUTES, Named
from tests.conftest import Person
from tests.support.factories import make_thread

THREADS = "/api/memory/threads"
SESSION = "x" * 32


@pytest.fixture
def visitor() -> Client:
    """A client that gets the answer to an exception, as over the network."""
    return Client(raise_request_exception=False)


@pytest.fixture
def no_database() -> Iterator[None]:
    """Refuse every statement as PostgreSQL's driver does when the server is away."""

    def refuse(*_: Any) -> Any:
        raise OperationalError("connection refused")

    with connection.execute_wrapper(refuse):
        yield


def assert_json_error(reply: Any, status: int) -> None:
    assert (reply.status_code, reply.headers["Content-Type"]) == (status, "application/json")
    assert isinstance(reply.json()["error"], str)
    assert reply.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("path", ["/api", "/api/", "/api/nothing", "/api/memory", "/api/a\n/b?c"])
@pytest.mark.parametrize("debug", [True, False])
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_unknown_path__is_404_in_json(
    settings: Settings, path: str, debug: bool, method: str
) -> None:
    settings.DEBUG = debug
    client = Client(enforce_csrf_checks=True)
    assert_json_error(client.generic(method, path, headers={"accept": "text/html"}), 404)


def test_unknown_path__elsewhere_is_a_page(visitor: Client) -> None:
    reply = visitor.get("/apiary")
    assert (reply.status_code, reply.headers["Content-Type"][:9]) == (404, "text/html")


@pytest.mark.parametrize("name", ["schema", "docs"])
def test_public_page__is_found_without_its_last_slash(visitor: Client, name: str) -> None:
    reply = visitor.get(f"/api/{name}")
    assert (reply.status_code, reply.headers["Location"]) == (302, f"/api/{name}/")


@pytest.mark.parametrize("path", ["/api/schema/", "/api/docs/"])
def test_public_page__needs_no_database_for_any_headers(
    visitor: Client, no_database: None, path: str
) -> None:
    visitor.cookies["sessionid"] = SESSION
    assert visitor.get(path, headers={"authorization": "Bearer x"}).status_code == 200


def test_public_page__refuses_in_json(visitor: Client) -> None:
    assert_json_error(visitor.post("/api/schema/"), 405)
    assert_json_error(visitor.post("/api/docs/"), 405)
    assert_json_error(visitor.get("/api/schema/", headers={"accept": "image/png"}), 406)


@pytest.mark.django_db
@pytest.mark.parametrize("headers", [{"authorization": "Bearer x"}, {}])
def test_database_away__is_503_with_retry_after(
    visitor: Client, no_database: None, headers: dict[str, str]
) -> None:
    visitor.cookies["sessionid"] = SESSION
    reply = visitor.get(THREADS, headers=headers | {"accept": "text/html"})
    assert_json_error(reply, 503)
    assert reply.headers["Retry-After"] == "5"


@pytest.mark.django_db
def test_fault_of_ours__is_500_in_json(
    visitor: Client, boss: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError("secret")

    monkeypatch.setattr(Memory, "list_threads", fail)
    visitor.force_login(boss.user)
    reply = visitor.get(THREADS, headers={"accept": "text/html"})
    assert_json_error(reply, 500)
    assert b"secret" not in reply.content


@pytest.mark.django_db
def test_bad_host__is_400_in_json(visitor: Client, settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["memory.example.com"]
    assert_json_error(visitor.get(THREADS, headers={"host": "evil.example"}), 400)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{", {}, 400),
        (b"\xff\xfe", {}, 400),
        (b'{"resourceId": "\xff"}', {}, 400),
        (b"[" * 5000, {}, 400),
        (b"{}", {"content-type": "text/plain"}, 400),
        (b"{}", {"content-type": "application/json; charset=none-such"}, 400),
        (b"{}", {"content-encoding": "gzip"}, 415),
        (b"{}", {"content-length": "-1"}, 400),
        (b"{}", {"content-length": "two"}, 400),
    ],
)
def test_body__that_cannot_be_read_is_refused_in_json(
    visitor: Client, boss: Person, body: bytes, headers: dict[str, str], status: int
) -> None:
    visitor.force_login(boss.user)
    kind = headers.pop("content-type", "application/json")
    reply = visitor.generic(
        "POST",
        f"{THREADS}?agentId=a",
        body,
        content_type=kind,
        headers=headers | {"accept": "text/html"},
    )
    assert_json_error(reply, status)


@pytest.mark.parametrize("key", ROUTES)
@pytest.mark.parametrize("accept", ["application/json", "text/html"])
def test_answer__is_never_stored_by_caches(boss: Person, key: str, accept: str) -> None:
    make_thread("r", "t")
    answer = ROUTES[key].send(boss.api, key, Named("r", "t", "m"), accept)
    assert answer.headers["Cache-Control"] == "no-store"
