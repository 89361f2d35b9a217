"""The benchmark's own parts: what it sends, how it reads answers, how it sums them up."""

import json
import socket
import threading
from collections.abc import Iterator

import pytest

from benchmarks import data, lines, load, table
from benchmarks.contest import Rates

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"


@pytest.mark.parametrize("answer", [PLAIN, CHUNKED])
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_answer__is_whole_with_its_last_byte(answer: bytes, size: int) -> None:
    reader = load.Answer()
    pieces = [answer[start : start + size] for start in range(0, len(answer), size)]
    assert [reader.feed(piece) for piece in pieces] == [False] * (len(pieces) - 1) + [True]


def _job(port: int = 0, **more: object) -> load.Job:
    values = {"method": "GET", "path": "/x", "headers": {}, "connections": 2, "seconds": 5}
    return load.Job(port=port, **(values | more))  # type: ignore[arg-type]


def test_requests__numbers_are_new_and_lanes_go_round() -> None:
    body = f"{load.NUMBER} {load.LANE}"
    requests = load.Requests(_job(method="POST", body=body, first=70, lanes=64, most=2))
    sent = [requests.next() for _ in range(3)]
    assert sent[2] is None
    assert sent[0] is not None and sent[0].endswith(b"\r\n\r\n00000070 000006")
    assert sent[1] is not None and sent[1].endswith(b"\r\n\r\n00000071 000007")
    assert f"Content-Length: {len(body)}".encode() in sent[0]


@pytest.fixture
def refusing_server() -> Iterator[int]:
    """A server that takes connections and answers every request with 500."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer(connection: socket.socket) -> None:
            with connection:
                while connection.recv(65536):
                    connection.sendall(b"HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n\r\nno")

        def serve() -> None:
            for _ in range(2):
                threading.Thread(target=answer, args=(listener.accept()[0],)).start()

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


def test_run__counts_answers_and_keeps_the_first_failure(refusing_server: int) -> None:
    outcome = load.run(_job(refusing_server, most=10))
    assert outcome.answers == 10
    assert outcome.first_failure.startswith("HTTP/1.1 500 Oops")


def test_lines__bodies_are_json_and_as_long_as_the_answer_must_be() -> None:
    for line in lines.LINES:
        if "save-messages" in line.path:
            assert line.holds == ("messages", len(json.loads(line.body)["messages"]))


def test_chosen_lines__by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_ONLY", "page40, thread")
    assert [line.name for line in lines.chosen_lines()] == ["thread", "page40"]
    monkeypatch.setenv("BENCH_ONLY", "pgae40")
    with pytest.raises(SystemExit, match="pgae40"):
        lines.chosen_lines()


def test_data__is_the_same_every_time_and_belongs_together() -> None:
    known = {thread_id for thread_id, _, _ in data.threads()}
    first = [row for row, _ in zip(data.messages(), range(500), strict=False)]
    assert first == [row for row, _ in zip(data.messages(), range(500), strict=False)]
    assert {row[1] for row in first} <= known
    assert json.loads(first[4][4])["metadata"] == {"turn": 5, "channel": "web"}


def test_as_json__medians_and_their_ratio() -> None:
    results = {"thread": {"ours": Rates([30, 10, 20]), "mastra": Rates([8, 10, 12])}}
    assert table.as_json(results) == {"thread": {"ours": 20, "mastra": 10, "ratio": 2.0}}
    assert "2.00" in table.versus(results, 8)
    assert "50%" in table.versus(results, 8)
