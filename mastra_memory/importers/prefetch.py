"""Read ahead in a second thread, so that reading and storing go on at the same time."""

import queue
import threading
from collections.abc import Generator, Iterable
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

CHUNK_ITEMS = 250
MAX_WAITING_CHUNKS = 8
"""So many chunks may wait to be taken: enough to keep both sides busy, little memory."""


def prefetch_items(items: Iterable[T]) -> Generator[T, None, None]:
    """The items in their order, made in a thread of their own.

    What goes wrong there is raised here. Leaving off early ends the thread at its next chunk.
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
        while thread.is_alive():  # it may be waiting for room
            _drain(chunks)
            thread.join(0.05)


def _fill(
    items: Iterable[T], chunks: "queue.Queue[list[T] | BaseException]", stopped: threading.Event
) -> None:
    """Put chunks until the empty one, which says that there are no more."""
    source = iter(items)
    try:
        while not stopped.is_set():
            chunk = list(islice(source, CHUNK_ITEMS))
            chunks.put(chunk)
            if not chunk:
                return
    except BaseException as error:  # noqa: BLE001 - raised again in the other thread
        chunks.put(error)


def _drain(chunks: "queue.Queue[list[T] | BaseException]") -> None:
    while not chunks.empty():
        chunks.get_nowait()
