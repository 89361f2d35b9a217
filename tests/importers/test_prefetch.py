"""Reading ahead in a thread."""

import threading
from collections.abc import Iterator

import pytest

from mastra_memory.importers import prefetch


def reading_threads() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if getattr(t, "_target", None) is prefetch._fill]


@pytest.mark.parametrize(
    "number",
    [0, 1, prefetch.CHUNK_ITEMS, prefetch.CHUNK_ITEMS * prefetch.MAX_WAITING_CHUNKS * 3 + 1],
)
def test_read_ahead__everything_in_order(number: int) -> None:
    assert list(prefetch.prefetch_items(range(number))) == list(range(number))


def test_read_ahead__a_failure_comes_after_what_was_whole() -> None:
    def failing() -> Iterator[int]:
        yield from range(prefetch.CHUNK_ITEMS)
        raise ValueError("torn")

    seen: list[int] = []
    with pytest.raises(ValueError, match="torn"):
        for number in prefetch.prefetch_items(failing()):
            seen.append(number)
    assert seen == list(range(prefetch.CHUNK_ITEMS))


def test_read_ahead__leaving_off_ends_the_thread() -> None:
    endless = prefetch.prefetch_items(iter(int, 1))
    next(endless)
    assert reading_threads()
    endless.close()
    assert not reading_threads()


def test_read_ahead__does_not_run_far_ahead() -> None:
    made: list[int] = []

    def counting() -> Iterator[int]:
        for number in range(10**6):
            made.append(number)
            yield number

    reader = prefetch.prefetch_items(counting())
    next(reader)
    threading.Event().wait(0.2)
    assert len(made) <= prefetch.CHUNK_ITEMS * (prefetch.MAX_WAITING_CHUNKS + 2)
    reader.close()
