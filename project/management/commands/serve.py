"""The whole service in one command: database, worker, scheduler and web server."""

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

from project import embedded, first_run
from project.processes import ChildDied, Family

START_TIMEOUT = 60.0
THREADS = 4
"""In one process: while some wait for the database, another computes."""
CELERY = ("celery", "--quiet", "-A", "project")
WORKER = (*CELERY, "worker", "-l", "WARNING", "--without-gossip", "--without-mingle")
BEAT = (*CELERY, "beat", "-l", "WARNING", "--pidfile=")
MANAGE = f"{sys.executable} {Path(__file__).resolve().parents[3] / 'manage.py'}"
ROOT_WARNING = "ignore:You're running the worker with superuser privileges"


class Command(BaseCommand):
    """Runs in the foreground until Ctrl-C or SIGTERM, then leaves no process behind."""

    help = "Prepare the database, then run the web server, a Celery worker and Celery beat."

    def add_arguments(self, parser: CommandParser) -> None:
        """Say where to listen and with how many processes."""
        parser.add_argument("--host", default=os.environ.get("HOST") or "127.0.0.1")
        parser.add_argument("--port", type=int, default=os.environ.get("PORT") or "8000")
        parser.add_argument("--processes", type=int, default=1, help="web server processes")
        parser.add_argument("--threads", type=int, default=THREADS, help="threads in each of them")
        parser.add_argument("--concurrency", type=int, default=1, help="worker processes")
        parser.add_argument("--no-samples", action="store_true", help="start with no conversations")

    def handle(self, *args: Any, **options: Any) -> None:
        """Prepare, start, watch, stop."""
        refuse_taken_port(options["host"], options["port"])
        if isinstance(sys.stdout, TextIOWrapper):  # a file or a pipe is to be told at once, too
            sys.stdout.reconfigure(line_buffering=True)
        family = Family()
        family.stop_on_signals()
        try:
            self.stdout.write("Preparing the database ...")
            with first_run.alone():
                login = self.prepare(samples=not options["no_samples"])
            connections.close_all()
            self.start_children(family, options)
            if self.wait_until_ready(family, options):
                self.say_where(options, login)
                family.watch(self.stdout.write)
                self.stdout.write("Stopping; running tasks are finished first ...")
        except ChildDied as death:
            raise CommandError(
                f"The {death.name} ended by itself (status {death.status}); everything was stopped."
            ) from None
        except OperationalError as error:
            raise CommandError(f"The database cannot be used. {error}") from error
        finally:
            family.stop()
            embedded.release(settings.VAR_DIR)
        self.stdout.write("Stopped.")

    def prepare(self, *, samples: bool) -> str:
        """Migrate and collect files; at first also load samples and create the administrator."""
        call_command("migrate", verbosity=0, interactive=False)
        if not settings.DEBUG:
            call_command("collectstatic", verbosity=0, interactive=False)
        if name := first_run.find_administrator():
            return f"as {name} (forgotten password: {MANAGE} changepassword {name})"
        if first_run.has_users():
            return f"not yet: no administrator is active ({MANAGE} createsuperuser)"
        if samples:
            call_command("load_samples", stdout=self.stdout)
        password = first_run.create_administrator()
        return f"as {first_run.ADMINISTRATOR} with password {password} (shown only now)"

    def start_children(self, family: Family, options: dict[str, Any]) -> None:
        """Start worker, scheduler and web server."""
        quiet = {"PYTHONWARNINGS": ROOT_WARNING}
        concurrency = f"--concurrency={options['concurrency']}"
        family.start_helper("worker", [*WORKER, concurrency], quiet)
        family.start_helper("scheduler", BEAT, {})
        family.start("web server", granian(options), {})

    def wait_until_ready(self, family: Family, options: dict[str, Any]) -> bool:
        """Wait for the first good answer; False when asked to stop before."""
        give_up = time.monotonic() + START_TIMEOUT
        while not family.stopping:
            family.check()
            if answers(f"http://{options['host']}:{options['port']}/readyz"):
                return True
            if time.monotonic() > give_up:
                raise CommandError("The web server does not answer; its messages are above.")
            time.sleep(0.1)
        return False

    def say_where(self, options: dict[str, Any], login: str) -> None:
        """Tell a newcomer what to open."""
        base = f"http://{options['host']}:{options['port']}"
        name = first_run.find_administrator() or "NAME"
        self.stdout.write(
            f"""
Conversations      {base}/admin/
Log in             {login}
API documentation  {base}/api/docs/
From a shell       export TOKEN=$({MANAGE} create_token {name})
                   curl -H "Authorization: Bearer $TOKEN" {base}/api/memory/threads
Stop               Ctrl-C
"""
        )


def granian(options: dict[str, Any]) -> list[str]:
    """Give the web server's command line."""
    return [
        "granian", "--interface", "wsgi", "--no-ws", "--log-level", "warning",
        "--host", options["host"], "--port", str(options["port"]),
        "--workers", str(options["processes"]), "--blocking-threads", str(options["threads"]),
        "--blocking-threads-idle-timeout", "600",  # a thread's database connection goes with it
        "project.wsgi:application",
    ]  # fmt: skip


def refuse_taken_port(host: str, port: int) -> None:
    """Raise `CommandError` where we could not listen."""
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


def answers(url: str) -> bool:
    """Tell whether the service says it is ready."""
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False
