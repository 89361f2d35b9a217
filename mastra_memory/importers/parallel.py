"""Run jobs in several threads, each with its own database connection."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Generic, Self, TypeVar

from django.db import connections

T = TypeVar("T")
Job = Callable[[], T]


class ParallelWorkers(Generic[T]):
    """Numbered workers. Jobs of one worker run in order, jobs of different workers in parallel.

    A single worker uses the thread of the caller, with its connection and its transaction.
    """

    def __init__(self, number: int) -> None:
        """Start `number` workers."""
        # An executor with several threads would not keep the order of related jobs.
        self._executors = [ThreadPoolExecutor(1) for _ in range(number)] if number > 1 else []
        self._running: dict[int, Future[T]] = {}

    def submit(self, worker: int, job: Job[T]) -> Iterator[T]:
        """Wait until the worker is idle, yield the result of its last job, and start a new one.

        A worker therefore never has more than one job, which limits memory.

        Raises:
            Exception: The last job of this worker raised it.
        """
        if not self._executors:
            yield job()
            return
        if worker in self._running:
            yield self._running.pop(worker).result()
        self._running[worker] = self._executors[worker].submit(job)

    def finish(self) -> Iterator[T]:
        """Wait for all workers and yield their results; then raise the first error, if any."""
        running, self._running = list(self._running.values()), {}
        errors = [error for future in running if (error := future.exception())]
        yield from (future.result() for future in running if not future.exception())
        if errors:
            raise errors[0]

    def __enter__(self) -> Self:
        """Return the workers."""
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the connections of all workers and end their threads."""
        for executor in self._executors:
            # Connections belong to a thread, so each worker has to close its own.
            executor.submit(connections.close_all)
            executor.shutdown()
