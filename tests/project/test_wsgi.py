"""What the web server gets from us."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.signals import request_finished
from django.test import RequestFactory

from mastra_memory.api.base import LARGE_ANSWER
from mastra_memory.memory import Memory
from project.models import AccessToken
from project.wsgi import application
from tests.factories import a_message, fill, make_thread, make_user
from tests.real_server import real_server

MB = 1024 * 1024


@pytest.fixture
def finished() -> Iterator[list[Any]]:
    """The requests that have come to their end."""
    ended: list[Any] = []

    def note(sender: Any, **_: Any) -> None:
        ended.append(sender)

    request_finished.connect(note)
    yield ended
    request_finished.disconnect(note)


def call(method: str, path: str, **headers: str) -> tuple[str, dict[str, str], Any]:
    """Call the application as a server does: status, headers, answer."""
    told: list[Any] = []

    def start_response(status: str, found: Any, error: Any = None, /) -> Any:
        told.extend((status, found))

    environ = RequestFactory().generic(method, path, headers=headers).environ
    answer = application(environ, start_response)
    return told[0], dict(told[1]), answer


@pytest.mark.django_db(transaction=True)
def test_application__a_whole_answer_is_one_piece(finished: list[Any]) -> None:
    status, headers, answer = call("GET", "/healthz")
    assert (status, answer) == ("200 OK", [b'{"status": "ok"}'])
    assert headers["Content-Type"] == "application/json"
    assert len(finished) == 1


@pytest.mark.django_db(transaction=True)
def test_application__a_large_answer_comes_in_pieces(finished: list[Any]) -> None:
    fill(Memory().create_thread("r", thread_id="long"), 60, text="x" * (LARGE_ANSWER // 50))
    token = AccessToken(user=make_user("ana", unscoped=True))
    secret = token.give_secret()
    token.save()
    path = "/api/memory/threads/long/clone?agentId=a"
    status, _headers, answer = call("POST", path, authorization=f"Bearer {secret}")
    assert status == "200 OK"
    assert not isinstance(answer, list)
    pieces = list(answer)
    answer.close()
    assert len(pieces) > 1
    assert len(finished) == 1


@pytest.mark.django_db(transaction=True)
def test_application__a_length_that_is_no_number_is_none(finished: list[Any]) -> None:
    environ = RequestFactory().get("/healthz").environ | {"CONTENT_LENGTH": "many"}
    assert application(environ, lambda *_: lambda _: None) == [b'{"status": "ok"}']


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_application__large_bodies_do_not_stay_in_memory(tmp_path: Path) -> None:
    thread = make_thread("r", "t")
    large = {"messages": [a_message(thread, "m", text="x" * 10 * MB)]}
    refused = {"messages": [large["messages"][0] | {"role": "robot"}]}
    nowhere = {"messages": [large["messages"][0] | {"threadId": "u"}]}
    with real_server(tmp_path) as server:
        path = "save-messages?agentId=a"
        assert server.send("POST", path, large)[0] == 200
        before = server.forget_peak()
        for _ in range(20):
            assert server.send("POST", path, refused)[0] == 400
            assert server.send("POST", path, nowhere)[0] == 404
            assert server.send("GET", "threads/t/messages")[0] == 200
        assert server.peak() - before < 300 * MB
