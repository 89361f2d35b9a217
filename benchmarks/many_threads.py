"""The admin on a big database: make a million threads, then time every page of the reviewers.

`python -m benchmarks.many_threads fill` once (set MASTRA_VAR_DIR to a folder of its own, or
DATABASE_URL), then `python -m benchmarks.many_threads measure`.
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
RARE = 20_000
SENTENCES = 2_000
BATCH = 50_000
ROUNDS = 10
TARGET_MS = 400.0


def _sentences() -> list[str]:
    """Ordinary words often, others rarely, as in speech."""
    made = random.Random(7)
    weights = [1 / (n + 1) for n in range(len(WORDS))]
    return [
        " ".join([*made.choices(WORDS, weights, k=made.randint(6, 24)), f"w{made.randrange(RARE)}"])
        for _ in range(SENTENCES)
    ]


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

# Most threads are short, one in a hundred has 100 messages more, one in 10,000 has 2,000 more.
FILL_MESSAGES = """INSERT INTO mastra_memory_message
    (id, thread_id, resource_id, role, type, signal, content, text, search, created_at)
SELECT t.id || '-' || k, t.id, t.resource_id, CASE k %% 2 WHEN 0 THEN 'user' ELSE 'assistant' END,
    'v2', '', jsonb_build_object('format', 2, 'content', said, 'parts', jsonb_build_array(
        jsonb_build_object('type', 'text', 'text', said))
        || CASE WHEN k = 1 AND t.n %% 200 = 0 THEN '[{"type": "tool-invocation", "toolInvocation":
            {"state": "output-error", "toolName": "look", "errorText": "timeout"}}]'::jsonb
        ELSE '[]' END),
    said, mastra_memory_words('english', said), t.updated_at - (200 - k) * interval '1 second'
FROM (SELECT id, resource_id, updated_at, substr(id, 5)::int AS n FROM mastra_memory_thread
    WHERE id = ANY(SELECT 'big-' || g FROM generate_series(%s, %s) AS g)) AS t
CROSS JOIN LATERAL generate_series(1, %s + CASE WHEN t.n %% 10000 = 0 THEN 2000
    WHEN t.n %% 100 = 0 THEN 100 ELSE 0 END) AS k
CROSS JOIN LATERAL (SELECT (%s::text[])[1 + (t.n * 31 + k * 17) %% %s] || ' F-' || t.n AS said) s"""

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


def fill(threads: int, each: int) -> None:
    """Make the rows; the search index is built when they are there."""
    from django.db import connection

    from mastra_memory import sql

    sentences = _sentences()
    indexes = sql.rows(
        """SELECT indexname, indexdef FROM pg_indexes
        WHERE tablename = 'mastra_memory_message' AND strpos(indexdef, 'UNIQUE') = 0"""
    )
    for name, _definition in indexes:
        sql.execute(f'DROP INDEX "{name}"')
    sql.execute("SET session_replication_role = replica")  # the rows are right as they are made
    started = time.monotonic()
    for first in range(1, threads + 1, BATCH):
        last = min(first + BATCH - 1, threads)
        among = [sentences, len(sentences)]
        sql.execute(FILL_THREADS, [threads, threads, first, last, *among])
        sql.execute(FILL_MESSAGES, [first, last, each, *among])
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
    far, near = f"big-{threads // 3}", f"big-{threads}"
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
    yield "conversation", f"{LIST}{near}/change/"
    yield "conversation of 2,000", f"{LIST}big-{threads // 10000 * 10000}/change/"
    yield "conversation, old", f"{LIST}{far}/change/"
    yield "team", f"{LIST}team/"


def measure(threads: int) -> int:
    """Time each page on the server, the answer rendered; print medians and p95."""
    from django.contrib.auth import get_user_model
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    users = get_user_model()._default_manager
    user, _made = users.get_or_create(
        username="measurer", defaults={"is_staff": True, "is_superuser": True}
    )
    client = Client(headers={"host": "localhost"})
    client.force_login(user)
    missed = 0
    print(f"{'page':40} {'median':>8} {'p95':>8} {'statements':>10}")  # noqa: T201
    for name, address in _pages(threads):
        with CaptureQueriesContext(connection) as queries:
            response = client.get(address)
            statements = len(queries)
        assert response.status_code == 200, (address, response.status_code)
        times = sorted(_timed(client, address) for _ in range(ROUNDS))
        p95 = times[int(len(times) * 0.95) - 1]
        missed += p95 > TARGET_MS
        shown = f"{statistics.median(times):8.0f} {p95:8.0f} {statements:10}"
        print(f"{name:40} {shown}{'  MISSED' if p95 > TARGET_MS else ''}", flush=True)  # noqa: T201
    return 1 if missed else 0


def _timed(client: object, address: str) -> float:
    started = time.perf_counter()
    client.get(address)  # type: ignore[attr-defined]
    return (time.perf_counter() - started) * 1000


def main() -> int:
    """Fill or measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["fill", "measure"])
    parser.add_argument("--threads", type=int, default=1_000_000)
    parser.add_argument("--each", type=int, default=4, help="messages of a short thread")
    chosen = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    os.environ.setdefault("DEBUG", "0")
    os.environ.setdefault("DJANGO_ENV", "development")
    django.setup()
    if chosen.what == "fill":
        fill(chosen.threads, chosen.each)
        return 0
    return measure(chosen.threads)


if __name__ == "__main__":
    sys.exit(main())
