"""`/healthz` and `/readyz`."""

import pytest
from django.db import OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from pytest_django import DjangoAssertNumQueries, Settings


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
