"""The web server itself: bodies without a length, bodies too large, odd paths, parallel clients."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mastra_memory.models import Message, Thread
from project.rsgi import MAX_ANONYMOUS_BODY_BYTES
from tests.support.factories import a_message, make_thread
from tests.support.live_server import RealServer, real_server

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
AGENT = "?agentId=a"
LIMIT = 200_000
JSON = "application/json"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RealServer]:
    """A server that takes bodies of up to 200 kB."""
    with real_server(tmp_path, MASTRA_MEMORY_MAX_BODY_BYTES=str(LIMIT)) as running:
        yield running


def in_chunks(body: bytes, size: int = 10_000) -> Iterator[bytes]:
    """The body cut up, so that it is sent without a length."""
    for start in range(0, len(body), size):
        yield body[start : start + size]


def test_server__takes_refuses_and_finds(server: RealServer) -> None:
    """One server for many questions, since it takes seconds to start."""
    bodies_without_a_length(server)
    bodies_too_large(server)
    send_unauthenticated_bodies(server)
    paths_that_clients_send(server)
    pairs_of_parallel_clients(server)


def bodies_without_a_length(server: RealServer) -> None:
    title = "x" * 30_000
    body = json.dumps({"resourceId": "r", "threadId": "chunked", "title": title}).encode()
    status, raw = server.send("POST", f"threads{AGENT}", in_chunks(body), chunked=True)
    assert status == 200, raw
    assert Thread.objects.get(pk="chunked").title == title
    for size in (LIMIT, 5_000_000):
        large = b'{"x":"' + b"x" * size + b'"}'
        status, raw = server.send("POST", f"threads{AGENT}", in_chunks(large), chunked=True)
        assert (status, "error" in json.loads(raw)) == (413, True)


def bodies_too_large(server: RealServer) -> None:
    for size in (LIMIT, 5_000_000):
        status, raw = server.send("POST", f"threads{AGENT}", b'{"x":"' + b"x" * size + b'"}')
        assert status == 413 and str(LIMIT) in json.loads(raw)["error"]
    status, raw = server.send("POST", f"threads{AGENT}", {"resourceId": "r", "threadId": "after"})
    assert status == 200, raw


def send_unauthenticated_bodies(server: RealServer) -> None:
    """A caller without credentials is refused, with a small body allowed at most."""
    for size, status in ((10, 401), (MAX_ANONYMOUS_BODY_BYTES + 1, 413)):
        client = server.connect()
        body = b'{"x":"' + b"x" * size + b'"}'
        client.request("POST", f"/api/memory/threads{AGENT}", body, {"Content-Type": JSON})
        answer = client.getresponse()
        assert (answer.status, "error" in json.loads(answer.read())) == (status, True)
        client.close()


def paths_that_clients_send(server: RealServer) -> None:
    names = {"a/b": "a%2Fb", "..": "%2e%2e", ".": ".", "a?b": "a%3Fb", "ü☃": "%C3%BC%E2%98%83"}
    names |= {"%2e": "%252e", "a\nb": "a%0Ab", "a b": "a%20b", "+": "+", "x/..": "x/.."}
    for name, encoded in names.items():
        body = {"resourceId": "r", "threadId": name}
        assert server.send("POST", f"threads{AGENT}", body)[0] == 200
        status, raw = server.send("GET", f"threads/{encoded}")
        assert (status, json.loads(raw)["id"]) == (200, name)
        assert server.send("GET", f"threads/{encoded}/messages")[0] == 200
        assert server.send("DELETE", f"threads/{encoded}{AGENT}")[0] == 200
    for odd in ("%00", "%FF%FE", "%", "%zz", "a%2", "i" * 5_000):
        status, raw = server.send("GET", f"threads/{odd}")
        assert status in (400, 404, 414) and b"Traceback" not in raw
    assert server.send("GET", "threads", headers={"Authorization": "Bearer \xff"})[0] == 401


def pairs_of_parallel_clients(server: RealServer) -> None:
    thread = make_thread("r", "talk")

    def talk(client: int) -> set[int]:
        pairs = (
            [a_message(thread, text=f"{client}.{turn}.{who}", role=who) for who in ROLES]
            for turn in range(6)
        )
        posts = [server.send("POST", f"save-messages{AGENT}", {"messages": p}) for p in pairs]
        return {status for status, _ in posts}

    with ThreadPoolExecutor(8) as pool:
        assert set().union(*pool.map(talk, range(8))) == {200}
    _, raw = server.send("GET", f"threads/talk/messages{AGENT}&perPage=100")
    message_texts = [
        message["content"]["parts"][0]["text"] for message in json.loads(raw)["messages"]
    ]
    assert len(message_texts) == 8 * 6 * 2 == Message.objects.filter(thread_id="talk").count()
    for question, reply in zip(message_texts[::2], message_texts[1::2], strict=True):
        assert question.endswith("user")
        assert reply == question.replace("user", "assistant")


ROLES = ("user", "assistant")
