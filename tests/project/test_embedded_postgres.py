"""The embedded PostgreSQL, with real processes that come, go and are killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from project import embedded_postgres, postgres_supervisor
from tests.project.commands import ROOT, environment
from tests.support.waiting import wait_until

# Start the server through Django, print a line, and end when standard input is closed.
USE = """
import sys, django
django.setup()
from django.db import connection
from tests.support.waiting import wait_until
with connection.cursor() as cursor:
    cursor.execute("SELECT pg_postmaster_start_time()")
    print(cursor.fetchone()[0].isoformat(), flush=True)
sys.stdin.read()
"""


class User:
    """A process that uses the database until `leave`."""

    def __init__(self, var_dir: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", USE],
            cwd=ROOT,
            env=environment(var_dir),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_until_connected(self) -> str:
        """Give the start time of the server it has found."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        assert line, self.process.communicate()[1]
        return line

    def leave(self) -> None:
        self.process.communicate()
        assert self.process.returncode == 0

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


NewUser = Callable[[Path], User]


@pytest.fixture
def new_user() -> Iterator[NewUser]:
    """Make users that are gone at the end, even of a test that failed."""
    with ExitStack() as stack:

        def make(var_dir: Path) -> User:
            user = User(var_dir)
            stack.callback(user.kill)
            return user

        yield make


@pytest.fixture
def var_dir(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    wait_until_stopped(tmp_path)


def server_pid(var_dir: Path) -> int | None:
    return postgres_supervisor.find_server_pid(embedded_postgres.data_dir(var_dir))


def wait_until_stopped(var_dir: Path) -> None:
    wait_until(lambda: server_pid(var_dir) is None)


def test_start__several_processes_at_once_share_one_server(
    var_dir: Path, new_user: NewUser
) -> None:
    users = [new_user(var_dir) for _ in range(4)]
    assert len({user.wait_until_connected() for user in users}) == 1
    for user in users:
        assert server_pid(var_dir) is not None
        user.leave()
    wait_until_stopped(var_dir)


def test_start__the_server_stays_as_long_as_anybody_uses_it(
    var_dir: Path, new_user: NewUser
) -> None:
    first, second = new_user(var_dir), new_user(var_dir)
    started = {first.wait_until_connected(), second.wait_until_connected()}
    first.leave()
    third = new_user(var_dir)
    assert {third.wait_until_connected()} == started
    second.leave()
    third.leave()


def test_start__the_server_goes_with_a_user_that_was_killed(
    var_dir: Path, new_user: NewUser
) -> None:
    user = new_user(var_dir)
    user.wait_until_connected()
    user.kill()
    wait_until_stopped(var_dir)


def test_start__recovers_from_a_server_that_was_killed(var_dir: Path, new_user: NewUser) -> None:
    user = new_user(var_dir)
    before = user.wait_until_connected()
    pid = server_pid(var_dir)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_until_stopped(var_dir)
    # The id of the dead server now belongs to another process, namely this one.
    pid_file = embedded_postgres.data_dir(var_dir) / "postmaster.pid"
    pid_file.write_text(pid_file.read_text().replace(str(pid), str(os.getpid()), 1))
    other = new_user(var_dir)
    assert other.wait_until_connected() > before
    other.leave()
    user.kill()


def test_start__a_half_made_database_is_made_again(var_dir: Path, new_user: NewUser) -> None:
    (var_dir / "postgres.new" / "base").mkdir(parents=True)
    user = new_user(var_dir)
    user.wait_until_connected()
    user.leave()


def test_start__works_where_the_path_is_too_long_for_a_socket(
    tmp_path: Path, new_user: NewUser
) -> None:
    var_dir = tmp_path / ("deep" * 20) / ("down" * 10)
    assert embedded_postgres.socket_dir(var_dir) != embedded_postgres.data_dir(var_dir)
    user = new_user(var_dir)
    user.wait_until_connected()
    user.leave()
    wait_until_stopped(var_dir)


def test_release__returns_when_the_server_has_stopped(tmp_path: Path) -> None:
    embedded_postgres.start(tmp_path)
    assert server_pid(tmp_path) is not None
    embedded_postgres.release(tmp_path)
    assert server_pid(tmp_path) is None


def test_start__a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(embedded_postgres.EmbeddedDatabaseError) as caught:
        embedded_postgres.start(tmp_path / "file" / "var")
    assert str(caught.value).count("\n") == 0
    assert str(tmp_path / "file") in str(caught.value)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("initdb: error: could not write: No space left on device", "The disk is full"),
        ("HINT:  Check free disk space.", "The disk is full"),
        ('mkdir "/x": Permission denied', "cannot be written by this user"),
        ("FATAL: something else\n\n", "FATAL: something else"),
        ("", "no reason given"),
    ],
)
def test_describe_failure__gives_the_reason_in_one_sentence(output: str, expected: str) -> None:
    message = embedded_postgres.describe_failure(output, Path("/srv/var"))
    assert expected in message
    assert "/srv/var" in message
    assert "\n" not in message


def test_database_settings__touch_no_file(tmp_path: Path) -> None:
    embedded_postgres.database_settings(tmp_path / "var")
    assert list(tmp_path.iterdir()) == []
