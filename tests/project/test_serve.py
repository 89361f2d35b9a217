"""`manage.py serve`, whole: started, used and stopped as a stranger would."""

import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.cookiejar import CookieJar
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlencode

import psutil
import pytest

from project import embedded_postgres, postgres_supervisor
from tests.project.commands import ROOT, environment, manage
from tests.support.waiting import MAX_WAIT_SECONDS, wait_until

pytestmark = pytest.mark.slow
T = TypeVar("T")
LOGIN = re.compile(r"as admin with password (\S+) ")
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

    def __init__(self, var_dir: Path, port: int, log: str, **variables: str) -> None:
        self.var_dir = var_dir
        self.base = f"http://127.0.0.1:{port}"
        self.output = ""
        self.log = var_dir.with_suffix(f".{log}.log").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "serve"],
            cwd=ROOT,
            env=environment(var_dir, PORT=str(port), **variables),
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=subprocess.STDOUT,
        )

    def read_output(self) -> str:
        """Return everything that was printed so far."""
        return Path(self.log.name).read_text()

    def wait_for_output(self, text: str) -> str:
        def is_printed() -> bool:
            assert self.process.poll() is None, self.read_output()
            return text in self.read_output()

        wait_until(is_printed, describe=self.read_output)
        return self.read_output()

    def family(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def child(self, word: str) -> psutil.Process:
        """Return the child with this word in its command line."""
        return next(c for c in psutil.Process(self.process.pid).children() if word in c.cmdline())

    def web_processes(self) -> list[psutil.Process]:
        """Return the processes that answer requests."""
        children = self.child("granian").children()
        return [c for c in children if "resource_tracker" not in " ".join(c.cmdline())]

    def has_two_web_processes(self) -> bool:
        return len(self.web_processes()) == 2

    def has_new_child(self, word: str, old: int) -> bool:
        return self.child(word).pid != old

    def answers(self) -> bool:
        """Return True if the web server is alive."""
        try:
            with urllib.request.urlopen(
                f"{self.base}/healthz", timeout=MAX_WAIT_SECONDS
            ) as response:
                return bool(response.status == 200)
        except OSError:
            return False

    def stop(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(MAX_WAIT_SECONDS)


@contextmanager
def serve(var_dir: Path, log: str = "one", **variables: str) -> Iterator[Service]:
    """Run the service, and kill all of its processes at the end."""
    service = Service(var_dir, free_port(), log, **variables)
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
    assert postgres_supervisor.find_server_pid(embedded_postgres.data_dir(var_dir)) is None


def test_serve__first_run_then_second_run(tmp_path: Path) -> None:
    var_dir = tmp_path / "var"
    with serve(var_dir) as service:
        output = service.wait_for_output("Ctrl-C")
        password = LOGIN.search(output)
        assert password is not None, output
        assert "messages loaded" in output
        assert "Log out" in log_in(service.base, password[1])
        secret = manage(var_dir, "create_token", "admin").stdout.strip()
        request = urllib.request.Request(
            f"{service.base}/api/memory/threads", headers={"Authorization": f"Bearer {secret}"}
        )
        with urllib.request.urlopen(request) as response:
            assert b"sample-broken-tent-pole" in response.read()
        family = service.family()
        assert service.stop(signal.SIGINT) == 0
        assert service.read_output().rstrip().endswith("Stopped.")
        assert_nothing_left(family, var_dir)
    with serve(var_dir) as service:
        output = service.wait_for_output("Ctrl-C")
        assert "changepassword admin" in output
        assert "messages loaded" not in output
        assert LOGIN.search(output) is None
        family = service.family()
        assert service.stop(signal.SIGTERM) == 0
        assert_nothing_left(family, var_dir)
    manage(var_dir, "shell", "-c", SWITCH_OFF)
    with serve(var_dir) as service:
        assert "no administrator is active" in service.wait_for_output("Ctrl-C")
        assert service.stop(signal.SIGTERM) == 0


def test_serve__two_first_runs_at_once_prepare_one_after_the_other(tmp_path: Path) -> None:
    with serve(tmp_path / "var") as one, serve(tmp_path / "var", "two") as other:
        output = [service.wait_for_output("Ctrl-C") for service in (one, other)]
        assert sum("messages loaded" in text for text in output) == 1
        assert sum(LOGIN.search(text) is not None for text in output) == 1
        assert [one.stop(signal.SIGINT), other.stop(signal.SIGINT)] == [0, 0]


def ignore_ended(condition: Callable[[], T]) -> Callable[[], T | None]:
    """Return the condition with None for processes that have ended or are not started yet."""

    def check() -> T | None:
        with suppress(psutil.Error, StopIteration):
            return condition()
        return None

    return check


def test_serve__every_process_that_is_killed_comes_back(tmp_path: Path) -> None:
    with serve(tmp_path / "var", WEB_PROCESSES="2") as service:
        service.wait_for_output("Ctrl-C")
        assert len(service.web_processes()) == 2
        for word, name in (("worker", "worker"), ("beat", "scheduler"), ("granian", "web server")):
            killed = service.child(word)
            killed.kill()
            service.wait_for_output(f"The {name} ended unexpectedly (status -9). It restarts")
            wait_until(ignore_ended(partial(service.has_new_child, word, killed.pid)))
        wait_until(service.answers)
        for _ in range(3):  # Granian restarts them; when it gives up, it is restarted itself
            web_processes = wait_until(ignore_ended(service.web_processes))
            assert web_processes
            web_processes[0].kill()
            web_processes[0].wait(MAX_WAIT_SECONDS)
            wait_until(ignore_ended(service.has_two_web_processes))
            wait_until(service.answers)
        family = service.family()
        assert service.stop(signal.SIGINT) == 0
        assert "Traceback" not in service.read_output()
        assert_nothing_left(family, tmp_path / "var")


def test_serve__failing_worker_leaves_web_server_running(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    # Python imports this first in every process; in the worker it fails.
    (broken / "sitecustomize.py").write_text(
        "import sys\nif 'worker' in sys.orig_argv: raise SystemExit('broken on purpose')\n"
    )
    with serve(tmp_path / "var", PYTHONPATH=str(broken)) as service:
        service.wait_for_output("Ctrl-C")
        for delay in (1, 2, 4):
            service.wait_for_output(f"It restarts in {delay} s.")
            assert service.answers()
        assert service.stop(signal.SIGINT) == 0


def test_serve__junk_in_the_queue_stops_nothing(tmp_path: Path) -> None:
    messages = tmp_path / "var" / "queue" / "messages"
    messages.mkdir(parents=True)
    for number, junk in enumerate(("null", "[]", "{}", '"x"')):
        (messages / f"{number}_junk.celery.msg").write_text(junk)
    with serve(tmp_path / "var") as service:
        output = service.wait_for_output("Ctrl-C")
        wait_until(lambda: len(list((tmp_path / "var/queue").glob("rejected/*.msg"))) == 4)
        output = service.read_output()
        assert output.count("A file in the queue holds no message") == 4
        assert "ended unexpectedly" not in output
        assert service.stop(signal.SIGINT) == 0


def test_serve__a_web_server_that_cannot_start_has_a_clear_error(tmp_path: Path) -> None:
    done = manage(tmp_path / "var", "serve", PORT=str(free_port()), HOST="203.0.113.1")
    assert done.returncode != 0
    assert "Cannot listen on 203.0.113.1" in done.stderr


@pytest.mark.parametrize("variable", ["WEB_PROCESSES", "THREADS"])
def test_serve__less_than_one_process_or_thread_has_a_clear_error(
    tmp_path: Path, variable: str
) -> None:
    done = manage(tmp_path, "serve", PORT=str(free_port()), **{variable: "0"})
    assert done.returncode != 0
    assert "must be at least 1, not 0." in done.stderr
    assert not (tmp_path / "postgres").exists()


def test_serve__a_taken_port_has_a_clear_error(tmp_path: Path) -> None:
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
def test_serve__a_port_that_cannot_be_has_a_clear_error(tmp_path: Path, port: str) -> None:
    done = manage(tmp_path, "serve", PORT=port)
    assert done.returncode != 0
    assert done.stderr.strip() == (f"CommandError: A port is a number from 1 to 65535, not {port}.")
    assert not (tmp_path / "postgres").exists()


def test_serve__an_unreachable_database_has_a_clear_error(tmp_path: Path) -> None:
    url = "postgresql://unknown@127.0.0.1:1/nothing"
    done = manage(tmp_path, "serve", PORT=str(free_port()), DATABASE_URL=url)
    assert done.returncode != 0
    assert done.stderr.startswith("CommandError: The database cannot be used.")
    assert "Traceback" not in done.stderr
