"""Produce items in a second thread, so that reading and storing happen at the same time."""

import queue
import threading
from collections.abc import Generator, Iterable
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

CHUNK_ITEMS = 250
"""Items that are handed over at once; passing single items through a queue is slow."""
MAX_WAITING_CHUNKS = 8
"""Chunks that may wait in the queue: enough to keep both threads busy with little memory."""


def prefetch_items(items: Iterable[T]) -> Generator[T, None, None]:
    """Yield the items in order; a second thread iterates over `items`.

    An exception in that thread is raised here. Closing the generator ends the thread at its next
    chunk.
    """
    chunks: queue.Queue[list[T] | BaseException] = queue.Queue(MAX_WAITING_CHUNKS)
    stopped = threading.Event()
    thread = threading.Thread(target=_fill, args=(items, chunks, stopped), daemon=True)
    thread.start()
    try:
        while True:
            chunk = chunks.get()
            if isinstance(chunk, BaseException):
                raise chunk
            if not chunk:
                return
            yield from chunk
    finally:
        stopped.set()
        while thread.is_alive():  # it may be waiting for space in the queue
            _clear(chunks)
            thread.join(0.05)


def _fill(
    items: Iterable[T], chunks: "queue.Queue[list[T] | BaseException]", stopped: threading.Event
) -> None:
    """Put chunks of items into the queue, and an empty chunk after the last one."""
    source = iter(items)
    try:
        while not stopped.is_set():
            chunk = list(islice(source, CHUNK_ITEMS))
            chunks.put(chunk)
            if not chunk:
                return
    except BaseException as error:  # noqa: BLE001 - raised again by the consumer
        chunks.put(error)


def _clear(chunks: "queue.Queue[list[T] | BaseException]") -> None:
    while not chunks.empty():
        chunks.get_nowait()
