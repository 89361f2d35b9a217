"""The migration that creates the extension `vector`."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper

from mastra_memory.migrations import _extension
from tests.support.factories import unique

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def empty_database() -> Iterator[BaseDatabaseWrapper]:
    """Return a connection to an empty database of this server."""
    name = unique("empty").replace("-", "_")
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
    database = connection.copy(alias="elsewhere")
    database.settings_dict = {**connection.settings_dict, "NAME": name}
    try:
        yield database
    finally:
        database.close()
        with connection.cursor() as cursor:
            cursor.execute(f"DROP DATABASE {name}")
            cursor.execute("DROP ROLE IF EXISTS unprivileged")


def create(database: BaseDatabaseWrapper) -> None:
    """Run the function of the migration."""
    _extension.create_extension(None, SimpleNamespace(connection=database))


def has_vector(database: BaseDatabaseWrapper) -> bool:
    """Return whether the extension exists."""
    with database.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_extension WHERE extname = 'vector'")
        return bool(cursor.fetchone()[0])


def test_create_extension__can_run_twice(empty_database: BaseDatabaseWrapper) -> None:
    create(empty_database)
    create(empty_database)
    assert has_vector(empty_database)


def test_create_extension__without_permission_says_what_to_do(
    empty_database: BaseDatabaseWrapper,
) -> None:
    with empty_database.cursor() as cursor:
        cursor.execute("CREATE ROLE unprivileged")
        cursor.execute("SET ROLE unprivileged")
    with pytest.raises(ImproperlyConfigured) as refused:
        create(empty_database)
    text = str(refused.value)
    assert "permission denied" in text
    assert "CREATE EXTENSION vector;" in text and "superuser" in text


def test_create_extension__needs_no_permission_if_it_exists(
    empty_database: BaseDatabaseWrapper,
) -> None:
    create(empty_database)
    with empty_database.cursor() as cursor:
        cursor.execute("CREATE ROLE unprivileged")
        cursor.execute("SET ROLE unprivileged")
    create(empty_database)
