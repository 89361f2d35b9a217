"""What tests share: people who call the API, agents, and the statements a call costs."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from pytest_django import Settings

from tests.support.api_client import Api
from tests.support.factories import make_user

Statements = Callable[..., AbstractContextManager[list[str]]]


@dataclass(frozen=True)
class Person:
    """Somebody who calls the API."""

    user: User
    api: Api

    @property
    def resource_id(self) -> str:
        """The resource that is theirs."""
        return str(self.user.pk)


def person(name: str, *, unscoped: bool = False) -> Person:
    """A new person."""
    user = make_user(name, unscoped=unscoped)
    return Person(user, Api(user))


@pytest.fixture
def alice(db: None) -> Person:
    """A caller bound to her own resource."""
    return person("alice")


@pytest.fixture
def bob(db: None) -> Person:
    """Another one."""
    return person("bob")


@pytest.fixture
def boss(db: None) -> Person:
    """A caller who may see everything."""
    return person("boss", unscoped=True)


@pytest.fixture
def api(boss: Person) -> Api:
    """The API without bounds, for tests that are not about who may do what."""
    return boss.api


@pytest.fixture
def memory_settings(settings: Settings) -> Callable[..., None]:
    """Set `MASTRA_MEMORY` to these names alone."""

    def configure(**chosen: Any) -> None:
        settings.MASTRA_MEMORY = chosen

    return configure


@pytest.fixture
def statements() -> Statements:
    """A block that lists its SQL statements, savepoints aside.

    Statements that set and reset the time limit are listed only with `limits`: the web processes
    of `project/` need none for the API, since their sessions start with its limit.
    """

    @contextmanager
    def listing(*, limits: bool = False) -> Iterator[list[str]]:
        sent: list[str] = []

        def note(execute: Any, statement: str, params: Any, many: bool, context: Any) -> Any:
            is_limit = "'statement_timeout'" in statement
            if not statement.startswith(("SAVEPOINT", "RELEASE", "ROLLBACK")) and (
                limits or not is_limit
            ):
                sent.append(statement)
            return execute(statement, params, many, context)

        with connection.execute_wrapper(note):
            yield sent

    return listing
