"""A database that is stopped, crashes or loses a connection while workers observe."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection, connections
from psycopg import OperationalError

from project import embedded_postgres, postgres_supervisor
from tests.observational import fault_cases, faults
from tests.observational.fault_cases import OPERATIONS, Setting
from tests.support import servers
from tests.support.interruption import connect_to_test_database
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
ALL = os.environ.get("MEASURED_BUDGETS") == "1"
DOWN_SECONDS = 3.0


@pytest.fixture(scope="module")
def server_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a PostgreSQL server that only this module uses, with all tables."""
    folder = tmp_path_factory.mktemp("server")
    folder.chmod(0o755)
    env = servers.environment("project.settings", folder)
    command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    embedded_postgres.start(folder)
    try:
        subprocess.run(command, env=env, cwd=servers.ROOT, check=True)
        yield folder
    finally:
        embedded_postgres.release(folder)


@pytest.fixture
def setting(
    server_folder: Path, tmp_path: Path, memory_settings: Callable[..., None]
) -> Iterator[Setting]:
    """A conversation without messages on the server of this module."""
    with (
        use_server(server_folder),
        fault_cases.new_setting(tmp_path, memory_settings) as setting,
    ):
        yield setting


@contextmanager
def use_server(folder: Path) -> Iterator[None]:
    """Let Django's default connection, in all threads, be one to this server."""
    settings = connection.settings_dict
    before = dict(settings)
    connections.close_all()
    settings.update(embedded_postgres.database_settings(folder))
    try:
        call_command("flush", interactive=False, verbosity=0)
        yield
    finally:
        connections.close_all()
        settings.clear()
        settings.update(before)


def restart(folder: Path, how: signal.Signals) -> None:
    """Stop the server with a signal, and start it again a while later."""
    data = embedded_postgres.data_dir(folder)
    pid = postgres_supervisor.find_server_pid(data)
    assert pid is not None
    connections.close_all()
    os.kill(pid, how)
    wait_until(lambda: postgres_supervisor.find_server_pid(data) is None, seconds=60)
    time.sleep(DOWN_SECONDS)
    embedded_postgres.start(folder)


def kill_backend() -> None:
    """Kill the process behind a worker's connection. PostgreSQL then restarts all of them."""
    connections.close_all()
    with connect_to_test_database() as other:
        row = other.execute(
            """SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'
            AND pid <> pg_backend_pid() ORDER BY backend_start LIMIT 1"""
        ).fetchone()
        assert row is not None
        os.kill(row[0], signal.SIGKILL)
        wait_until(lambda: not is_alive(other), seconds=60)
    wait_until(can_connect, seconds=60)


def is_alive(other: psycopg.Connection) -> bool:
    """Return whether a connection still works."""
    try:
        other.execute("SELECT 1")
    except OperationalError:
        return False
    return True


def can_connect() -> bool:
    """Return whether the server accepts connections."""
    try:
        connect_to_test_database().close()
    except OperationalError:
        return False
    return True


def end_connections() -> None:
    """End all connections, and refuse new ones for a while."""
    with faults.database_away():
        time.sleep(DOWN_SECONDS)


FAULTS: dict[str, Callable[[Path], None]] = {
    "stopped": lambda folder: restart(folder, signal.SIGINT),
    "crashed": lambda folder: restart(folder, signal.SIGQUIT),
    "backend killed": lambda _: kill_backend(),
    "connections ended": lambda _: end_connections(),
}
CASES = [
    (fault, operation, step)
    for fault in FAULTS
    for operation in ("observation", "buffering", "reflection")
    for step in ("claim", "model", "commit")
    if (fault, operation, step) == ("stopped", "observation", "model")
    or (ALL and (operation == "observation" or step == "commit"))
]


@pytest.mark.parametrize(("fault", "operation", "step"), CASES)
def test_database__comes_back_and_the_work_goes_on(
    setting: Setting, server_folder: Path, fault: str, operation: str, step: str
) -> None:
    purpose = OPERATIONS[operation](setting)
    with fault_cases.stopped_worker(setting, purpose, step) as process:
        FAULTS[fault](server_folder)
        setting.model.release()
        setting.say(12)
        setting.finish()
        assert process.poll() is None, "the worker survives"
