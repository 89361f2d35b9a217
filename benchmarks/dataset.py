"""The conversations that both servers hold, loaded directly into their tables."""

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

from benchmarks.load_generator import SLOT_COUNT

LISTED_RESOURCE = "listed"
"""Owns the threads of `list100`, which no scenario changes."""
RESOURCE = "benchmark-user"
"""Owns the threads that are read, written, cloned and deleted."""
LISTED_THREADS = 1000
LISTED_MESSAGES = 40
SOURCE_SIZES = (20, 1000, 5000)
TURN_MESSAGES = 40
HISTORY_LENGTH = 10
"""The option `lastMessages` of both servers."""
SLOT_DIGITS = 6
START = datetime(2024, 1, 1, tzinfo=UTC)

_random = random.Random(20240101)
_syllables = [a + b for a in "b c d f g k l m n p r s t v".split() for b in "a e i o u".split()]
_vocabulary = ["".join(_random.choices(_syllables, k=_random.randint(1, 4))) for _ in range(4000)]

MessageRow = tuple[str, str, str, str, str, str, datetime]
"""Id, thread, resource, role, content as JSON, text, time."""


def sentences(seed: int) -> str:
    """Return 50 to 900 characters of text, always the same for one seed."""
    source = random.Random(seed)
    words = source.choices(_vocabulary, k=source.choice((10, 25, 60, 130)))
    return " ".join(words).capitalize() + "."


def message_content(seed: int) -> dict[str, Any]:
    """Return the content of one message. Every fifth message has a tool call."""
    parts: list[dict[str, Any]] = [{"type": "text", "text": sentences(seed)}]
    if seed % 5 == 4:
        results = [{"title": sentences(seed + n)[:40], "score": n / 7} for n in range(3)]
        tool_call = {
            "state": "result",
            "toolCallId": f"call-{seed}",
            "toolName": "look_up",
            "args": {"query": sentences(seed + 1)[:60], "limit": 5},
            "result": {"found": results},
        }
        parts.insert(0, {"type": "tool-invocation", "toolInvocation": tool_call})
    return {"format": 2, "parts": parts, "metadata": {"turn": seed, "channel": "web"}}


def source_thread(size: int) -> str:
    """Return the id of the thread with `size` messages."""
    return f"source-{size}"


def slot_thread(slot: str) -> str:
    """Return the id of a thread that messages are saved to."""
    return f"slot-{slot}"


def turn_thread(slot: str) -> str:
    """Return the id of a thread that an agent's turns read and extend."""
    return f"turn-{slot}"


def disposable_thread(number: str) -> str:
    """Return the id of a thread that exists to be deleted."""
    return f"disposable-{number}"


def threads() -> Iterator[tuple[str, str, int]]:
    """Yield id, resource and number of messages of every thread, oldest first."""
    for size in SOURCE_SIZES:
        yield source_thread(size), RESOURCE, size
    for slot in range(SLOT_COUNT):
        yield slot_thread(f"{slot:0{SLOT_DIGITS}d}"), RESOURCE, 0
        yield turn_thread(f"{slot:0{SLOT_DIGITS}d}"), RESOURCE, TURN_MESSAGES
    for number in range(LISTED_THREADS):
        yield f"listed-{number}", LISTED_RESOURCE, LISTED_MESSAGES


def messages() -> Iterator[MessageRow]:
    """Yield every message of every thread."""
    seed = 0
    for thread_id, resource_id, size in threads():
        for index in range(size):
            seed += 1
            role = "assistant" if index % 2 else "user"
            created_at = START + timedelta(seconds=seed)
            content = json.dumps(message_content(seed), ensure_ascii=False)
            message_id = f"{thread_id}-{index}"
            yield message_id, thread_id, resource_id, role, content, sentences(seed), created_at


STAGING = """
CREATE TEMPORARY TABLE staged_thread
    (n int, id text, resource_id text, title text, metadata jsonb, created_at timestamptz);
CREATE TEMPORARY TABLE staged_message
    (id text, thread_id text, resource_id text, role text, content text, text text,
        created_at timestamptz)
"""
LOAD_OURS = """
INSERT INTO mastra_memory_thread (id, resource_id, title, title_source, metadata,
        created_at, updated_at)
    SELECT id, resource_id, title, 'manual', metadata, created_at, created_at
    FROM staged_thread ORDER BY n;
INSERT INTO mastra_memory_message (id, thread_id, resource_id, role, type, signal, content, text,
        search, created_at)
    SELECT id, thread_id, resource_id, role, 'v2', '', content::jsonb, text,
        to_tsvector('english', text), created_at
    FROM staged_message ORDER BY created_at
"""
LOAD_MASTRA = """
INSERT INTO mastra_threads (id, "resourceId", title, metadata, "createdAt", "updatedAt",
        "createdAtZ", "updatedAtZ")
    SELECT id, resource_id, title, metadata, created_at AT TIME ZONE 'UTC',
        created_at AT TIME ZONE 'UTC', created_at, created_at
    FROM staged_thread ORDER BY n;
INSERT INTO mastra_messages (id, thread_id, content, role, type, "createdAt", "resourceId",
        "createdAtZ")
    SELECT id, thread_id, content, role, 'v2', created_at AT TIME ZONE 'UTC', resource_id,
        created_at
    FROM staged_message ORDER BY created_at
"""
COPY_OURS = """
INSERT INTO mastra_memory_thread (id, resource_id, title, title_source, created_at, updated_at)
    SELECT to_char(n, '"disposable-"FM00000000'), %(resource)s, 'disposable', '', now(), now()
    FROM generate_series(%(first)s::int, %(last)s::int) AS n;
INSERT INTO mastra_memory_message (id, thread_id, resource_id, role, type, signal, content, text,
        search, created_at)
    SELECT to_char(n, '"disposable-"FM00000000-') || id, to_char(n, '"disposable-"FM00000000'),
        resource_id, role, type, signal, content, text, search, created_at
    FROM generate_series(%(first)s::int, %(last)s::int) AS n, mastra_memory_message
    WHERE thread_id = %(source)s
"""
COPY_MASTRA = """
INSERT INTO mastra_threads (id, "resourceId", title, "createdAt", "updatedAt")
    SELECT to_char(n, '"disposable-"FM00000000'), %(resource)s, 'disposable', now(), now()
    FROM generate_series(%(first)s::int, %(last)s::int) AS n;
INSERT INTO mastra_messages (id, thread_id, content, role, type, "createdAt", "resourceId",
        "createdAtZ")
    SELECT to_char(n, '"disposable-"FM00000000-') || id, to_char(n, '"disposable-"FM00000000'),
        content, role, type, "createdAt", "resourceId", "createdAtZ"
    FROM generate_series(%(first)s::int, %(last)s::int) AS n, mastra_messages
    WHERE thread_id = %(source)s
"""


def load(our_database: str, mastra_database: str) -> None:
    """Load the same conversations into both databases, given by their connection strings."""
    for database, statements in ((our_database, LOAD_OURS), (mastra_database, LOAD_MASTRA)):
        with psycopg.connect(database) as connection:
            _copy_into_staging(connection)
            _execute_all(connection, statements, {})
    vacuum(our_database, mastra_database)


def vacuum(*databases: str) -> None:
    """Vacuum and analyze, so that autovacuum has nothing to do during a measurement."""
    for database in databases:
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
            connection.execute("CHECKPOINT")


def create_disposable_threads(
    our_database: str, mastra_database: str, first_number: int, count: int
) -> None:
    """Create threads to be deleted: copies of the longest source thread."""
    values = {
        "first": first_number,
        "last": first_number + count - 1,
        "resource": RESOURCE,
        "source": source_thread(max(SOURCE_SIZES)),
    }
    for database, statements in ((our_database, COPY_OURS), (mastra_database, COPY_MASTRA)):
        with psycopg.connect(database) as connection:
            _execute_all(connection, statements, values)
    vacuum(our_database, mastra_database)


def _copy_into_staging(connection: psycopg.Connection[Any]) -> None:
    connection.execute(STAGING)
    with connection.cursor() as cursor:
        with cursor.copy("COPY staged_thread FROM STDIN") as copy:
            for number, (thread_id, resource_id, _) in enumerate(threads()):
                metadata = {"channel": "web", "priority": number % 5, "tags": ["a", "b"]}
                created_at = START + timedelta(minutes=number)
                title = sentences(number)[:60]
                row = (number, thread_id, resource_id, title, json.dumps(metadata), created_at)
                copy.write_row(row)
        with cursor.copy("COPY staged_message FROM STDIN") as copy:
            for message in messages():
                copy.write_row(message)


def _execute_all(
    connection: psycopg.Connection[Any], statements: str, values: dict[str, Any]
) -> None:
    for statement in statements.split(";"):
        connection.execute(statement, values)
