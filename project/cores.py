"""Keep the threads that take turns at Python's lock on one core.

Only one of them computes at a time. If the scheduler spreads them, each turn begins with a cache
that holds nothing of what the last one touched; on one core short requests cost a third less.
"""

import ctypes
import os
import sys
import threading
import time
from contextlib import suppress

LOOK_AROUND = 0.1
"""Seconds after which the scheduler is asked again which core has time: others use it too."""

NONE, ANY = -1, -2


class OneCore:
    """The core on which threads meet that call `join`.

    Never binds the main thread, whose cores are all that others may use. Does nothing where there
    is one core only, and on other systems than Linux.
    """

    def __init__(self) -> None:
        self._can_choose = sys.platform == "linux" and len(_of_main_thread()) > 1
        if self._can_choose:
            self._current_core = ctypes.CDLL(None).sched_getcpu
        self._core = NONE
        self._look_at = 0.0
        self._mine = threading.local()

    def join(self) -> None:
        """Bring the calling thread, and what it starts from now on, to the others' core.

        Now and then it is let go for the time until its next call; where the scheduler has put it
        by then, the others follow.
        """
        if not self._can_choose or threading.get_native_id() == os.getpid():
            return
        core = getattr(self._mine, "core", NONE)
        if core == ANY:
            self._core = self._current_core()
        elif time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + LOOK_AROUND
            self._move(ANY)
            return
        if core != self._core != NONE:
            self._move(self._core)

    def _move(self, core: int) -> None:
        try:
            os.sched_setaffinity(0, _of_main_thread() if core == ANY else {core})
        except OSError:  # that core is not ours any more, or none may be chosen: until later
            self._core = NONE
        else:
            self._mine.core = core


def spread() -> None:
    """Let the calling thread, and what it starts from now on, run on all cores again."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.sched_setaffinity(0, _of_main_thread())


def _of_main_thread() -> set[int]:
    return os.sched_getaffinity(os.getpid())
