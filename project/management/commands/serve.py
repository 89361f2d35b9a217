"""Run the whole service: database, worker, scheduler and web server."""

import errno
import os
import socket
import sys
import time
import urllib.error
import urllib.request
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import OperationalError, connections

from project import embedded_postgres, env, first_run
from project.processes import ProcessGroup

START_TIMEOUT_SECONDS = 180.0
WEB_STOP_TIMEOUT_SECONDS = 10
"""Seconds for a web process to finish its requests when it is stopped."""
DEFAULT_THREADS = 2
"""In each web process: while one waits for the database, the other computes."""
MAX_DEFAULT_PROCESSES = 4
"""By default there is one web process for each core, but at most this many."""
HEADER_TIMEOUT_SECONDS = 10
"""Seconds for a request's head to arrive. An idle connection is closed after the same time."""
MAX_CONNECTIONS = 4096
"""Open connections for each web process. A slow client occupies no thread."""
WEB_MALLOC = {"MALLOC_MMAP_THRESHOLD_": str(1024**2), "MALLOC_TRIM_THRESHOLD_": str(8 * 1024**2)}
"""Settings of glibc's malloc (mallopt(3)) that make it return large blocks to the system at once.

By default it raises the threshold with each large block that is freed, so that a process which has
handled bodies and pages of 20 MB keeps several of them for good.
"""
CELERY_COMMAND = ("celery", "--quiet", "-A", "project")
WORKER_COMMAND = (
    *CELERY_COMMAND,
    "worker",
    "-l",
    "WARNING",
    "--without-gossip",
    "--without-mingle",
)
BEAT_COMMAND = (*CELERY_COMMAND, "beat", "-l", "WARNING", "--pidfile=")
MANAGE_COMMAND = f"{sys.executable} {Path(__file__).resolve().parents[3] / 'manage.py'}"
IGNORE_ROOT_WARNING = "ignore:You're running the worker with superuser privileges"


class Command(BaseCommand):
    """Run in the foreground until Ctrl-C or SIGTERM, then stop all processes."""

    help = "Prepare the database, then run the web server, a Celery worker and Celery beat."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the address and the numbers of processes and threads."""
        parser.add_argument("--host", default=os.environ.get("HOST") or "127.0.0.1")
        parser.add_argument("--port", type=int, default=os.environ.get("PORT") or "8000")
        parser.add_argument(
            "--processes",
            type=int,
            default=env.read_int("WEB_PROCESSES", get_default_processes()),
            help="web server processes (default: WEB_PROCESSES, or one for each core, at most 4)",
        )
        parser.add_argument(
            "--threads",
            type=int,
            default=env.read_int("THREADS", DEFAULT_THREADS),
            help="threads in each web server process (default: THREADS, or 2)",
        )
        parser.add_argument("--concurrency", type=int, default=1, help="worker processes")
        parser.add_argument("--no-samples", action="store_true", help="start with no conversations")

    def handle(self, *args: Any, **options: Any) -> None:
        """Prepare, start, watch, stop."""
        check_port(options["host"], options["port"])
        for name in ("processes", "threads", "concurrency"):
            if options[name] < 1:
                raise CommandError(f"--{name} must be at least 1, not {options[name]}.")
        if isinstance(sys.stdout, TextIOWrapper):  # a file or a pipe also gets each line at once
            sys.stdout.reconfigure(line_buffering=True)
        group = ProcessGroup()
        group.stop_on_signals()
        try:
            self.stdout.write("Preparing the database ...")
            with first_run.database_lock():
                login = self.prepare(samples=not options["no_samples"])
            connections.close_all()
            self.start_children(group, options)
            if self.wait_until_ready(group, options):
                self.print_addresses(options, login)
                group.watch(self.stdout.write)
                self.stdout.write("Stopping; running tasks are finished first ...")
        except OperationalError as error:
            raise CommandError(f"The database cannot be used. {error}") from error
        finally:
            group.stop()
            embedded_postgres.release(settings.VAR_DIR)
        self.stdout.write("Stopped.")

    def prepare(self, *, samples: bool) -> str:
        """Migrate and collect static files. On first use, load samples and create an administrator.

        Return how to log in.
        """
        call_command("migrate", verbosity=0, interactive=False)
        if not settings.DEBUG:
            call_command("collectstatic", verbosity=0, interactive=False)
        if name := first_run.find_administrator():
            return f"as {name} (forgotten password: {MANAGE_COMMAND} changepassword {name})"
        if first_run.has_users():
            return f"not yet: no administrator is active ({MANAGE_COMMAND} createsuperuser)"
        if samples:
            call_command("load_samples", stdout=self.stdout)
        password = first_run.create_administrator()
        return f"as {first_run.ADMINISTRATOR_USERNAME} with password {password} (shown only now)"

    def start_children(self, group: ProcessGroup, options: dict[str, Any]) -> None:
        """Start worker, scheduler and web server."""
        quiet = {"PYTHONWARNINGS": IGNORE_ROOT_WARNING}
        concurrency = f"--concurrency={options['concurrency']}"
        group.start("worker", [*WORKER_COMMAND, concurrency], quiet)
        group.start("scheduler", BEAT_COMMAND, {})
        malloc = {name: os.environ.get(name, value) for name, value in WEB_MALLOC.items()}
        threads = {"THREADS": str(options["threads"])}
        group.start("web server", build_granian_command(options), malloc | threads)

    def wait_until_ready(self, group: ProcessGroup, options: dict[str, Any]) -> bool:
        """Wait until the service answers. Return False if it is asked to stop before that.

        If the worker or the scheduler fails in this time, it is restarted later. If the web server
        ends in this time, its configuration is wrong, and its messages say why.
        """
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while not group.stopping:
            if is_ready(f"http://{options['host']}:{options['port']}/readyz"):
                return True
            if group.children["web server"].status() is not None or time.monotonic() > deadline:
                raise CommandError("The web server does not answer; its messages are above.")
            time.sleep(0.1)
        return False

    def print_addresses(self, options: dict[str, Any], login: str) -> None:
        """Print the addresses of the service and how to log in."""
        base = f"http://{options['host']}:{options['port']}"
        name = first_run.find_administrator() or "NAME"
        self.stdout.write(
            f"""
Conversations      {base}/admin/
Log in             {login}
API documentation  {base}/api/docs/
From a shell       export TOKEN=$({MANAGE_COMMAND} create_token {name})
                   curl -H "Authorization: Bearer $TOKEN" {base}/api/memory/threads
Stop               Ctrl-C
"""
        )


def get_default_processes() -> int:
    """Return one web process for each core this process may use, at most four."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(MAX_DEFAULT_PROCESSES, cores or 1)


def build_granian_command(options: dict[str, Any]) -> list[str]:
    """Return the web server's command line.

    Granian restarts a web process that was killed. If the new process also ends within seconds,
    Granian exits. `ProcessGroup` then restarts Granian, with growing delays.
    """
    return [
        "granian", "--interface", "rsgi", "--http", "1", "--no-ws", "--log-level", "warning",
        "--host", options["host"], "--port", str(options["port"]),
        "--workers", str(options["processes"]), "--respawn-failed-workers",
        "--http1-header-read-timeout", str(HEADER_TIMEOUT_SECONDS * 1000),
        "--backlog", str(MAX_CONNECTIONS), "--backpressure", str(MAX_CONNECTIONS),
        "--workers-kill-timeout", str(WEB_STOP_TIMEOUT_SECONDS),
        "project.rsgi:application",
    ]  # fmt: skip


def check_port(host: str, port: int) -> None:
    """Raise `CommandError` if the web server cannot listen on this address."""
    if not 0 < port < 65_536:
        raise CommandError(f"A port is a number from 1 to 65535, not {port}.")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise CommandError(
                    f"Port {port} is taken by another program. Choose another: PORT=8001 make run"
                ) from None
            raise CommandError(f"Cannot listen on {host}:{port}: {error.strerror}.") from None


def is_ready(url: str) -> bool:
    """Return True if the service reports that it is ready."""
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False
