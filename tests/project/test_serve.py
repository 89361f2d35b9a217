"""`manage.py serve`, whole: started, used and stopped as a stranger would."""

import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.parse import urlencode

import psutil
import pytest

from project import embedded, keeper
from project.processes import RESTARTS
from tests.project.commands import ROOT, environment, manage

pytestmark = pytest.mark.slow
LOGIN = re.compile(r"as admin with password (\S+) ")
WAIT = 90.0
SWITCH_OFF = """
from django.contrib.auth.models import User
User.objects.update(is_active=False)
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Service:
    """A running `manage.py serve`."""

    def __init__(self, var_dir: Path, port: int, log: str) -> None:
        self.var_dir = var_dir
        self.base = f"http://127.0.0.1:{port}"
        self.output = ""
        self.log = var_dir.with_suffix(f".{log}.log").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "serve"],
            cwd=ROOT,
            env=environment(var_dir, PORT=str(port)),
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=subprocess.STDOUT,
        )

    def said(self) -> str:
        """Everything it has printed so far."""
        return Path(self.log.name).read_text()

    def wait_until_it_says(self, text: str) -> str:
        give_up = time.monotonic() + WAIT
        while text not in self.said():
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < give_up, self.said()
            time.sleep(0.1)
        return self.said()

    def family(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def child(self, word: str) -> psutil.Process:
        """The child whose command line holds the word."""
        return next(c for c in psutil.Process(self.process.pid).children() if word in c.cmdline())

    def stop(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(WAIT)


@contextmanager
def serve(var_dir: Path, log: str = "one") -> Iterator[Service]:
    """Run the service; whatever happens, nothing of it is left."""
    service = Service(var_dir, free_port(), log)
    try:
        yield service
    finally:
        family = service.family() if service.process.poll() is None else []
        service.process.kill()
        service.process.wait()
        for child in family:
            child.kill()
        service.log.close()


def log_in(base: str, password: str) -> str:
    """Log into the admin as a browser does; give the page that follows."""
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    with browser.open(f"{base}/") as page:
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.read().decode())
        url = page.geturl()
    assert token is not None
    form = {"username": "admin", "password": password, "csrfmiddlewaretoken": token[1]}
    with browser.open(url, urlencode(form | {"next": "/admin/"}).encode()) as page:
        return str(page.read().decode())


def assert_nothing_left(family: list[psutil.Process], var_dir: Path) -> None:
    # A zombie has ended: it waits for the machine's first process to take note.
    left = [child for child in family if child.is_running()]
    assert [child for child in left if child.status() != psutil.STATUS_ZOMBIE] == []
    assert keeper.server_pid(embedded.data_dir(var_dir)) is None


def test_serve__first_run_then_second_run(tmp_path: Path) -> None:
    var_dir = tmp_path / "var"
    with serve(var_dir) as service:
        said = service.wait_until_it_says("Ctrl-C")
        password = LOGIN.search(said)
        assert password is not None, said
        assert "messages loaded" in said
        assert "Log out" in log_in(service.base, password[1])
        secret = manage(var_dir, "create_token", "admin").stdout.strip()
        request = urllib.request.Request(
            f"{service.base}/api/memory/threads", headers={"Authorization": f"Bearer {secret}"}
        )
        with urllib.request.urlopen(request) as response:
            assert b"sample-broken-tent-pole" in response.read()
        family = service.family()
        assert service.stop(signal.SIGINT) == 0
        assert service.said().rstrip().endswith("Stopped.")
        assert_nothing_left(family, var_dir)
    with serve(var_dir) as service:
        said = service.wait_until_it_says("Ctrl-C")
        assert "changepassword admin" in said
        assert "messages loaded" not in said
        assert LOGIN.search(said) is None
        family = service.family()
        assert service.stop(signal.SIGTERM) == 0
        assert_nothing_left(family, var_dir)
    manage(var_dir, "shell", "-c", SWITCH_OFF)
    with serve(var_dir) as service:
        assert "no administrator is active" in service.wait_until_it_says("Ctrl-C")
        assert service.stop(signal.SIGTERM) == 0


def test_serve__two_first_runs_at_once_prepare_one_after_the_other(tmp_path: Path) -> None:
    with serve(tmp_path / "var") as one, serve(tmp_path / "var", "two") as other:
        said = [service.wait_until_it_says("Ctrl-C") for service in (one, other)]
        assert sum("messages loaded" in text for text in said) == 1
        assert sum(LOGIN.search(text) is not None for text in said) == 1
        assert [one.stop(signal.SIGINT), other.stop(signal.SIGINT)] == [0, 0]


def test_serve__a_helper_that_dies_is_started_again(tmp_path: Path) -> None:
    with serve(tmp_path / "var") as service:
        service.wait_until_it_says("Ctrl-C")
        worker = service.child("worker")
        worker.kill()
        service.wait_until_it_says("The worker ended by itself (status -9) and is started again")
        assert service.child("worker").pid != worker.pid
        assert service.stop(signal.SIGINT) == 0


def test_serve__a_helper_that_keeps_dying_takes_the_rest_along(tmp_path: Path) -> None:
    with serve(tmp_path / "var") as service:
        service.wait_until_it_says("Ctrl-C")
        family = service.family()
        while service.process.poll() is None:
            with suppress(StopIteration, psutil.Error):
                service.child("beat").kill()
            time.sleep(0.1)
        assert service.said().count("is started again") == RESTARTS
        assert "The scheduler ended by itself (status -9); everything was" in service.said()
        assert_nothing_left(family, tmp_path / "var")


def test_serve__a_web_server_that_dies_takes_the_rest_along(tmp_path: Path) -> None:
    with serve(tmp_path / "var") as service:
        service.wait_until_it_says("Ctrl-C")
        family = service.family()
        service.child("granian").kill()
        assert service.process.wait(WAIT) != 0
        assert "The web server ended by itself (status -9)" in service.said()
        assert "Traceback" not in service.said()
        assert_nothing_left(family, tmp_path / "var")


def test_serve__a_taken_port_is_said_plainly(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = manage(tmp_path, "serve", PORT=str(port))
    assert done.returncode != 0
    assert done.stderr.strip() == (
        f"CommandError: Port {port} is taken by another program. Choose another: PORT=8001 make run"
    )
    assert not (tmp_path / "postgres").exists()


@pytest.mark.parametrize("port", ["0", "-1", "65536", "99999"])
def test_serve__a_port_that_cannot_be_is_said_plainly(tmp_path: Path, port: str) -> None:
    done = manage(tmp_path, "serve", PORT=port)
    assert done.returncode != 0
    assert done.stderr.strip() == (f"CommandError: A port is a number from 1 to 65535, not {port}.")
    assert not (tmp_path / "postgres").exists()


def test_serve__an_unreachable_database_is_said_plainly(tmp_path: Path) -> None:
    url = "postgresql://nobody@127.0.0.1:1/nothing"
    done = manage(tmp_path, "serve", PORT=str(free_port()), DATABASE_URL=url)
    assert done.returncode != 0
    assert done.stderr.startswith("CommandError: The database cannot be used.")
    assert "Traceback" not in done.stderr
