"""Threads that take turns stay on one core."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from project import cores
from project.cores import OneCore

ALL = os.sched_getaffinity(0)
needs_two = pytest.mark.skipif(len(ALL) < 2, reason="there is only one core")


def joined(*, threads: int, turns: int, core: OneCore | None = None) -> list[set[int]]:
    """Where each of some threads may run after so many turns."""
    core = core or OneCore()
    together = Barrier(threads)

    def work(_: int) -> set[int]:
        for _ in range(turns):
            together.wait()
            core.join()
        return os.sched_getaffinity(0)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, range(threads)))


@needs_two
def test_threads__meet_on_one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "LOOK_AROUND", 60)
    places = joined(threads=3, turns=4)
    assert len(places[0]) == 1
    assert places == [places[0]] * 3


@needs_two
def test_threads__are_let_go_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "LOOK_AROUND", 0)
    free = joined(threads=3, turns=51)
    assert ALL in free


@needs_two
def test_main_thread__is_not_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getpid", threading.get_native_id)  # each is the main one
    assert joined(threads=3, turns=4) == [ALL] * 3


@needs_two
def test_spread__lets_a_thread_and_its_children_go() -> None:
    def bound() -> tuple[set[int], str]:
        os.sched_setaffinity(0, {min(ALL)})
        before = os.sched_getaffinity(0)
        cores.spread()
        show = "import os; print(sorted(os.sched_getaffinity(0)))"
        child = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True)
        return before, child.stdout.strip()

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(bound).result() == ({min(ALL)}, str(sorted(ALL)))


@pytest.mark.parametrize("missing", ["Linux", "cores"])
def test_system__that_cannot_bind_is_left_alone(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if missing == "cores":
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    else:
        monkeypatch.setattr(sys, "platform", "darwin")
    core = OneCore()
    monkeypatch.undo()
    assert joined(threads=3, turns=4, core=core) == [ALL] * 3


@needs_two
def test_core__that_is_taken_away_is_no_fault_and_they_meet_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise OSError

    core = OneCore()
    with monkeypatch.context() as refusing:
        refusing.setattr(cores, "LOOK_AROUND", 0)
        refusing.setattr(os, "sched_setaffinity", refuse)
        assert joined(threads=2, turns=4, core=core) == [ALL] * 2
    monkeypatch.setattr(cores, "LOOK_AROUND", 60)
    first, second = joined(threads=2, turns=4, core=core)
    assert first == second and len(first) == 1
