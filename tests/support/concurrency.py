"""Running a function in several threads at once, each with a database connection of its own."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from types import TracebackType
from typing import Self, TypeVar

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


class ParallelCallers:
    """Threads that keep their database connections from one call to the next."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.pool = ThreadPoolExecutor(count)

    def run(self, act: Callable[[T], R], arguments: Sequence[T]) -> list[R]:
        """Return the results for at most `count` arguments, all begun at the same moment."""
        gate = Barrier(len(arguments))

        def call(argument: T) -> R:
            connection.ensure_connection()
            gate.wait(timeout=MAX_WAIT_SECONDS)
            return act(argument)

        return list(self.pool.map(call, arguments))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # As many calls as threads, so that each thread closes its connection.
        self.run(lambda _: connection.close(), range(self.count))
        self.pool.shutdown()
