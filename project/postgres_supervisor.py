"""Stop the embedded PostgreSQL when no process uses it. This script runs without Django."""

import fcntl
import os
import signal
import socket
import sys
import time
from pathlib import Path

USERS_LOCK_FILE = "postgres.users"
"""Every process that uses the server holds a shared lock on this file."""
SUPERVISOR_LOCK_FILE = "postgres.supervisor"
"""The supervisor holds the lock on this file while it runs."""
STOP_TIMEOUT_SECONDS = 60


def main(var_dir: Path, data: Path) -> None:
    """Detach from the caller's session, wait until the server is unused, then stop it."""
    if os.fork():
        os._exit(0)
    os.setsid()
    with open(var_dir / USERS_LOCK_FILE, "a") as users:
        fcntl.flock(users, fcntl.LOCK_EX)
        stop_server(data)


def stop_if_unused(var_dir: Path, data: Path) -> None:
    """Stop the server unless a process uses it. If the supervisor is stopping it, wait."""
    with open(var_dir / USERS_LOCK_FILE, "a") as users:
        try:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(users, fcntl.LOCK_SH)  # wait for a supervisor that is stopping the server
            return
        stop_server(data)


def stop_server(data: Path) -> None:
    """Shut the server down and wait for it. Open sessions are closed; no data is lost."""
    pid = find_server_pid(data)
    if pid is None:
        return
    os.kill(pid, signal.SIGINT)
    give_up = time.monotonic() + STOP_TIMEOUT_SECONDS
    while find_server_pid(data) is not None and time.monotonic() < give_up:
        time.sleep(0.02)


def find_server_pid(data: Path) -> int | None:
    """Return the process id of the running server, or None if it does not run."""
    try:
        pid = int((data / "postmaster.pid").read_text().split("\n", 1)[0])
        os.kill(pid, 0)
    except (OSError, ValueError):
        return None
    return pid if _is_postgres(pid) else None


def remove_stale_lock_files(data: Path, socket_path: Path) -> None:
    """Remove the lock files of a server that was killed; another process may have its id now.

    A new server still detects children of the killed one that hold its shared memory.
    """
    if find_server_pid(data) is None:
        (data / "postmaster.pid").unlink(missing_ok=True)
        socket_path.with_name(f"{socket_path.name}.lock").unlink(missing_ok=True)


def is_listening(path: Path) -> bool:
    """Return True if a server accepts connections on this socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
        return True


def _is_postgres(pid: int) -> bool:
    try:
        return "postgres" in Path(f"/proc/{pid}/cmdline").read_text()
    except FileNotFoundError:
        return not Path("/proc/self").exists()  # no /proc on this system: trust the pid file


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
