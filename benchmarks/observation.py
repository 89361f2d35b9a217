"""Measure what observation costs a save and a read. Run `python -m benchmarks.observation`.

The same saves and reads are measured with and without observational memory, in turn, on two threads
of the same length, while a worker observes in a process of its own. The bound is that the 95th
percentile is at most 20 % larger with it. A context is measured too, without a bound: with
observations it holds all unobserved messages, not the last ones. Beside the duration, the processor
time of this process is printed, which depends less on what else the machine does.

Environment variables:

    BENCH_MESSAGES  messages in each thread before the measurement; default: 2000
    BENCH_SAVES     measured saves and reads of each kind; default: 400
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from statistics import median, quantiles
from typing import NamedTuple

import django

MAX_RATIO = 1.2
CALLS, BOUNDED = ("save", "read", "context"), ("save", "read")
WORKER = "worker"
"""The argument of the process that observes."""
WARM_UP = 30
TEXT = "We moved the launch of the garden app to May 4, and Ann will write the release notes. "


def main() -> int:
    """Print the milliseconds of both kinds; return 1 if observation costs too much."""
    if sys.argv[1:] == [WORKER]:
        set_up()
        observe()
    messages = int(os.environ.get("BENCH_MESSAGES") or 2_000)
    calls = int(os.environ.get("BENCH_SAVES") or 400)
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        os.chmod(folder, 0o755)
        os.environ["MASTRA_VAR_DIR"] = folder
        os.environ["DJANGO_SETTINGS_MODULE"] = "benchmarks.settings"
        set_up()
        from django.core.management import call_command
        from django.db import connections

        call_command("migrate", verbosity=0)
        try:
            return int(measure(messages, calls))
        finally:
            connections.close_all()


def set_up() -> None:
    """Prepare Django, with observational memory on by default for the worker."""
    django.setup()
    from django.conf import settings

    settings.MASTRA_MEMORY = settings.MASTRA_MEMORY | {"OPTIONS": {"observationalMemory": True}}


def measure(messages: int, calls: int) -> bool:
    """Measure both agents in turn, and return whether one figure exceeds the bound."""
    from mastra_memory.memory import Memory

    agents = {
        "without": Memory(options={"semanticRecall": False, "observationalMemory": False}),
        "with": Memory(options={"semanticRecall": False, "observationalMemory": True}),
    }
    for name, memory in agents.items():
        memory.create_thread("bench", thread_id=name)
        for start in range(0, messages, 500):
            memory.save_messages([_message(name) for _ in range(min(500, messages - start))])
    times: dict[tuple[str, str], list[Duration]] = {}
    worker = subprocess.Popen([sys.executable, "-m", "benchmarks.observation", WORKER])
    try:
        for number in range(WARM_UP + calls):
            for name, memory in agents.items():
                saved = _time(partial(memory.save_messages, [_message(name)]))
                read = _time(partial(memory.list_messages, name, per_page=40))
                built = _time(partial(memory.context, name, resource_id="bench"))
                for call, figure in zip(CALLS, (saved, read, built), strict=True):
                    if number >= WARM_UP:
                        times.setdefault((call, name), []).append(figure)
    finally:
        worker.terminate()
        worker.wait()
    return _report(times)


def _message(thread_id: str) -> dict[str, object]:
    return {"threadId": thread_id, "resourceId": "bench", "role": "user", "content": TEXT * 3}


class Duration(NamedTuple):
    """How long a call took, in milliseconds."""

    total: float
    processor: float


def _time(call: Callable[[], object]) -> Duration:
    start, processor = time.perf_counter(), time.process_time()
    call()
    return Duration(
        (time.perf_counter() - start) * 1_000, (time.process_time() - processor) * 1_000
    )


def observe() -> None:
    """Do due work as a worker does, until this process is terminated."""
    from mastra_memory.observational import claims, cycle

    while True:
        for record_id in claims.list_due_records():
            cycle.run_due_cycle(record_id)
        time.sleep(0.5)


def _report(times: dict[tuple[str, str], list[Duration]]) -> bool:
    too_slow = False
    sys.stdout.write("call    observation  median ms  p95 ms  processor ms\n")
    for call in CALLS:
        p95 = {}
        for name in ("without", "with"):
            totals = [duration.total for duration in times[call, name]]
            processor = median(duration.processor for duration in times[call, name])
            p95[name] = quantiles(totals, n=20)[-1]
            sys.stdout.write(
                f"{call:7} {name:12} {median(totals):9.2f} {p95[name]:7.2f} {processor:13.2f}\n"
            )
        ratio = p95["with"] / p95["without"]
        is_bounded = call in BOUNDED
        too_slow |= is_bounded and ratio > MAX_RATIO
        bound = f"bound {MAX_RATIO}" if is_bounded else "no bound"
        sys.stdout.write(f"{call:7} p95 ratio    {ratio:9.2f}  ({bound})\n")
    return too_slow


if __name__ == "__main__":
    sys.exit(main())
