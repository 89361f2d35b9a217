"""Stops the embedded PostgreSQL after its last user. A script of its own, without Django."""

import fcntl
import os
import signal
import socket
import sys
import time
from pathlib import Path

USERS_LOCK_FILE = "postgres.users"
"""Every process that uses the server holds this file's lock shared."""
SUPERVISOR_LOCK_FILE = "postgres.supervisor"
"""The supervisor holds the lock on this file while it runs."""
STOP_TIMEOUT_SECONDS = 60


def main(var_dir: Path, data: Path) -> None:
    """Leave the caller's session, wait until nobody uses the server, then stop it."""
    if os.fork():
        os._exit(0)
    os.setsid()
    with open(var_dir / USERS_LOCK_FILE, "a") as users:
        fcntl.flock(users, fcntl.LOCK_EX)
        stop_server(data)


def stop_if_unused(var_dir: Path, data: Path) -> None:
    """Stop the server unless somebody uses it; if the supervisor is already doing so, wait."""
    with open(var_dir / USERS_LOCK_FILE, "a") as users:
        try:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(users, fcntl.LOCK_SH)  # wait for a supervisor that is stopping the server
            return
        stop_server(data)


def stop_server(data: Path) -> None:
    """Shut the server down, cutting open sessions but losing nothing, and wait for it."""
    pid = find_server_pid(data)
    if pid is None:
        return
    os.kill(pid, signal.SIGINT)
    give_up = time.monotonic() + STOP_TIMEOUT_SECONDS
    while find_server_pid(data) is not None and time.monotonic() < give_up:
        time.sleep(0.02)


def find_server_pid(data: Path) -> int | None:
    """Give the process id of the running server, None if there is none."""
    try:
        pid = int((data / "postmaster.pid").read_text().split("\n", 1)[0])
        os.kill(pid, 0)
    except (OSError, ValueError):
        return None
    return pid if _is_postgres(pid) else None


def remove_stale_lock_files(data: Path, socket_path: Path) -> None:
    """Remove the lock files of a server that was killed: its number may be another process's now.

    A new server still notices if children of the dead one hold its shared memory.
    """
    if find_server_pid(data) is None:
        (data / "postmaster.pid").unlink(missing_ok=True)
        socket_path.with_name(f"{socket_path.name}.lock").unlink(missing_ok=True)


def is_listening(path: Path) -> bool:
    """Tell whether a server answers on this socket."""
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
