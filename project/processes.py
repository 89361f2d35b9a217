"""Child processes of `manage.py serve`: started together, watched, stopped together."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType

STOP_TIMEOUT = 20.0
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
    stopping: bool = False

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

    def watch(self) -> None:
        """Return when asked to stop; raise `ChildDied` when a child ends by itself."""
        while not self.stopping:
            self.check()
            time.sleep(POLL_SECONDS)

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
            try:
                child.wait(max(0.0, give_up - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()

    def _note_stop(self, number: int, frame: FrameType | None) -> None:
        self.stopping = True


def _die_with_parent() -> None:
    """On Linux, let the child be told to stop even when we are killed without a chance to."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
