"""Work done side by side, each lane with a thread and a database connection of its own."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Generic, Self, TypeVar

from django.db import connection

T = TypeVar("T")
Job = Callable[[], T]


class ParallelWorkers(Generic[T]):
    """Runs jobs of one lane in their order, jobs of different lanes at the same time.

    A single lane is no thread but the caller's own, with its connection and its transaction.
    """

    def __init__(self, number: int) -> None:
        self._pools = [ThreadPoolExecutor(1) for _ in range(number)] if number > 1 else []
        self._running: dict[int, Future[T]] = {}

    def submit(self, worker: int, job: Job[T]) -> Iterator[T]:
        """Start the job, once the lane's last one is done. Gives what has come out since.

        A lane is at most one job behind. Raises what the last job raised.
        """
        if not self._pools:
            yield job()
            return
        if worker in self._running:
            yield self._running.pop(worker).result()
        self._running[worker] = self._pools[worker].submit(job)

    def finish(self) -> Iterator[T]:
        """Wait for everything; what has come out. Raises what a job raised, after the others."""
        running, self._running = list(self._running.values()), {}
        failures = [failure for future in running if (failure := future.exception())]
        yield from (future.result() for future in running if not future.exception())
        if failures:
            raise failures[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for pool in self._pools:
            pool.submit(_close_connection)
            pool.shutdown()


def _close_connection() -> None:
    connection.close()  # that of the thread which runs this
