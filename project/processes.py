"""Child processes of `manage.py serve`: started together, restarted on failure, stopped together.

`honcho` would start and stop them, but it ends everything when one process ends.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import FrameType

STOP_TIMEOUT_SECONDS = 20.0
FIRST_RESTART_DELAY_SECONDS = 1.0
"""Seconds before a failed child is started again. Doubled with each failure."""
MAX_RESTART_DELAY_SECONDS = 30.0
HEALTHY_AFTER_SECONDS = 60.0
"""A child that ran for this many seconds counts as healthy: its failures are forgotten."""
POLL_SECONDS = 0.2
PR_SET_PDEATHSIG = 1


@dataclass
class ChildProcess:
    """A Python module that runs as a child process."""

    name: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    failures: int = 0
    restart_at: float | None = None
    """When it will be started again, if it has ended."""

    def start(self) -> None:
        """Start it in a session of its own.

        The terminal's Ctrl-C therefore reaches the parent alone, which stops the children in order.
        """
        self.started_at = time.monotonic()
        self.restart_at = None
        self.process = subprocess.Popen(
            [sys.executable, "-m", *self.arguments],
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_terminate_with_parent,
        )

    def status(self) -> int | None:
        """Return the exit status, or None while the process runs."""
        return self.process.poll() if self.process else None

    def schedule_restart(self) -> float:
        """Plan the next start after a failure and return the delay in seconds."""
        now = time.monotonic()
        if now - self.started_at >= HEALTHY_AFTER_SECONDS:
            self.failures = 0
        delay = min(
            MAX_RESTART_DELAY_SECONDS, FIRST_RESTART_DELAY_SECONDS * 2.0 ** min(self.failures, 10)
        )
        self.failures += 1
        self.restart_at = now + delay
        return delay

    def terminate(self) -> None:
        """Ask the process to finish its work and end."""
        if self.process:
            self.process.terminate()

    def wait_or_kill(self, timeout: float) -> None:
        """Wait for the process; then kill what is left of it and of its own children."""
        if not self.process:
            return
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@dataclass
class ProcessGroup:
    """Children in the order they were started. They are stopped in the reverse order."""

    children: dict[str, ChildProcess] = field(default_factory=dict)
    stopping: bool = False

    def start(self, name: str, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start a Python module as a child."""
        self.children[name] = ChildProcess(name, arguments, environment)
        self.children[name].start()

    def stop_on_signals(self) -> None:
        """Make Ctrl-C, SIGTERM and a closed terminal end `watch`."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._request_stop)

    def watch(self, report: Callable[[str], object]) -> None:
        """Restart children that end unexpectedly; return when asked to stop."""
        while not self.stopping:
            self.restart_failed(report)
            time.sleep(POLL_SECONDS)

    def restart_failed(self, report: Callable[[str], object]) -> None:
        """Restart children that have ended, each after its delay.

        The delay doubles with every failure. A child that cannot start therefore does not stop the
        others, and its attempts do not keep a processor busy.
        """
        for child in self.children.values():
            status = child.status()
            if status is None:
                continue
            if child.restart_at is None:
                child.wait_or_kill(0)
                delay = child.schedule_restart()
                report(
                    f"The {child.name} ended unexpectedly (status {status}). "
                    f"It restarts in {delay:g} s."
                )
            elif time.monotonic() >= child.restart_at:
                child.start()

    def stop(self) -> None:
        """Ask every child to finish its work; after `STOP_TIMEOUT_SECONDS`, kill what is left."""
        deadline = time.monotonic() + STOP_TIMEOUT_SECONDS
        children = list(reversed(self.children.values()))
        for child in children:
            child.terminate()
        for child in children:
            child.wait_or_kill(max(0.0, deadline - time.monotonic()))

    def _request_stop(self, number: int, frame: FrameType | None) -> None:
        self.stopping = True


def _terminate_with_parent() -> None:
    """On Linux, have the child terminated even when the parent is killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
