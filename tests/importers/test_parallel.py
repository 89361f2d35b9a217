"""Tests of storing in parallel: order, concurrency, and connections."""

import threading
import time
from collections.abc import Callable
from functools import partial

import pytest
from django.db import connection
from pytest_django import Settings

from mastra_memory.db import sql
from mastra_memory.importers.parallel import ParallelWorkers
from mastra_memory.importers.records import ImportedMessage, ImportedThread, SourceItem
from mastra_memory.models import Message, Thread
from tests.support.factories import moment, text_content
from tests.support.importing import count_outcomes, import_items
from tests.support.waiting import MAX_WAIT_SECONDS, wait_until


def test_submit__single_worker_uses_the_callers_thread() -> None:
    workers: ParallelWorkers[str] = ParallelWorkers(1)
    with workers:
        assert list(workers.submit(0, lambda: threading.current_thread().name)) == [
            threading.current_thread().name
        ]
        assert list(workers.finish()) == []


def test_submit__workers_run_in_parallel_and_in_order() -> None:
    barrier = threading.Barrier(2, timeout=MAX_WAIT_SECONDS)
    done: list[tuple[int, int]] = []

    def job(worker: int, number: int) -> tuple[int, int]:
        barrier.wait()
        done.append((worker, number))
        return worker, number

    workers: ParallelWorkers[tuple[int, int]] = ParallelWorkers(2)
    with workers:
        results = [
            r
            for n in range(3)
            for worker in (0, 1)
            for r in workers.submit(worker, partial(job, worker, n))
        ]
        results += list(workers.finish())
    assert sorted(results) == [(worker, n) for worker in (0, 1) for n in range(3)]
    for worker in (0, 1):
        assert [n for other, n in done if other == worker] == [0, 1, 2]


def test_finish__raises_errors_after_the_other_results() -> None:
    def fail() -> str:
        raise ValueError("torn")

    def slow() -> str:
        time.sleep(0.05)
        return "done"

    workers: ParallelWorkers[str] = ParallelWorkers(2)
    results: list[str] = []
    jobs: list[Callable[[], str]] = [fail, slow]
    with workers, pytest.raises(ValueError, match="torn"):
        for worker, job in enumerate(jobs):
            results += workers.submit(worker, job)
        for result in workers.finish():
            results.append(result)
    assert results == ["done"]


def items(threads: int, turns: int) -> list[SourceItem]:
    source_items: list[SourceItem] = []
    for number in range(threads):
        resources = {"resource_id": "alice", "created_at": moment(), "location": "here"}
        source_items.append(ImportedThread(id=f"t{number}", updated_at=moment(), **resources))  # type: ignore[arg-type]
        source_items += [
            ImportedMessage(
                id=f"t{number}:{turn}",
                thread_id=f"t{number}",
                role="user",
                content=text_content(str(turn)),
                **resources,  # type: ignore[arg-type]
            )
            for turn in range(turns)
        ]
    return source_items


@pytest.mark.django_db(transaction=True)
def test_load__several_workers_keep_order_and_close_connections() -> None:
    report = import_items(items(40, 25), workers=3, batch=30)
    assert count_outcomes(report, "threads") == {"stored": 40}
    assert count_outcomes(report, "messages") == {"stored": 1000}
    for thread in Thread.objects.all():
        texts = thread.messages.order_by("created_at", "sequence").values_list("text", flat=True)
        assert list(texts) == [str(turn) for turn in range(25)]
    again = import_items(items(40, 25), workers=2, batch=77)
    assert count_outcomes(again, "messages") == {"already there": 1000}
    connections = """SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND backend_type = 'client backend'
            AND pid <> pg_backend_pid() AND query LIKE '%%mastra_import%%'"""
    wait_until(lambda: sql.fetch_all(connections) == [(0,)])


@pytest.mark.django_db(transaction=True)
def test_load__concurrent_imports_make_no_duplicates() -> None:
    reports = []

    def load() -> None:
        try:
            reports.append(import_items(items(30, 20), workers=2, batch=50))
        finally:
            connection.close()

    both = [threading.Thread(target=load) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert (Thread.objects.count(), Message.objects.count()) == (30, 600)
    assert sum(report.get_count("messages", "stored") for report in reports) == 600
    assert sum(report.get_count("messages", "already there") for report in reports) == 600


@pytest.mark.django_db(transaction=True)
def test_load__query_log_stays_small_in_debug_mode(settings: Settings) -> None:
    settings.DEBUG = True
    import_items(items(200, 10), batch=20)
    assert len(connection.queries_log) < 30
