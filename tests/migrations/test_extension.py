"""The migration that needs an extension."""

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
def elsewhere() -> Iterator[BaseDatabaseWrapper]:
    """A connection to an empty database of this server."""
    name = unique("empty").replace("-", "_")
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
    there = connection.copy(alias="elsewhere")
    there.settings_dict = {**connection.settings_dict, "NAME": name}
    try:
        yield there
    finally:
        there.close()
        with connection.cursor() as cursor:
            cursor.execute(f"DROP DATABASE {name}")
            cursor.execute("DROP ROLE IF EXISTS nobody_special")


def create(there: BaseDatabaseWrapper) -> None:
    """What the migration does."""
    _extension.create_extension(None, SimpleNamespace(connection=there))


def has_vector(there: BaseDatabaseWrapper) -> bool:
    """Whether the extension is there."""
    with there.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_extension WHERE extname = 'vector'")
        return bool(cursor.fetchone()[0])


def test_create_extension__makes_it_once(elsewhere: BaseDatabaseWrapper) -> None:
    create(elsewhere)
    create(elsewhere)
    assert has_vector(elsewhere)


def test_create_extension__without_the_right_it_says_what_to_do(
    elsewhere: BaseDatabaseWrapper,
) -> None:
    with elsewhere.cursor() as cursor:
        cursor.execute("CREATE ROLE nobody_special")
        cursor.execute("SET ROLE nobody_special")
    with pytest.raises(ImproperlyConfigured) as refused:
        create(elsewhere)
    said = str(refused.value)
    assert "permission denied" in said
    assert "CREATE EXTENSION vector;" in said and "superuser" in said


def test_create_extension__what_is_there_already_needs_no_right(
    elsewhere: BaseDatabaseWrapper,
) -> None:
    create(elsewhere)
    with elsewhere.cursor() as cursor:
        cursor.execute("CREATE ROLE nobody_special")
        cursor.execute("SET ROLE nobody_special")
    create(elsewhere)
