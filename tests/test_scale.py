"""Long threads and large tables: index scans, memory, statements."""

import itertools
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from pytest_django.plugin import DjangoDbBlocker

from mastra_memory import threads
from mastra_memory.db import sql
from mastra_memory.recall import selection, window
from mastra_memory.threads import cloning
from mastra_memory.types import Include, MessageFilter, StoredThread
from tests.conftest import Statements
from tests.support.factories import fill, make_thread, moment
from tests.support.live_server import environment, real_server

pytestmark = [pytest.mark.slow, pytest.mark.django_db]
THREADS, MESSAGES_PER_THREAD = 100, 2_000
OTHERS = """WITH made AS (
    INSERT INTO mastra_memory_thread (id, resource_id, title, title_source)
    SELECT 'large:other:' || n, 'large-other-' || n %% 500, '', ''
    FROM generate_series(1, 20000) AS n RETURNING id, resource_id)
INSERT INTO mastra_memory_workingmemory (scope, thread_id, resource_id, content, version)
SELECT 'thread', id, resource_id, 'noted', 1 FROM made"""


@pytest.fixture(scope="module")
def large(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Commit 200,000 messages in 100 threads of 10 resources, and 20,000 other threads.

    They are deleted after the tests of this module.
    """
    with django_db_blocker.unblock():
        for n in range(THREADS):
            fill(
                make_thread(f"large-{n % 10}", f"large:{n}"), MESSAGES_PER_THREAD, searchable=False
            )
        sql.execute(OTHERS)
        for table in ("message", "thread", "workingmemory"):
            sql.execute(f"VACUUM ANALYZE mastra_memory_{table}")
        yield
        sql.execute("TRUNCATE mastra_memory_thread CASCADE")


def sent_by(act: Callable[[], Any]) -> list[tuple[str, Any]]:
    """Return the statements that `act` sends, with their parameters."""
    sent: list[tuple[str, Any]] = []

    def note(execute: Any, statement: str, params: Any, many: bool, context: Any) -> Any:
        sent.append((statement, params))
        return execute(statement, params, many, context)

    with connection.execute_wrapper(note):
        act()
    return sent


def plans(act: Callable[[], Any]) -> Iterator[str]:
    """Yield the plans of each statement: for its parameters, and the generic plan."""
    for statement, params in sent_by(act):
        yield "\n".join(line for (line,) in sql.fetch_all("EXPLAIN " + statement, params))
        with connection.cursor() as cursor:
            cursor.execute("EXPLAIN (GENERIC_PLAN) " + numbered(statement))
            yield "\n".join(line for (line,) in cursor.fetchall())


def numbered(statement: str) -> str:
    """Return the statement with PostgreSQL's own placeholders: `$1`, `$2` and so on."""
    numbers = itertools.count(1)
    return re.sub("%s", lambda _: f"${next(numbers)}", statement).replace("%%", "%")


READS = {
    "first page": lambda: selection.list_messages("large:7", per_page=40),
    "newest page": lambda: selection.list_messages("large:7", per_page=40, newest_page=True),
    "deep page": lambda: selection.list_messages("large:7", per_page=40, page=30),
    "page by date": lambda: selection.list_messages(
        "large:7", per_page=40, message_filter=MessageFilter(start=moment(900), end=moment(999))
    ),
    "window": lambda: window.read_windows(
        [Include(id="large:7:900", before=5, after=5)], resource_id="large-7"
    ),
    "threads of a resource": lambda: threads.list_threads(resource_id="large-7", per_page=20),
    "threads by activity": lambda: threads.list_threads(
        resource_id="large-7", per_page=20, order_by="updated_at"
    ),
}


@pytest.mark.parametrize("name", READS)
def test_read__uses_an_index(large: None, name: str) -> None:
    for plan in plans(READS[name]):
        assert "Index" in plan and "Seq Scan" not in plan, plan
        # A sort may see a page, never a thread.
        sorts = re.findall(r"Sort  \(cost=\S+ rows=(\d+)", plan)
        assert all(int(rows) < MESSAGES_PER_THREAD / 2 for rows in sorts), plan


@pytest.mark.parametrize("name", READS)
def test_read__reads_few_buffers(large: None, name: str) -> None:
    """Reading 40 messages must not read all 2,000 messages of the thread."""
    explain = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "
    for statement, params in sent_by(READS[name]):
        (found,) = sql.fetch_one(explain + statement, params) or ()
        top = found[0]["Plan"]
        assert top["Shared Hit Blocks"] + top["Shared Read Blocks"] < 400, statement


def long_thread(size: int = 20_000) -> StoredThread:
    """Create a thread with this number of messages."""
    thread = make_thread("r", "long")
    fill(thread, size, text="x " * 200, searchable=False)
    return thread


COPY = """
import django, re
from pathlib import Path
django.setup()
from mastra_memory.memory import Memory

def held(name):
    status = Path("/proc/self/status").read_text()
    return int(re.search(name + r":\\s+(\\d+) kB", status)[1]) * 1024

Memory().copy_thread("short")
Path("/proc/self/clear_refs").write_text("5")
before = held("VmRSS")
result = Memory().copy_thread("long")
print(len(result.message_id_map), held("VmHWM") - before)
"""


@pytest.mark.django_db(transaction=True)
def test_clone__memory_is_limited_by_the_response_and_a_copy_needs_little(
    tmp_path: Path,
) -> None:
    long_thread()
    fill(make_thread("r", "short"), 100)
    with real_server(tmp_path) as server:
        server.send("POST", "threads/short/clone?agentId=a", {})
        before = server.forget_peak()
        status, body = server.send("POST", "threads/long/clone?agentId=a", {})
        grown = server.peak() - before
    assert status == 200 and len(json.loads(body)["clonedMessages"]) == 20_000
    assert grown <= 2.5 * len(body), f"{grown / len(body):.2f} times {len(body)} bytes"
    copy = [sys.executable, "-c", COPY]
    done = subprocess.run(copy, env=environment(tmp_path), capture_output=True, timeout=120)
    copied, grown = map(int, done.stdout.split())
    assert copied == 20_000 and grown < 20_000_000, f"{grown} bytes"


def test_clone__statements_do_not_grow(statements: Statements) -> None:
    counts = set()
    for size in (0, 10, 400, 3_000):
        thread = make_thread("r")
        fill(thread, size)
        with statements() as sent:
            result = cloning.clone_thread(thread.id)
        assert len(result.messages) == size
        counts.add(len(sent))
    assert len(counts) == 1 and max(counts) <= 7


def test_long__a_clone_keeps_everything_in_order(statements: Statements) -> None:
    thread = long_thread(1_234)
    result = cloning.clone_thread(thread.id)
    numbers = [message.content["parts"][0]["text"].split()[-1] for message in result.messages]
    assert numbers == [str(n) for n in range(1_234)]
    assert connection.in_atomic_block
