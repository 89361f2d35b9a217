"""Measure what a broker that is down costs a save. Run `python -m benchmarks.broker`.

The bound is that the first save after a failure takes at most 50 ms longer, and the following
ones nothing measurable, because the broker is then not tried again for some time.
"""

import os
import socket
import statistics
import sys
import time

import django

SAVES = 50
MAX_FIRST_MS = 50.0
MAX_LATER_MS = 1.0


def main() -> int:
    """Print the duration of `enqueue` for each kind of failure; return 1 if one is too slow."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchmarks.settings")
    django.setup()
    # One port refuses connections; the other accepts them and never answers.
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(SAVES)
        brokers = {
            "refuses connections": "amqp://127.0.0.1:1//",
            "never answers": f"amqp://127.0.0.1:{silent.getsockname()[1]}//",
        }
        _measure("refuses, warm-up", "amqp://127.0.0.1:1//")  # Imports the client library.
        slow = [_measure(name, broker) for name, broker in brokers.items()]
    return int(any(slow))


def _measure(name: str, broker: str) -> bool:
    """Print the milliseconds for one broker; return True if they exceed the bounds."""
    from celery import Celery

    from mastra_memory import tasks

    def work(number: int) -> None:
        """Never runs: the task does not reach the broker."""

    app = Celery("benchmark", broker=broker, set_as_current=False)
    task = app.task(name="benchmark.work", shared=False)(work)
    # Forget the failure and the tasks of the measurement before.
    tasks._broker_retry_at = 0.0
    tasks._scheduled_until.clear()
    times = []
    for number in range(SAVES):
        started = time.perf_counter()
        tasks.enqueue(task, number)
        times.append((time.perf_counter() - started) * 1000)
    first, later = times[0], statistics.median(times[1:])
    print(f"broker {name:20} first {first:6.1f} ms, later {later:6.3f} ms")  # noqa: T201
    return first > MAX_FIRST_MS or later > MAX_LATER_MS


if __name__ == "__main__":
    sys.exit(main())
