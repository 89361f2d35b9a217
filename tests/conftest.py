"""Fixtures for all tests, and separate folders and databases for simultaneous test runs."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from pytest_django import Settings

from tests.support.api_client import Api
from tests.support.factories import make_user

RUN_FOLDER = pytest.StashKey[Path]()
Statements = Callable[..., AbstractContextManager[list[str]]]


def pytest_configure(config: pytest.Config) -> None:
    """Give each run a folder of its own for `tmp_path`.

    By default all runs of a user share one parent folder, and each run that starts makes it private
    again. If root runs the tests, PostgreSQL runs under another account (see
    `project.system_accounts`) and would lose its access in the middle of a test.
    """
    if config.option.basetemp is None and not hasattr(config, "workerinput"):
        parent = os.environ.get("PYTEST_DEBUG_TEMPROOT")
        folder = Path(tempfile.mkdtemp(prefix="mastra-tests-", dir=parent))
        folder.chmod(0o755)
        config.stash[RUN_FOLDER] = folder
        config.option.basetemp = str(folder / "tmp")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Remove the folder of a run without failures. Otherwise keep it, to find the reason."""
    folder = session.config.stash.get(RUN_FOLDER, None)
    if folder is not None and exitstatus == pytest.ExitCode.OK:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def django_db_modify_db_settings() -> None:
    """Name the test database after this process, so that each run has its own."""
    connection.settings_dict["TEST"]["NAME"] = f"test_mastra_{os.getpid()}"


@dataclass(frozen=True)
class Person:
    """A user who calls the API."""

    user: User
    api: Api

    @property
    def resource_id(self) -> str:
        """Return the id of the user's own resource."""
        return str(self.user.pk)


def person(name: str, *, unscoped: bool = False) -> Person:
    """Create a user."""
    user = make_user(name, unscoped=unscoped)
    return Person(user, Api(user))


@pytest.fixture
def alice(db: None) -> Person:
    """A user who may access only her own resource."""
    return person("alice")


@pytest.fixture
def bob(db: None) -> Person:
    """Another such user."""
    return person("bob")


@pytest.fixture
def boss(db: None) -> Person:
    """A user who may access all resources."""
    return person("boss", unscoped=True)


@pytest.fixture
def api(boss: Person) -> Api:
    """The API as a user who may access all resources, for tests that are not about permissions."""
    return boss.api


@pytest.fixture
def memory_settings(settings: Settings) -> Callable[..., None]:
    """Return a function that sets `MASTRA_MEMORY` to its keyword arguments, and nothing else."""

    def configure(**chosen: Any) -> None:
        settings.MASTRA_MEMORY = chosen

    return configure


@pytest.fixture
def statements() -> Statements:
    """Return a context manager that lists the SQL statements of its block, without savepoints.

    Statements that set and reset `statement_timeout` are listed only with `limits=True`. In
    `project/`, requests of the API do not send them: the connection starts with their limit.
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
