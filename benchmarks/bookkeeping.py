"""Measure what observational memory adds to a save. Run `python -m benchmarks.bookkeeping`.

A save counts the tokens of its messages, adds up what is pending and decides whether a worker has
to observe. In a thread of 20,000 messages this takes at most 5 ms, on an idle machine. Saves with
and without observational memory are measured in turn, on two threads of the same length.

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
    """Print what is added in a short and in a long thread; return 1 if it is too much."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchmarks.settings")
    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    added = [_measure(count) for count in (PENDING, MESSAGES)]
    return int(added[-1] > MAX_MS)


def _measure(count: int) -> float:
    """Print and return the additional median in milliseconds for threads of `count` messages."""
    from mastra_memory.db import sql
    from mastra_memory.memory import Memory

    agents = {
        f"bookkeeping-{count}-{on}": Memory(options={"observationalMemory": on})
        for on in (False, True)
    }
    message = {"resourceId": "benchmark", "role": "user"}
    for thread_id, memory in agents.items():
        if memory.get_thread_by_id(thread_id) is not None:
            memory.delete_thread(thread_id)
        memory.create_thread("benchmark", thread_id=thread_id)
        batch = [
            {**message, "threadId": thread_id, "content": f"Message {number}"}
            for number in range(count)
        ]
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
    times: dict[str, list[float]] = {thread_id: [] for thread_id in agents}
    for _ in range(RUNS):
        for thread_id, memory in agents.items():
            started = time.perf_counter()
            memory.save_messages([{**message, "threadId": thread_id, "content": "Hello"}])
            times[thread_id].append((time.perf_counter() - started) * 1_000)
    without, with_it = map(statistics.median, times.values())
    print(f"thread of {count:6} messages: {without:.2f} ms, with {with_it:.2f} ms")  # noqa: T201
    return with_it - without


if __name__ == "__main__":
    sys.exit(main())
