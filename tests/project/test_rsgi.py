"""The application that the web server loads: slow, large and refused bodies, chunked answers."""

import http.client
import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from mastra_memory.api.views.base import MIN_STREAMED_BYTES
from mastra_memory.memory import Memory
from tests.support.factories import a_message, fill, make_thread
from tests.support.live_server import RealServer, real_server

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
MB = 1024 * 1024
SLOW_CONNECTIONS = 200
BODY_TIMEOUT = 10
TIMEOUT_SECONDS = 60.0
"""Seconds within which anything is answered, on a busy machine too."""
HEAD = """POST {path} HTTP/1.1\r
Host: 127.0.0.1\r
Content-Type: {kind}\r
Content-Length: 1000\r
\r
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RealServer]:
    with real_server(tmp_path, BODY_TIMEOUT=str(BODY_TIMEOUT)) as running:
        yield running


def start_request(server: RealServer, text: str) -> socket.socket:
    """Open a connection and send the beginning of a request."""
    client = socket.create_connection(("127.0.0.1", server.port), TIMEOUT_SECONDS)
    client.sendall(text.encode())
    return client


def status_of(client: socket.socket) -> tuple[int, str]:
    """Return the status that arrives on a connection, and the Connection header."""
    answer = http.client.HTTPResponse(client)
    answer.begin()
    answer.read()
    return answer.status, answer.getheader("Connection", "")


def test_slow_bodies__leave_health_and_other_requests_answered(server: RealServer) -> None:
    kinds = {"/admin/login/": "application/x-www-form-urlencoded"}
    kinds["/api/memory/threads?agentId=a"] = "application/json"
    heads = [HEAD.format(path=path, kind=kind) for path, kind in kinds.items()]
    with ExitStack() as stack:
        slow = [
            stack.enter_context(start_request(server, heads[number % 2]))
            for number in range(SLOW_CONNECTIONS)
        ]
        incomplete = [stack.enter_context(start_request(server, "GET / HT")) for _ in range(50)]
        for client in slow:
            client.sendall(b"x")
        with closing(server.connect()) as health:
            health.request("GET", "/healthz")
            assert health.getresponse().status == 200
        assert server.send("GET", "threads")[0] == 200
        assert server.send("POST", "threads?agentId=a", {"resourceId": "r"})[0] == 200
        # All of them are still waiting: it was not their end that let the others through.
        for client in slow:
            client.sendall(b"x")
        assert {status_of(client) for client in slow} == {(408, "close")}
        for client in incomplete:
            assert client.recv(100) == b""


def test_body__that_is_cut_off_changes_nothing(server: RealServer) -> None:
    head = HEAD.format(path="/api/memory/threads?agentId=a", kind="application/json")
    head = head.replace("\r\n\r\n", f"\r\nAuthorization: Bearer {server.token}\r\n\r\n")
    with start_request(server, head + '{"resourceId": "r", "threadId": "cut"}') as client:
        client.shutdown(socket.SHUT_WR)
        assert not client.recv(1000).startswith(b"HTTP/1.1 200")
    assert server.send("GET", "threads/cut")[0] == 404


def test_body__steady_transfer_may_exceed_the_timeout(server: RealServer) -> None:
    body = json.dumps({"resourceId": "r", "metadata": {"text": "x" * 200_000}}).encode()
    half = len(body) // 2

    def halves() -> Iterator[bytes]:
        yield body[:half]
        time.sleep(BODY_TIMEOUT + 1)  # allowed because of what has arrived before
        yield body[half:]

    assert server.send("POST", "threads?agentId=a", halves(), chunked=True)[0] == 200


@pytest.mark.parametrize("token", ["", "Bearer nonsense"])
def test_refused_post__leaves_the_connection_usable(server: RealServer, token: str) -> None:
    body = json.dumps({"resourceId": "r", "title": "x" * 100_000})
    headers = {"Content-Type": "application/json", "Authorization": token}
    sent = {name: value for name, value in headers.items() if value}
    with closing(server.connect()) as client:
        for number in range(200):
            client.request("POST", "/api/memory/threads?agentId=a", body, sent)
            refused = client.getresponse()
            assert (refused.status, refused.getheader("Connection")) == (401, None), number
            refused.read()
            client.request("GET", "/api/memory/threads", headers={"Authorization": "Bearer x"})
            assert client.getresponse().read().startswith(b'{"error"')


def test_body__with_credentials_may_be_large(server: RealServer) -> None:
    body = {"resourceId": "r", "title": "t", "metadata": {"x": "y" * 5 * MB}}
    assert server.send("POST", "threads?agentId=a", body)[0] == 200
    with closing(server.connect()) as client:
        client.request("POST", "/admin/login/", b"x" * 2 * MB)
        answer = client.getresponse()
        assert (answer.status, answer.getheader("Connection")) == (413, "close")
        assert b"1048576 bytes" in answer.read()


def test_body__that_a_client_announces_and_may_not_send(server: RealServer) -> None:
    head = HEAD.format(path="/admin/login/", kind="text/plain").replace("1000", "9000000")
    with start_request(server, head.replace("\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n")) as it:
        assert status_of(it) == (413, "close")


def test_request__headers_with_underscores_or_odd_signs(server: RealServer) -> None:
    token = f"Bearer {server.token}"
    for headers, status in (
        ({"Authorization": token, "X-Odd": "\xfc\xff"}, 200),
        ({"Authorization": token, "X_Odd": "1"}, 200),
        ({"Author_ization": token}, 401),
    ):
        with closing(server.connect()) as client:
            client.request("GET", "/api/memory/threads", headers=headers)
            assert client.getresponse().status == status


def test_large_answer__slow_reader_does_not_block_others(server: RealServer) -> None:
    fill(Memory().create_thread("r", thread_id="long"), 60, text="x" * (MIN_STREAMED_BYTES // 4))
    clone = "POST /api/memory/threads/long/clone?agentId=a HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    clone += f"Authorization: Bearer {server.token}\r\n\r\n"
    with ExitStack() as stack:
        readers = [stack.enter_context(start_request(server, clone)) for _ in range(4)]
        for reader in readers:
            assert reader.recv(15) == b"HTTP/1.1 200 OK"
        assert server.send("GET", "threads")[0] == 200
    status, raw = server.send("POST", "threads/long/clone?agentId=a", b"")
    assert status == 200 and len(json.loads(raw)["clonedMessages"]) == 60


def test_large_bodies__do_not_stay_in_memory(server: RealServer) -> None:
    thread = make_thread("r", "t")
    large = {"messages": [a_message(thread, "m", text="x" * 10 * MB)]}
    refused = {"messages": [large["messages"][0] | {"role": "robot"}]}
    nowhere = {"messages": [large["messages"][0] | {"threadId": "u"}]}
    path = "save-messages?agentId=a"
    assert server.send("POST", path, large)[0] == 200
    before = server.forget_peak()
    for _ in range(20):
        assert server.send("POST", path, refused)[0] == 400
        assert server.send("POST", path, nowhere)[0] == 404
        assert server.send("GET", "threads/t/messages")[0] == 200
    assert server.peak() - before < 300 * MB
