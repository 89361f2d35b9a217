"""`/healthz` and `/readyz`."""

from typing import Any

import pytest
from django.db import OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from pytest_django import DjangoAssertNumQueries, Settings

from project import health


def test_healthz__asks_nothing_of_the_database(client: Client) -> None:
    # Without the mark `django_db` a query would be an error.
    response = client.get("/healthz")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


@pytest.mark.django_db
def test_readyz__good_when_migrated(client: Client) -> None:
    response = client.get("/readyz")
    assert (response.status_code, response.json()) == (200, {"status": "ok"})


@pytest.mark.django_db
def test_readyz__503_while_migrations_are_pending(client: Client) -> None:
    MigrationRecorder(connection).migration_qs.filter(app="project").delete()
    response = client.get("/readyz")
    reason = {"status": "unavailable", "reason": "migrations are pending"}
    assert (response.status_code, response.json()) == (503, reason)


@pytest.mark.django_db
def test_readyz__503_without_details_when_the_database_is_away(client: Client) -> None:
    def refuse(*args: object) -> None:
        raise OperationalError("could not connect to db.internal as mastra")

    with connection.execute_wrapper(refuse):
        response = client.get("/readyz")
    reason = {"status": "unavailable", "reason": "database is unreachable"}
    assert (response.status_code, response.json()) == (503, reason)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("53100", "the database's disk is full"),
        ("53300", "too many database connections"),
        ("57P03", "database is unreachable"),
    ],
)
def test_readyz__503_gives_the_reason_writing_fails(
    client: Client, state: str, reason: str
) -> None:
    def fail(execute: Any, statement: str, params: Any, many: bool, context: Any) -> Any:
        if statement == health.WRITE_TEMPORARY_FILE_SQL:
            statement = f"DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '{state}'; END $$"
        return execute(statement, params, many, context)

    with connection.execute_wrapper(fail):
        response = client.get("/readyz")
    body = {"status": "unavailable", "reason": reason}
    assert (response.status_code, response.json()) == (503, body)


@pytest.mark.django_db(transaction=True)
def test_readyz__writes_a_temporary_file() -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, TIMING OFF) {health.WRITE_TEMPORARY_FILE_SQL}")
        plan = "\n".join(line for (line,) in cursor.fetchall())
        assert "external merge  Disk" in plan
        cursor.execute("SHOW work_mem")
        assert cursor.fetchone() != ("64kB",)


@pytest.mark.django_db
def test_readyz__503_when_our_own_disk_is_nearly_full(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "MIN_FREE_BYTES", 2**80)
    response = client.get("/readyz")
    body = {"status": "unavailable", "reason": "the disk of VAR_DIR is full"}
    assert (response.status_code, response.json()) == (503, body)


@pytest.mark.django_db
def test_health_routes__answer_under_any_host_and_without_https(
    client: Client, settings: Settings
) -> None:
    settings.ALLOWED_HOSTS = ["memory.example.com"]
    settings.SECURE_SSL_REDIRECT = True
    assert client.get("/healthz", headers={"host": "10.0.0.7:8000"}).status_code == 200
    assert client.get("/readyz", headers={"host": "10.0.0.7:8000"}).status_code == 200
    assert client.get("/admin/", headers={"host": "memory.example.com"}).status_code == 301


@pytest.mark.django_db
def test_readyz__costs_few_queries(
    client: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_max_num_queries(3):
        client.get("/readyz")
