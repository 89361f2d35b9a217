"""Measures the lines: both servers in turns, the same load, several rounds."""

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

from benchmarks.contenders import Contender
from benchmarks.lines import Line
from benchmarks.load import LANE, NUMBER, Job, Outcome
from tests.servers import ROOT, ServerError, say

SECONDS = float(os.environ.get("BENCH_SECONDS", "1.0"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
LINE_BUDGET = 12.0
"""A line that has taken this many seconds gets no further round."""
WARM_UP = 0.3
SLOW = 0.2
"""An answer that takes this many seconds needs no warming up."""
CONSUMED_PER_CONNECTION = 2


@dataclass(slots=True)
class Rates:
    """Answers per second of one server on one line, a figure a round."""

    rounds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """The middle round."""
        return statistics.median(self.rounds)

    @property
    def spread(self) -> float:
        """How far apart the rounds are, as a share of the median."""
        return (max(self.rounds) - min(self.rounds)) / self.median


Doom = Callable[[int, int], None]
Results = dict[str, dict[str, Rates]]
"""By the line's name, then by the server's."""


class Contest:
    """Some servers, driven with the same lines; every request of a run has a number of its own."""

    def __init__(self, contenders: Sequence[Contender], doom: Doom, first: int = 1) -> None:
        self.contenders = contenders
        self.doom = doom
        self.next_number = first

    def continued_by(self, contenders: Sequence[Contender]) -> "Contest":
        """Give a contest of others that uses none of the numbers used so far."""
        return Contest(contenders, self.doom, self.next_number)

    def measure(self, lines: Iterable[Line], connections: int) -> Results:
        """Measure every line with that many connections."""
        results: Results = defaultdict(lambda: defaultdict(Rates))
        for line in lines:
            for contender in self.contenders:
                self._warm_up(line, contender, connections)
            self._measure(line, connections, results[line.name])
            figures = ", ".join(f"{n} {r.median:,.1f}/s" for n, r in results[line.name].items())
            say(f"  {line.name:<11} {connections} connection(s): {figures}")
        return results

    def _measure(self, line: Line, connections: int, rates: dict[str, Rates]) -> None:
        started = time.monotonic()
        for number in range(ROUNDS):
            most = CONSUMED_PER_CONNECTION * connections if line.consumes else None
            if most is not None:
                self.doom(self.next_number, most)
            first = self.next_number
            # The server that goes first changes with the round: neither always meets a cold cache.
            order = self.contenders if number % 2 == 0 else self.contenders[::-1]
            for contender in order:
                outcome = self._drive(line, contender, connections, SECONDS, most, first)
                rates[contender.name].rounds.append(outcome.rate)
            if time.monotonic() - started > LINE_BUDGET:
                break

    def _drive(
        self,
        line: Line,
        contender: Contender,
        connections: int,
        seconds: float,
        most: int | None,
        first: int,
    ) -> Outcome:
        job = Job(
            port=contender.port,
            method=line.method,
            path=line.path,
            body=line.body,
            headers=contender.headers,
            connections=connections,
            seconds=seconds,
            most=most,
            first=first,
        )
        outcome = run_load(job)
        self.next_number = max(self.next_number, first + outcome.answers)
        if outcome.first_failure:
            raise ServerError(f"{contender.name}, {line.name}: {outcome.first_failure}")
        return outcome

    def _warm_up(self, line: Line, contender: Contender, connections: int) -> None:
        """Check the answer, then let the server meet the load before it counts."""
        if line.consumes:
            self.doom(self.next_number, 1)
        started = time.monotonic()
        check_answer(line, contender, self.next_number)
        self.next_number += 1
        if not line.consumes and time.monotonic() - started < SLOW:
            self._drive(line, contender, connections, WARM_UP, 50 * connections, self.next_number)


def run_load(job: Job) -> Outcome:
    """Run the load generator in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.load"],
        input=json.dumps(asdict(job)),
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    if done.returncode:
        raise ServerError(f"The load generator failed: {done.stderr[-1500:]}")
    return Outcome(**json.loads(done.stdout))


def check_answer(line: Line, contender: Contender, number: int) -> None:
    """Make one request and see that the answer is as long as the line says."""

    def fill(pattern: str) -> str:
        return pattern.replace(NUMBER, f"{number:0{len(NUMBER)}d}").replace(LANE, "0" * len(LANE))

    request = urllib.request.Request(
        f"http://127.0.0.1:{contender.port}{fill(line.path)}",
        data=fill(line.body).encode() or None,
        method=line.method,
        headers={"Content-Type": "application/json", **contender.headers},
    )
    with urllib.request.urlopen(request, timeout=120) as reply:
        answer = json.load(reply)
    if line.holds is not None:
        key, count = line.holds
        if len(answer[key]) != count:
            raise ServerError(
                f"{contender.name}, {line.name}: {len(answer[key])} {key} instead of {count}."
            )
