"""The parts of the benchmark: what is sent, how responses are read and how they are summed up."""

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import dataset, load_generator, report, scenarios, targets
from benchmarks.load_generator import Job, Request
from benchmarks.runner import Rates

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"


@pytest.mark.parametrize("response", [PLAIN, CHUNKED])
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_response__is_complete_with_its_last_byte(response: bytes, size: int) -> None:
    reader = load_generator.Response()
    chunks = [response[start : start + size] for start in range(0, len(response), size)]
    assert [reader.feed(chunk) for chunk in chunks] == [False] * (len(chunks) - 1) + [True]


def make_job(*requests: Request, port: int = 0, **options: object) -> Job:
    values = {"headers": {}, "connections": 2, "seconds": 5} | options
    return Job(port=port, requests=list(requests), **values)  # type: ignore[arg-type]


def test_runs__numbers_are_unique_and_slots_repeat() -> None:
    body = f"{load_generator.NUMBER} {load_generator.SLOT}"
    job = make_job(Request(method="POST", path="/x", body=body), first_number=70, max_runs=2)
    runs = load_generator.Runs(job)
    first, second, third = runs.next(), runs.next(), runs.next()
    assert third is None
    assert first is not None and first[0].endswith(b"\r\n\r\n00000070 000006")
    assert second is not None and second[0].endswith(b"\r\n\r\n00000071 000007")
    assert f"Content-Length: {len(body)}".encode() in first[0]


class RecordingServer:
    """A server that answers every request with the same response and records the paths."""

    def __init__(self, response: bytes, connections: int) -> None:
        self.response = response
        self.paths: list[bytes] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self._accept, args=(connections,))
        self.thread.start()

    def _accept(self, connections: int) -> None:
        threads = []
        for _ in range(connections):
            connection = self.listener.accept()[0]
            threads.append(threading.Thread(target=self._respond, args=(connection,)))
            threads[-1].start()
        for thread in threads:
            thread.join()

    def _respond(self, connection: socket.socket) -> None:
        with connection:
            while data := connection.recv(65536):
                self.paths.append(data.split()[1])
                connection.sendall(self.response)

    def close(self) -> None:
        self.thread.join()
        self.listener.close()


@pytest.fixture
def failing_server() -> Iterator[RecordingServer]:
    response = b"HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n\r\nno"
    server = RecordingServer(response, connections=2)
    yield server
    server.close()


@pytest.fixture
def working_server() -> Iterator[RecordingServer]:
    server = RecordingServer(PLAIN, connections=1)
    yield server
    server.close()


def test_generate_load__counts_runs_and_keeps_the_first_error(
    failing_server: RecordingServer,
) -> None:
    job = make_job(Request(path="/x"), port=failing_server.port, max_runs=10)
    outcome = load_generator.generate_load(job)
    assert outcome.runs == 10
    assert outcome.first_error.startswith("HTTP/1.1 500 Oops")


def test_generate_load__a_run_sends_its_requests_in_order(
    working_server: RecordingServer,
) -> None:
    steps = (Request(path="/context"), Request(path="/save"))
    job = make_job(*steps, port=working_server.port, connections=1, max_runs=2)
    outcome = load_generator.generate_load(job)
    assert (outcome.runs, outcome.first_error) == (2, "")
    assert working_server.paths == [b"/context", b"/save"] * 2


def test_scenarios__saved_messages_match_the_expected_response() -> None:
    for scenario in scenarios.SCENARIOS:
        for step in (*scenario.steps, *scenario.mastra_steps):
            if "save-messages" in step.path:
                saved = json.loads(step.body)["messages"]
                assert (step.list_name, step.list_length) == ("messages", len(saved))


def test_scenarios__a_turn_saves_the_same_messages_on_both_servers() -> None:
    (turn,) = scenarios.scenarios_named(["turn"])
    assert turn.steps_for("ours")[-1] == turn.steps_for("mastra")[-1]
    assert len(turn.steps_for("mastra")) == 3
    (thread,) = scenarios.scenarios_named(["thread"])
    assert thread.steps_for("mastra") == thread.steps_for("ours")


def test_selected_scenarios__are_named_in_bench_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_ONLY", "page40, thread")
    assert [scenario.name for scenario in scenarios.selected_scenarios()] == ["thread", "page40"]
    monkeypatch.setenv("BENCH_ONLY", "pgae40")
    with pytest.raises(SystemExit, match="pgae40"):
        scenarios.selected_scenarios()


def test_dataset__is_deterministic_and_consistent() -> None:
    thread_ids = {thread_id for thread_id, _, _ in dataset.threads()}
    first = [row for row, _ in zip(dataset.messages(), range(500), strict=False)]
    assert first == [row for row, _ in zip(dataset.messages(), range(500), strict=False)]
    assert {row[1] for row in first} <= thread_ids
    assert json.loads(first[4][4])["metadata"] == {"turn": 5, "channel": "web"}


def test_report__medians_and_ratios_for_both_set_ups() -> None:
    rates = {"ours": Rates([30, 10, 20]), "mastra": Rates([8, 10, 12]), "one_process": Rates([5])}
    assert report.as_json({"thread": rates}) == {
        "thread": {
            "ours": 20,
            "mastra": 10,
            "ratio": 2.0,
            "one_process": {"ours": 5, "mastra": 10, "ratio": 0.5},
        }
    }
    table = report.comparison_table({"thread": rates}, 8)
    assert "2.00" in table
    assert "0.50" in table
    assert "50%" in table


def test_our_environment__names_the_benchmark_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://production")
    var_dir = Path("/tmp/benchmark")
    database_url = targets.our_environment(var_dir)["DATABASE_URL"]
    assert database_url == targets.database_url(var_dir, targets.OUR_DATABASE)
