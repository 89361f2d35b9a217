"""Measure the SQL of a scenario alone: psycopg, one connection, no web server and no Django."""

import statistics
import time
from collections.abc import Iterable
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection
from django.test import Client

from benchmarks.load_generator import fill_placeholders
from benchmarks.runner import ROUNDS, SECONDS
from benchmarks.scenarios import Scenario
from tests.support.servers import ServerError

Statement = tuple[str, tuple[Any, ...]]

RECORDED_NUMBER = "90000000"
"""The number of the recorded run. Repetitions replace it in the parameters by their own."""


def measure(scenarios: Iterable[Scenario], database: str) -> dict[str, float]:
    """Return, by scenario, how many times a second one connection can execute its SQL."""
    rates = {}
    with psycopg.connect(database, autocommit=True, prepare_threshold=3) as baseline:
        number = int(RECORDED_NUMBER) + 1
        for scenario in scenarios:
            statements = record_statements(scenario)
            rounds = []
            for _ in range(ROUNDS):
                repetitions, seconds = _repeat(baseline, statements, number)
                number += repetitions
                rounds.append(repetitions / seconds)
            rates[scenario.name] = statistics.median(rounds)
    return rates


def record_statements(scenario: Scenario) -> list[Statement]:
    """Let Django answer the scenario's requests once and return the statements it executes.

    Raises:
        ServerError: A response is not 200.
    """
    recorded: list[Statement] = []

    def record(execute: Any, statement: str, params: Any, many: bool, context: Any) -> Any:
        recorded.append((statement, tuple(params or ())))
        return execute(statement, params, many, context)

    client = Client(SERVER_NAME=settings.ALLOWED_HOSTS[0])
    with connection.execute_wrapper(record):
        for step in scenario.steps:
            path, body = (
                fill_placeholders(text.encode(), int(RECORDED_NUMBER)).decode()
                for text in (step.path, step.body)
            )
            response = client.generic(step.method, path, body, content_type="application/json")
            if response.status_code != 200:
                raise ServerError(
                    f"{scenario.name}: {response.status_code} {response.content[:500]!r}"
                )
    return recorded


def _repeat(
    baseline: psycopg.Connection[tuple[object, ...]], statements: list[Statement], number: int
) -> tuple[int, float]:
    repetitions = 0
    started = time.perf_counter()
    while (seconds := time.perf_counter() - started) < SECONDS:
        replacement = str(number + repetitions)
        with baseline.cursor() as cursor:
            for statement, params in statements:
                values = [_with_number(value, replacement) for value in params]
                cursor.execute(statement.encode(), values)
                if cursor.description:
                    cursor.fetchall()
        repetitions += 1
    return repetitions, seconds


def _with_number(value: Any, number: str) -> Any:
    """Return a parameter with the recorded run's number replaced."""
    if isinstance(value, list):
        return [_with_number(item, number) for item in value]
    return value.replace(RECORDED_NUMBER, number) if isinstance(value, str) else value
