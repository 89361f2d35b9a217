"""The floor: the SQL of one request, sent by psycopg alone, with no web server and no Django."""

import statistics
import time
from collections.abc import Iterable
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection
from django.test import Client

from benchmarks.contest import ROUNDS, SECONDS
from benchmarks.lines import Line
from benchmarks.load import LANE, NUMBER
from tests.servers import ServerError

Statement = tuple[str, tuple[Any, ...]]

MARKER = "90000000"
"""The number of the request that is watched; the floor puts others in its place."""


def measure(lines: Iterable[Line], database: str) -> dict[str, float]:
    """Give, by line, how often a second one connection can run the request's statements."""
    rates = {}
    with psycopg.connect(database, autocommit=True, prepare_threshold=3) as link:
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


def statements_of(line: Line) -> list[Statement]:
    """Let Django serve the request once and write down the statements it sends."""

    def fill(pattern: str) -> str:
        return pattern.replace(NUMBER, MARKER).replace(LANE, "0" * len(LANE))

    sent: list[Statement] = []

    def note(execute: Any, statement: str, params: Any, many: bool, context: Any) -> Any:
        sent.append((statement, tuple(params or ())))
        return execute(statement, params, many, context)

    client = Client(SERVER_NAME=settings.ALLOWED_HOSTS[0])
    with connection.execute_wrapper(note):
        answer = client.generic(
            line.method, fill(line.path), fill(line.body), content_type="application/json"
        )
    if answer.status_code != 200:
        raise ServerError(f"{line.name}: {answer.status_code} {answer.content[:500]!r}")
    return sent


def _repeat(
    link: psycopg.Connection[tuple[object, ...]], statements: list[Statement], first: int
) -> tuple[int, float]:
    done = 0
    started = time.perf_counter()
    while (seconds := time.perf_counter() - started) < SECONDS:
        number = str(first + done)
        with link.cursor() as cursor:
            for statement, params in statements:
                cursor.execute(statement.encode(), [_numbered(value, number) for value in params])
                if cursor.description:
                    cursor.fetchall()
        done += 1
    return done, seconds


def _numbered(value: Any, number: str) -> Any:
    """A parameter with this request's number in place of the watched one's."""
    if isinstance(value, list):
        return [_numbered(item, number) for item in value]
    return value.replace(MARKER, number) if isinstance(value, str) else value
