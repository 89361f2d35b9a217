"""Measure the pages of the admin on a database with a million threads.

Set `MASTRA_VAR_DIR` to a new folder (or `DATABASE_URL` to an empty database), run
`python -m benchmarks.admin_pages fill` once, then `python -m benchmarks.admin_pages measure`.
"""

import argparse
import os
import random
import statistics
import sys
import time
from collections.abc import Iterator

import django

WORDS = (
    "order parcel refund invoice tent jacket delivery address battery warranty account password "
    "login webhook signature token payment card receipt voucher size colour return exchange "
    "broken missing late wrong thank please hello customer support agent shipment warehouse "
    "tracking number email phone morning evening tomorrow weekend holiday price discount"
).split()
RARE_WORDS = 20_000
SENTENCES = 2_000
THREADS_PER_BATCH = 50_000
ROUNDS = 10
MAX_P95_MS = 400.0


def _sentences() -> list[str]:
    """Return sentences whose words are distributed as in natural language (Zipf's law)."""
    source = random.Random(7)
    weights = [1 / (n + 1) for n in range(len(WORDS))]
    sentences = []
    for _ in range(SENTENCES):
        words = source.choices(WORDS, weights, k=source.randint(6, 24))
        sentences.append(" ".join([*words, f"w{source.randrange(RARE_WORDS)}"]))
    return sentences


FILL_THREADS = """INSERT INTO mastra_memory_thread
    (id, resource_id, title, title_source, metadata, created_at, updated_at, clone_source_id)
SELECT 'big-' || n, 'resource-' || n %% 60000, initcap(split_part(s, ' ', 1)) || ' ' ||
        split_part(s, ' ', 2) || ' ' || n, 'generated',
    jsonb_build_object('plan', (ARRAY['free','plus','business'])[1 + n %% 3], 'n', n %% 1000),
    now() - (%s - n) * interval '60 seconds' - interval '10 minutes',
    now() - (%s - n) * interval '60 seconds',
    CASE WHEN n %% 50 = 0 THEN 'big-' || n - 1 END
FROM generate_series(%s, %s) AS n
CROSS JOIN LATERAL (SELECT (%s::text[])[1 + n %% %s] AS s) AS t"""

# Most threads are short. One in 100 has 100 more messages and one in 10,000 has 2,000 more.
FILL_MESSAGES = """INSERT INTO mastra_memory_message
    (id, thread_id, resource_id, role, type, signal, content, text, search, created_at)
SELECT t.id || '-' || k, t.id, t.resource_id, CASE k %% 2 WHEN 0 THEN 'user' ELSE 'assistant' END,
    'v2', '', jsonb_build_object('format', 2, 'content', sentence, 'parts', jsonb_build_array(
        jsonb_build_object('type', 'text', 'text', sentence))
        || CASE WHEN k = 1 AND t.n %% 200 = 0 THEN '[{"type": "tool-invocation", "toolInvocation":
            {"state": "output-error", "toolName": "look", "errorText": "timeout"}}]'::jsonb
        ELSE '[]' END),
    sentence, to_tsvector('english', sentence),
    t.updated_at - (200 - k) * interval '1 second'
FROM (SELECT id, resource_id, updated_at, substr(id, 5)::int AS n FROM mastra_memory_thread
    WHERE id = ANY(SELECT 'big-' || g FROM generate_series(%s, %s) AS g)) AS t
CROSS JOIN LATERAL generate_series(1, %s + CASE WHEN t.n %% 10000 = 0 THEN 2000
    WHEN t.n %% 100 = 0 THEN 100 ELSE 0 END) AS k
CROSS JOIN LATERAL (
    SELECT (%s::text[])[1 + (t.n * 31 + k * 17) %% %s] || ' F-' || t.n AS sentence) s"""

FILL_REVIEWS = [
    """INSERT INTO mastra_memory_review (thread_id, status, priority, assignee_id, version,
        resolved_at)
    SELECT id, (ARRAY['in_review','waiting','resolved','resolved','flagged'])[1 + n % 5],
        n % 4, (SELECT id FROM auth_user ORDER BY id OFFSET n % 2 LIMIT 1), 1,
        CASE WHEN n % 5 IN (2, 3) THEN updated_at + interval '3 hours' END
    FROM (SELECT id, updated_at, substr(id, 5)::int AS n FROM mastra_memory_thread
        WHERE id LIKE 'big-%') AS t WHERE n % 10 = 3 ON CONFLICT DO NOTHING""",
    """INSERT INTO mastra_memory_tag (name) VALUES ('late'), ('refund'), ('rare')
    ON CONFLICT DO NOTHING""",
    """INSERT INTO mastra_memory_threadtag (thread_id, tag_id)
    SELECT t.id, g.id FROM mastra_memory_thread t JOIN mastra_memory_tag g
        ON g.name = CASE WHEN substr(t.id, 5)::int % 100000 = 7 THEN 'rare' ELSE 'late' END
    WHERE t.id LIKE 'big-%' AND substr(t.id, 5)::int % 40 = 7 ON CONFLICT DO NOTHING""",
    """INSERT INTO mastra_memory_reviewnote (thread_id, text)
    SELECT id, 'look again' FROM mastra_memory_thread
    WHERE id LIKE 'big-%' AND substr(id, 5)::int % 500 = 3""",
    """INSERT INTO mastra_memory_workingmemory (scope, resource_id, content, version)
    SELECT 'resource', 'resource-' || n, '- likes tea', 1 FROM generate_series(1, 60000, 20) AS n
    ON CONFLICT DO NOTHING""",
]


def fill(threads: int, messages_per_thread: int) -> None:
    """Insert the rows, then build the indexes, which is faster than the other way round."""
    from django.db import connection

    from mastra_memory.db import sql

    sentences = _sentences()
    indexes = sql.fetch_all(
        """SELECT indexname, indexdef FROM pg_indexes
        WHERE tablename = 'mastra_memory_message' AND strpos(indexdef, 'UNIQUE') = 0"""
    )
    for name, _definition in indexes:
        sql.execute(f'DROP INDEX "{name}"')
    sql.execute("SET session_replication_role = replica")  # skips triggers and foreign keys
    started = time.monotonic()
    for first in range(1, threads + 1, THREADS_PER_BATCH):
        last = min(first + THREADS_PER_BATCH - 1, threads)
        text_params = [sentences, len(sentences)]
        sql.execute(FILL_THREADS, [threads, threads, first, last, *text_params])
        sql.execute(FILL_MESSAGES, [first, last, messages_per_thread, *text_params])
        print(f"{last} threads, {time.monotonic() - started:.0f} s", flush=True)  # noqa: T201
    sql.execute("SET session_replication_role = DEFAULT")
    for _name, definition in indexes:
        sql.execute(definition)
    for statement in FILL_REVIEWS:
        with connection.cursor() as cursor:
            cursor.execute(statement)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    print(f"done, {time.monotonic() - started:.0f} s", flush=True)  # noqa: T201


LIST = "/admin/mastra_memory/thread/"


def _pages(threads: int) -> Iterator[tuple[str, str]]:
    """Yield the name and the path of every measured page."""
    old, newest = f"big-{threads // 3}", f"big-{threads}"
    yield "list", f"{LIST}?all=1"
    yield "list, page 20", f"{LIST}?p=20"
    for query in (
        "resource=resource-77",
        "status=new",
        "status=resolved",
        "status=flagged",
        "assignee=me",
        "assignee=none",
        "priority=3",
        "tag=late",
        "tag=rare",
        "notes=yes",
        "notes=no",
        "tool_errors=yes",
        "tool_errors=no",
        "memory=yes",
        "memory=no",
        "origin=clone",
        "origin=original",
        "min_messages=500",
        "max_messages=3",
        "metadata=plan%3Dplus%2C+n%3D77",
        "active_from=2025-01-01&active_to=2025-01-31",
        "created_to=2020-01-01",
        "status=flagged&tag=late&tool_errors=yes",
    ):
        yield query, f"{LIST}?{query}"
    yield "search: common word", f"{LIST}?q=order"
    yield "search: two words", f"{LIST}?q=webhook+signature"
    yield "search: rare word", f"{LIST}?q=w4711"
    yield "search: number", f"{LIST}?q=F-{threads // 2}"
    yield "search: nothing", f"{LIST}?q=unicorn"
    yield "search in filter", f"{LIST}?q=order&status=flagged"
    yield "conversation", f"{LIST}{newest}/change/"
    yield "conversation of 2,000", f"{LIST}big-{threads // 10000 * 10000}/change/"
    yield "conversation, old", f"{LIST}{old}/change/"
    yield "team", f"{LIST}team/"


def measure(threads: int) -> int:
    """Print median and 95th percentile of each page; return 1 if one is slower than allowed.

    Pages are rendered completely, in this process, without a web server.
    """
    from django.contrib.auth import get_user_model
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    users = get_user_model()._default_manager
    user, _created = users.get_or_create(
        username="benchmark", defaults={"is_staff": True, "is_superuser": True}
    )
    client = Client(headers={"host": "localhost"})
    client.force_login(user)
    slow_pages = 0
    print(f"{'page':40} {'median':>8} {'p95':>8} {'statements':>10}")  # noqa: T201
    for name, path in _pages(threads):
        with CaptureQueriesContext(connection) as queries:
            response = client.get(path)
            statements = len(queries)
        assert response.status_code == 200, (path, response.status_code)
        times = sorted(_milliseconds(client, path) for _ in range(ROUNDS))
        p95 = times[int(len(times) * 0.95) - 1]
        slow_pages += p95 > MAX_P95_MS
        figures = f"{statistics.median(times):8.0f} {p95:8.0f} {statements:10}"
        mark = "  TOO SLOW" if p95 > MAX_P95_MS else ""
        print(f"{name:40} {figures}{mark}", flush=True)  # noqa: T201
    return 1 if slow_pages else 0


def _milliseconds(client: object, path: str) -> float:
    started = time.perf_counter()
    client.get(path)  # type: ignore[attr-defined]
    return (time.perf_counter() - started) * 1000


def main() -> int:
    """Run the command given on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["fill", "measure"])
    parser.add_argument("--threads", type=int, default=1_000_000)
    parser.add_argument("--messages", type=int, default=4, help="messages of a short thread")
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    os.environ.setdefault("DEBUG", "0")
    os.environ.setdefault("DJANGO_ENV", "development")
    django.setup()
    if options.command == "fill":
        fill(options.threads, options.messages)
        return 0
    return measure(options.threads)


if __name__ == "__main__":
    sys.exit(main())
