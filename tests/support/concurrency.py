"""Running a function in several threads at once, each with a database connection of its own."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

from django.db import connection

from tests.support.waiting import MAX_WAIT_SECONDS

T = TypeVar("T")
R = TypeVar("R")


def concurrently(act: Callable[[T], R], arguments: Sequence[T]) -> list[R]:
    """The results for these arguments, all begun at the same moment; errors are raised."""
    gate = Barrier(len(arguments))

    def run(argument: T) -> R:
        try:
            connection.ensure_connection()
            gate.wait(timeout=MAX_WAIT_SECONDS)
            return act(argument)
        finally:
            connection.close()

    with ThreadPoolExecutor(len(arguments)) as pool:
        return list(pool.map(run, arguments))
