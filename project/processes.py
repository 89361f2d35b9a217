"""Child processes of `manage.py serve`: started together, watched, stopped together."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from types import FrameType

STOP_TIMEOUT = 20.0
RESTARTS, WITHIN = 3, 60.0
"""A helper that dies more often than this, in so many seconds, takes the rest along."""
POLL_SECONDS = 0.2
PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class ChildDied(Exception):
    """A child ended although nobody asked it to."""

    name: str
    status: int


@dataclass
class Family:
    """Children in the order they were started. They are stopped in the reverse order."""

    children: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    helpers: dict[str, Callable[[], None]] = field(default_factory=dict)
    """Children without which readers are still served, and how each is started again."""
    restarts: list[float] = field(default_factory=list)
    stopping: bool = False

    def start_helper(
        self, name: str, arguments: Sequence[str], environment: Mapping[str, str]
    ) -> None:
        """Start a child that is started again when it dies: what it had begun, it finds again."""
        self.helpers[name] = partial(self.start, name, arguments, environment)
        self.helpers[name]()

    def start(self, name: str, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start a Python module as a child, in a session of its own.

        The terminal's Ctrl-C therefore reaches us alone, and we tell the children in good order.
        """
        self.children[name] = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_die_with_parent,
        )

    def stop_on_signals(self) -> None:
        """Make Ctrl-C, SIGTERM and a closed terminal end `watch`."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._note_stop)

    def watch(self, tell: Callable[[str], object]) -> None:
        """Return when asked to stop; raise `ChildDied` when a child ends by itself for good."""
        while not self.stopping:
            try:
                self.check()
            except ChildDied as death:
                self._start_again(death, tell)
            time.sleep(POLL_SECONDS)

    def _start_again(self, death: ChildDied, tell: Callable[[str], object]) -> None:
        now = time.monotonic()
        self.restarts = [moment for moment in self.restarts if now - moment < WITHIN]
        if death.name not in self.helpers or len(self.restarts) == RESTARTS:
            raise death
        self.restarts.append(now)
        tell(f"The {death.name} ended by itself (status {death.status}) and is started again.")
        _kill_group(self.children[death.name])
        self.helpers[death.name]()

    def check(self) -> None:
        """Raise `ChildDied` if a child has ended."""
        for name, child in self.children.items():
            if (status := child.poll()) is not None:
                raise ChildDied(name, status)

    def stop(self) -> None:
        """Ask every child to finish its work; after `STOP_TIMEOUT` seconds, kill what is left."""
        give_up = time.monotonic() + STOP_TIMEOUT
        for child in reversed(self.children.values()):
            child.terminate()
        for child in reversed(self.children.values()):
            with suppress(subprocess.TimeoutExpired):
                child.wait(max(0.0, give_up - time.monotonic()))
            _kill_group(child)

    def _note_stop(self, number: int, frame: FrameType | None) -> None:
        self.stopping = True


def _kill_group(child: subprocess.Popen[bytes]) -> None:
    """Kill the child and what it started: a child that was killed could not end those itself."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _die_with_parent() -> None:
    """On Linux, let the child be told to stop even when we are killed without a chance to."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
