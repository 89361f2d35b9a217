"""The conversations both servers hold while measured, loaded straight into their tables."""

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

LISTED_RESOURCE = "listed"
RESOURCE = "worked-on"
"""Owns the threads that are read, written, cloned and deleted; the listed ones stay as they are."""
LISTED_THREADS = 1000
LISTED_MESSAGES = 40
SOURCE_SIZES = (20, 1000, 5000)
LANES = 64
LANE_DIGITS = 6
START = datetime(2024, 1, 1, tzinfo=UTC)

_random = random.Random(20240101)
_syllables = [a + b for a in "b c d f g k l m n p r s t v".split() for b in "a e i o u".split()]
_vocabulary = ["".join(_random.choices(_syllables, k=_random.randint(1, 4))) for _ in range(4000)]

Row = tuple[str, str, str, str, str, str, datetime]


def text(seed: int) -> str:
    """Give some sentences, 50 to 900 characters, always the same for one seed."""
    source = random.Random(seed)
    words = source.choices(_vocabulary, k=source.choice((10, 25, 60, 130)))
    return " ".join(words).capitalize() + "."


def content(seed: int) -> dict[str, Any]:
    """Give the content of one message; every fifth holds a tool call."""
    parts: list[dict[str, Any]] = [{"type": "text", "text": text(seed)}]
    if seed % 5 == 4:
        call = {
            "state": "result",
            "toolCallId": f"call-{seed}",
            "toolName": "look_up",
            "args": {"query": text(seed + 1)[:60], "limit": 5},
            "result": {"found": [{"title": text(seed + n)[:40], "score": n / 7} for n in range(3)]},
        }
        parts.insert(0, {"type": "tool-invocation", "toolInvocation": call})
    return {"format": 2, "parts": parts, "metadata": {"turn": seed, "channel": "web"}}


def source_thread(size: int) -> str:
    """Name the thread with that many messages."""
    return f"source-{size}"


def lane_thread(lane: str) -> str:
    """Name a thread that writers save into."""
    return f"lane-{lane}"


def doomed_thread(number: str) -> str:
    """Name a thread that exists to be deleted."""
    return f"doomed-{number}"


def threads() -> Iterator[tuple[str, str, int]]:
    """Give the id, the owner and the number of messages of every thread, oldest first."""
    for size in SOURCE_SIZES:
        yield source_thread(size), RESOURCE, size
    for lane in range(LANES):
        yield lane_thread(f"{lane:0{LANE_DIGITS}d}"), RESOURCE, 0
    for number in range(LISTED_THREADS):
        yield f"listed-{number}", LISTED_RESOURCE, LISTED_MESSAGES


def messages() -> Iterator[Row]:
    """Give every message: id, thread, owner, role, content, words, time."""
    seed = 0
    for thread_id, owner, size in threads():
        for index in range(size):
            seed += 1
            role = "assistant" if index % 2 else "user"
            at = START + timedelta(seconds=seed)
            body = json.dumps(content(seed), ensure_ascii=False)
            yield f"{thread_id}-{index}", thread_id, owner, role, body, text(seed), at


STAGING = """
CREATE TEMPORARY TABLE staged_thread
    (n int, id text, owner text, title text, metadata jsonb, at timestamptz);
CREATE TEMPORARY TABLE staged_message
    (id text, thread_id text, owner text, role text, content text, words text, at timestamptz)
"""
OURS = """
INSERT INTO mastra_memory_thread (id, resource_id, title, title_source, metadata,
        created_at, updated_at)
    SELECT id, owner, title, 'manual', metadata, at, at FROM staged_thread ORDER BY n;
INSERT INTO mastra_memory_message (id, thread_id, resource_id, role, type, signal, content, text,
        search, created_at)
    SELECT id, thread_id, owner, role, 'v2', '', content::jsonb, words,
        mastra_memory_words('english', words), at
    FROM staged_message ORDER BY at
"""
MASTRA = """
INSERT INTO mastra_threads (id, "resourceId", title, metadata, "createdAt", "updatedAt",
        "createdAtZ", "updatedAtZ")
    SELECT id, owner, title, metadata, at AT TIME ZONE 'UTC', at AT TIME ZONE 'UTC', at, at
    FROM staged_thread ORDER BY n;
INSERT INTO mastra_messages (id, thread_id, content, role, type, "createdAt", "resourceId",
        "createdAtZ")
    SELECT id, thread_id, content, role, 'v2', at AT TIME ZONE 'UTC', owner, at
    FROM staged_message ORDER BY at
"""
DOOMED_OURS = """
INSERT INTO mastra_memory_thread (id, resource_id, title, title_source, created_at, updated_at)
    SELECT to_char(n, '"doomed-"FM00000000'), %(resource)s, 'doomed', '', now(), now()
    FROM generate_series(%(first)s::int, %(last)s::int) AS n;
INSERT INTO mastra_memory_message (id, thread_id, resource_id, role, type, signal, content, text,
        search, created_at)
    SELECT to_char(n, '"doomed-"FM00000000-') || id, to_char(n, '"doomed-"FM00000000'),
        resource_id, role, type, signal, content, text, search, created_at
    FROM generate_series(%(first)s::int, %(last)s::int) AS n, mastra_memory_message
    WHERE thread_id = %(source)s
"""
DOOMED_MASTRA = """
INSERT INTO mastra_threads (id, "resourceId", title, "createdAt", "updatedAt")
    SELECT to_char(n, '"doomed-"FM00000000'), %(resource)s, 'doomed', now(), now()
    FROM generate_series(%(first)s::int, %(last)s::int) AS n;
INSERT INTO mastra_messages (id, thread_id, content, role, type, "createdAt", "resourceId",
        "createdAtZ")
    SELECT to_char(n, '"doomed-"FM00000000-') || id, to_char(n, '"doomed-"FM00000000'), content,
        role, type, "createdAt", "resourceId", "createdAtZ"
    FROM generate_series(%(first)s::int, %(last)s::int) AS n, mastra_messages
    WHERE thread_id = %(source)s
"""


def fill(ours: str, mastra: str) -> None:
    """Load the same conversations into both databases, named by their connection strings."""
    for where, into in ((ours, OURS), (mastra, MASTRA)):
        with psycopg.connect(where) as connection:
            _stage(connection)
            _run(connection, into, {})
    vacuum(ours, mastra)


def vacuum(*databases: str) -> None:
    """Tidy up and gather statistics, so that no autovacuum is due while measuring."""
    for where in databases:
        with psycopg.connect(where, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
            connection.execute("CHECKPOINT")


def doom(ours: str, mastra: str, first: int, count: int) -> None:
    """Make threads to be deleted, as long as the longest source."""
    values = {"first": first, "last": first + count - 1, "resource": RESOURCE}
    values["source"] = source_thread(max(SOURCE_SIZES))
    for where, statements in ((ours, DOOMED_OURS), (mastra, DOOMED_MASTRA)):
        with psycopg.connect(where) as connection:
            _run(connection, statements, values)
    vacuum(ours, mastra)


def _stage(connection: psycopg.Connection[Any]) -> None:
    connection.execute(STAGING)
    with connection.cursor() as cursor:
        with cursor.copy("COPY staged_thread FROM STDIN") as copy:
            for number, (thread_id, owner, _) in enumerate(threads()):
                metadata = {"channel": "web", "priority": number % 5, "tags": ["a", "b"]}
                at = START + timedelta(minutes=number)
                title = text(number)[:60]
                copy.write_row((number, thread_id, owner, title, json.dumps(metadata), at))
        with cursor.copy("COPY staged_message FROM STDIN") as copy:
            for row in messages():
                copy.write_row(row)


def _run(connection: psycopg.Connection[Any], statements: str, values: dict[str, Any]) -> None:
    for statement in statements.split(";"):
        connection.execute(statement, values)
