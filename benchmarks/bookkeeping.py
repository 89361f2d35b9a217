"""Measure what observational memory adds to a save. Run `python -m benchmarks.bookkeeping`.

A save counts the tokens of its messages, adds up what is pending and decides whether a worker has
to observe. In a thread of 20,000 messages this takes at most 5 ms, on an idle machine.

Set `MASTRA_VAR_DIR` to a new folder, or `DATABASE_URL` to an empty database.
"""

import os
import statistics
import sys
import time

import django

MESSAGES = 20_000
PENDING = 300
"""Messages of the thread that are not observed yet."""
RUNS = 200
MAX_MS = 5.0


def main() -> int:
    """Print the duration for a short and a long thread; return 1 if the long one is too slow."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchmarks.settings")
    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    medians = [_measure(count) for count in (PENDING, MESSAGES)]
    return int(medians[-1] > MAX_MS)


def _measure(count: int) -> float:
    """Print and return the median in milliseconds for a thread with `count` messages."""
    from mastra_memory.db import routing, sql
    from mastra_memory.memory import Memory
    from mastra_memory.observational import backlog

    thread_id = f"bookkeeping-{count}"
    memory = Memory(options={"observationalMemory": True})
    options = memory.options.observational_memory
    assert options is not None
    if memory.get_thread_by_id(thread_id) is not None:
        memory.delete_thread(thread_id)
    memory.create_thread("benchmark", thread_id=thread_id)
    message = {"threadId": thread_id, "resourceId": "benchmark", "role": "user"}
    batch = [{**message, "content": f"Message {number}"} for number in range(count)]
    for start in range(0, count, 1_000):
        Memory(options={}).save_messages(batch[start : start + 1_000])
    sql.execute(
        """INSERT INTO mastra_memory_messageobservation
            (message_id, scope, thread_id, resource_id, token_count)
        SELECT id, 'thread', thread_id, resource_id, 20 FROM mastra_memory_message
        WHERE thread_id = %s ORDER BY created_at DESC, sequence DESC LIMIT %s""",
        [thread_id, PENDING],
    )
    sql.execute("VACUUM ANALYZE")
    stored = Memory(options={}).save_messages([{**message, "content": "Hello"}]).messages
    times = []
    for _ in range(RUNS):
        started = time.perf_counter()
        with routing.atomic():
            backlog.track_saved(stored, options, agent_id=None)
        times.append((time.perf_counter() - started) * 1000)
    median = statistics.median(times)
    print(f"thread of {count:6} messages: median {median:.2f} ms, fastest {min(times):.2f} ms")  # noqa: T201
    return median


if __name__ == "__main__":
    sys.exit(main())
