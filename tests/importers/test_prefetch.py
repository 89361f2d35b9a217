"""Tests of producing items in a second thread."""

import threading
from collections.abc import Iterator

import pytest

from mastra_memory.importers import prefetch


def list_prefetch_threads() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if getattr(t, "_target", None) is prefetch._fill]


@pytest.mark.parametrize(
    "number",
    [0, 1, prefetch.CHUNK_ITEMS, prefetch.CHUNK_ITEMS * prefetch.MAX_WAITING_CHUNKS * 3 + 1],
)
def test_prefetch_items__yields_all_items_in_order(number: int) -> None:
    assert list(prefetch.prefetch_items(range(number))) == list(range(number))


def test_prefetch_items__raises_errors_after_complete_chunks() -> None:
    def failing() -> Iterator[int]:
        yield from range(prefetch.CHUNK_ITEMS)
        raise ValueError("torn")

    seen: list[int] = []
    with pytest.raises(ValueError, match="torn"):
        for number in prefetch.prefetch_items(failing()):
            seen.append(number)
    assert seen == list(range(prefetch.CHUNK_ITEMS))


def test_prefetch_items__closing_ends_the_thread() -> None:
    endless = prefetch.prefetch_items(iter(int, 1))
    next(endless)
    assert list_prefetch_threads()
    endless.close()
    assert not list_prefetch_threads()


def test_prefetch_items__limits_waiting_items() -> None:
    produced: list[int] = []

    def counting() -> Iterator[int]:
        for number in range(10**6):
            produced.append(number)
            yield number

    reader = prefetch.prefetch_items(counting())
    next(reader)
    threading.Event().wait(0.2)
    assert len(produced) <= prefetch.CHUNK_ITEMS * (prefetch.MAX_WAITING_CHUNKS + 2)
    reader.close()
