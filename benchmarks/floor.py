"""The floor: the SQL of one request, sent by psycopg alone, with no web server and no Django."""

import statistics
import time
from collections.abc import Iterable

import psycopg
from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from benchmarks.contest import ROUNDS, SECONDS
from benchmarks.lines import Line
from benchmarks.load import LANE, NUMBER
from tests.servers import ServerError

MARKER = "90000000"
"""The number of the request that is watched; the floor puts others in its place."""


def measure(lines: Iterable[Line], database: str) -> dict[str, float]:
    """Give, by line, how often a second one connection can run the request's statements."""
    rates = {}
    with psycopg.connect(database, autocommit=True, prepare_threshold=None) as link:
        first = int(MARKER) + 1
        for line in lines:
            statements = statements_of(line)
            rounds = []
            for _ in range(ROUNDS):
                done, seconds = _repeat(link, statements, first)
                first += done
                rounds.append(done / seconds)
            rates[line.name] = statistics.median(rounds)
    return rates


def statements_of(line: Line) -> list[str]:
    """Let Django serve the request once and write down the statements it sends."""

    def fill(pattern: str) -> str:
        return pattern.replace(NUMBER, MARKER).replace(LANE, "0" * len(LANE))

    client = Client(SERVER_NAME=settings.ALLOWED_HOSTS[0])
    with CaptureQueriesContext(connection) as captured:
        answer = client.generic(
            line.method, fill(line.path), fill(line.body), content_type="application/json"
        )
    if answer.status_code != 200:
        raise ServerError(f"{line.name}: {answer.status_code} {answer.content[:500]!r}")
    return [query["sql"] for query in captured.captured_queries]


def _repeat(
    link: psycopg.Connection[tuple[object, ...]], statements: list[str], first: int
) -> tuple[int, float]:
    done = 0
    started = time.perf_counter()
    while (seconds := time.perf_counter() - started) < SECONDS:
        number = str(first + done)
        with link.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement.replace(MARKER, number).encode())
                if cursor.description:
                    cursor.fetchall()
        done += 1
    return done, seconds
