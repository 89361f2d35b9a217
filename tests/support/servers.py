"""Start servers for the conformance run and the benchmarks: free loopback ports, npm packages."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn
from urllib.error import URLError
from urllib.request import urlopen

from project.management.commands import serve

ROOT = Path(__file__).resolve().parents[2]
KIT = ROOT / "tests" / "conformance"
"""The conformance kit: scenarios, the client that runs them, and the reference server."""
START_TIMEOUT = 180.0
STOP_TIMEOUT = 15.0


class ServerError(Exception):
    """A server or tool does not start. The message gives its name and the reason."""


def say(text: str = "") -> None:
    """Write a line at once, so that it keeps its place among the lines of other programs."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def stop_on_terminate() -> None:
    """Make SIGTERM unwind the stack, so that servers started here do not outlive us."""

    def leave(number: int, frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, leave)


def free_port() -> int:
    """Return a free loopback port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def running(
    command: Sequence[str], *, env: Mapping[str, str], log: Path, health_url: str, cwd: Path = ROOT
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server until the block ends. The block starts when `health_url` answers."""
    with open(log, "wb") as output:
        server = subprocess.Popen(
            command, env=dict(env), cwd=cwd, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            _wait_until_up(server, health_url, log)
            yield server
        finally:
            server.terminate()
            try:
                server.wait(STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _wait_until_up(server: subprocess.Popen[bytes], health_url: str, log: Path) -> None:
    give_up = time.monotonic() + START_TIMEOUT
    while time.monotonic() < give_up:
        if server.poll() is not None:
            raise ServerError(f"The server ended with code {server.returncode}.\n{_tail(log)}")
        try:
            with urlopen(health_url, timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.1)
    raise ServerError(f"The server does not answer at {health_url}.\n{_tail(log)}")


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-25:])


def build_server_command(port: int, *, workers: int = 1) -> list[str]:
    """Return the command with which `manage.py serve` starts the web server."""
    options = {
        "host": "127.0.0.1",
        "port": port,
        "processes": workers,
        "threads": serve.DEFAULT_THREADS,
    }
    return [sys.executable, "-m", *serve.build_granian_command(options)]


def environment(settings: str, var_dir: Path, **more: str) -> dict[str, str]:
    """Return the environment of our server: these settings, its own database, no DEBUG."""
    # `project.wsgi` sets STATEMENT_TIMEOUT; another test of this process may have imported it.
    foreign = {"DATABASE_URL", "CELERY_BROKER_URL", "ALLOWED_HOSTS", "STATEMENT_TIMEOUT"}
    kept = {name: value for name, value in os.environ.items() if name not in foreign}
    ours = {"DJANGO_SETTINGS_MODULE": settings, "MASTRA_VAR_DIR": str(var_dir)}
    plain = {"DJANGO_ENV": "development", "DEBUG": "0", "PYTHONPATH": str(ROOT)}
    return kept | plain | ours | more


def kit_with_packages(kit: Path, scratch: Path) -> Path:
    """Install the npm packages of a conformance kit, and return its folder.

    A kit other than `KIT` is not changed: the packages are installed in a copy of it.
    """
    if node(kit).exists():
        return kit
    if kit != KIT:
        copy = scratch / "kit"
        shutil.copytree(kit, copy, ignore=shutil.ignore_patterns("node_modules"))
        copy.chmod(0o755)
        if _same_packages(kit) and node(KIT).exists():
            (copy / "node_modules").symlink_to(KIT / "node_modules")
            return copy
        kit = copy
    _npm_ci(kit)
    return kit


def node(kit: Path) -> Path:
    """Return the Node.js of the kit's packages."""
    return kit / "node_modules" / ".bin" / "node"


def _same_packages(kit: Path) -> bool:
    return (kit / "package-lock.json").read_bytes() == (KIT / "package-lock.json").read_bytes()


def _npm_ci(kit: Path) -> None:
    say(f"installing the npm packages of {kit} …")
    npm = shutil.which("npm")
    if npm is None:
        raise ServerError("npm is not installed; the client and the reference server need it.")
    done = subprocess.run(
        [npm, "ci", "--no-audit", "--no-fund", "--loglevel=error"],
        cwd=kit,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode or not node(kit).exists():
        raise ServerError(f"npm ci failed in {kit}.\n{done.stdout[-1500:]}{done.stderr[-1500:]}")
