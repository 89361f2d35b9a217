"""What middleware does for pages, and what it leaves out for programs."""

import pytest
from django.http import HttpRequest
from django.test import Client, RequestFactory
from django.utils import translation
from pytest_django import Settings

from project.middleware import is_api_request
from project.models import AccessToken
from tests.support.factories import make_user

THREADS = "/api/memory/threads"


@pytest.fixture
def bearer(db: None) -> dict[str, str]:
    """The Authorization header of a user with an access token."""
    token = AccessToken(user=make_user("ana", unscoped=True))
    secret = token.generate_secret()
    token.save()
    return {"authorization": f"Bearer {secret}"}


@pytest.mark.parametrize(
    ("path", "headers", "program"),
    [
        (THREADS, {}, True),
        (f"{THREADS}/a", {"accept": "application/json"}, True),
        (THREADS, {"cookie": "sessionid=x"}, False),
        (THREADS, {"accept": "text/html,*/*"}, False),
        ("/admin/", {}, False),
        ("/api/docs/", {}, False),
    ],
)
def test_is_of_program(path: str, headers: dict[str, str], program: bool) -> None:
    request: HttpRequest = RequestFactory().get(path, headers=headers)
    assert is_api_request(request) is program


def test_program__gets_no_session_and_no_language(client: Client, bearer: dict[str, str]) -> None:
    reply = client.get(THREADS, headers={**bearer, "accept-language": "de"})
    assert reply.status_code == 200
    assert not hasattr(reply.wsgi_request, "session")
    assert (reply.cookies, reply.headers.get("Content-Language")) == ({}, None)
    assert reply.headers["Vary"] == "Accept"


def test_program__is_guarded_like_everybody(
    client: Client, bearer: dict[str, str], settings: Settings
) -> None:
    reply = client.get(THREADS, headers=bearer)
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    assert reply.headers["X-Frame-Options"] == "DENY"
    assert client.get(THREADS).status_code == 401
    settings.ALLOWED_HOSTS = ["memory.example.com"]
    assert client.get(THREADS, headers={**bearer, "host": "evil.example"}).status_code == 400
    settings.SECURE_SSL_REDIRECT = True
    here = {**bearer, "host": "memory.example.com"}
    assert Client().get(THREADS, headers=here).status_code == 301


def test_browser__is_known_by_its_session(client: Client, db: None) -> None:
    client.force_login(make_user("ana", unscoped=True))
    assert client.get(THREADS).status_code == 200
    page = client.get(THREADS, headers={"accept": "text/html", "accept-language": "de"})
    assert page.status_code == 200
    assert page.headers["Content-Language"] == "de"
    assert b"csrfmiddlewaretoken" in page.content
    # Who is known by a session must also show that the call comes from our own pages.
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(make_user("bob", unscoped=True))
    refused = strict.post(f"{THREADS}?agentId=a", {"resourceId": "r"}, "application/json")
    assert refused.status_code == 403


@pytest.mark.parametrize("page", ["/admin/login/", THREADS])
def test_language__ends_with_the_request(client: Client, db: None, page: str) -> None:
    german = {"accept": "text/html", "accept-language": "de"}
    assert client.get(page, headers=german).headers["Content-Language"] == "de"
    assert translation.get_language() == "en-us"
    assert client.get(THREADS).json() == {"error": "Authentication credentials were not provided."}


def test_language__data_is_the_same_in_all(client: Client, db: None) -> None:
    client.force_login(make_user("ana", unscoped=True))
    german = {"accept-language": "de"}
    reply = client.post(f"{THREADS}?agentId=a", {}, "application/json", headers=german)
    assert reply.json()["issues"] == [{"field": "resourceId", "message": "This field is required."}]
