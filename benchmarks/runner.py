"""Measure scenarios: all servers in turns, under the same load, several rounds."""

import json
import os
import statistics
import subprocess
import sys
import time
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.load_generator import Job, Outcome, Request, fill_placeholders
from benchmarks.scenarios import Scenario, Step
from benchmarks.targets import Target
from tests.support.servers import ROOT, ServerError, say

SECONDS = float(os.environ.get("BENCH_SECONDS", "1.0"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
SCENARIO_SECONDS = 12.0
"""A scenario that has taken this long gets no further round."""
WARM_UP_SECONDS = 0.3
WARM_UP_CONNECTIONS = 16
"""Enough for each web process to get one: its first request takes most of a second."""
MAX_WARM_UP_RUNS = 400
SLOW_SECONDS = 0.2
"""A response that takes this long is not warmed up: the first one did it."""
DELETIONS_PER_CONNECTION = 1


@dataclass(slots=True)
class Rates:
    """Runs per second of one server in one scenario, one figure per round."""

    rounds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """The median of the rounds."""
        return statistics.median(self.rounds)

    @property
    def spread(self) -> float:
        """The distance between the fastest and the slowest round as a share of the median."""
        return (max(self.rounds) - min(self.rounds)) / self.median


Results = dict[str, dict[str, Rates]]
"""Rates by the name of the scenario, then by the name of the target."""
CreateDisposableThreads = Callable[[int, int], None]
"""Called with the first number and the count."""


class Runner:
    """Send the same scenarios to several servers.

    Every run has a number of its own, also across servers, so that ids never repeat.
    """

    def __init__(
        self,
        targets: Sequence[Target],
        create_disposable_threads: CreateDisposableThreads,
        first_number: int = 1,
    ) -> None:
        self.targets = targets
        self.create_disposable_threads = create_disposable_threads
        self.next_number = first_number

    def with_targets(self, targets: Sequence[Target]) -> "Runner":
        """Return a runner for other servers that continues the numbers of this one."""
        return Runner(targets, self.create_disposable_threads, self.next_number)

    def measure(self, scenarios: Iterable[Scenario], connections: int) -> Results:
        """Measure every scenario with this number of connections.

        Raises:
            ServerError: A server answered with an error or with less than was asked for.
        """
        results: Results = defaultdict(lambda: defaultdict(Rates))
        for scenario in scenarios:
            for target in self.targets:
                self._warm_up(scenario, target)
            self._measure_rounds(scenario, connections, results[scenario.name])
            figures = ", ".join(
                f"{name} {rates.median:,.1f}/s" for name, rates in results[scenario.name].items()
            )
            say(f"  {scenario.name:<11} {connections} connection(s): {figures}")
        return results

    def _measure_rounds(
        self, scenario: Scenario, connections: int, rates: dict[str, Rates]
    ) -> None:
        started = time.monotonic()
        max_runs = DELETIONS_PER_CONNECTION * connections if scenario.deletes_a_thread else None
        for round_number in range(ROUNDS):
            if max_runs is not None:
                self.create_disposable_threads(self.next_number, max_runs * len(self.targets))
            # Another server begins each round, so that none always meets a cold cache.
            shift = round_number % len(self.targets)
            for target in [*self.targets[shift:], *self.targets[:shift]]:
                outcome = self._send_load(scenario, target, connections, SECONDS, max_runs)
                rates[target.name].rounds.append(outcome.rate)
            if time.monotonic() - started > SCENARIO_SECONDS:
                break

    def _send_load(
        self,
        scenario: Scenario,
        target: Target,
        connections: int,
        seconds: float,
        max_runs: int | None,
    ) -> Outcome:
        steps = scenario.steps_for(target.product)
        job = Job(
            port=target.port,
            requests=[Request(method=s.method, path=s.path, body=s.body) for s in steps],
            headers=target.headers,
            connections=connections,
            seconds=seconds,
            max_runs=max_runs,
            first_number=self.next_number,
        )
        outcome = run_load_generator(job)
        self.next_number += max(outcome.runs, max_runs or 0)
        if outcome.first_error:
            raise ServerError(f"{target.name}, {scenario.name}: {outcome.first_error}")
        return outcome

    def _warm_up(self, scenario: Scenario, target: Target) -> None:
        """Check the responses of one run, then send some load that is not counted."""
        if scenario.deletes_a_thread:
            self.create_disposable_threads(self.next_number, 1)
        started = time.monotonic()
        for step in scenario.steps_for(target.product):
            check_response(step, target, self.next_number)
        self.next_number += 1
        is_slow = time.monotonic() - started >= SLOW_SECONDS
        if not scenario.deletes_a_thread and not is_slow:
            self._send_load(
                scenario, target, WARM_UP_CONNECTIONS, WARM_UP_SECONDS, MAX_WARM_UP_RUNS
            )


def run_load_generator(job: Job) -> Outcome:
    """Run the load generator in its own process.

    Raises:
        ServerError: The load generator failed.
    """
    completed = subprocess.run(
        [sys.executable, "-m", "benchmarks.load_generator"],
        input=json.dumps(asdict(job)),
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    if completed.returncode:
        raise ServerError(f"The load generator failed: {completed.stderr[-1500:]}")
    return Outcome(**json.loads(completed.stdout))


def send(request: Request, target: Target, number: int = 0) -> Any:
    """Send one request and return the parsed response.

    Raises:
        urllib.error.HTTPError: The server answered with an error.
    """
    path, body = (
        fill_placeholders(text.encode(), number).decode() for text in (request.path, request.body)
    )
    http_request = urllib.request.Request(
        f"http://127.0.0.1:{target.port}{path}",
        data=body.encode() or None,
        method=request.method,
        headers={"Content-Type": "application/json", **target.headers},
    )
    with urllib.request.urlopen(http_request, timeout=120) as response:
        return json.load(response)


def check_response(step: Step, target: Target, number: int) -> None:
    """Send one request and check the length of the list in the response.

    Raises:
        ServerError: The list is shorter or longer than the step says.
    """
    content = send(step, target, number)
    if step.list_name and len(content[step.list_name]) != step.list_length:
        raise ServerError(
            f"{target.name}, {step.path}: {len(content[step.list_name])} {step.list_name} "
            f"instead of {step.list_length}."
        )
