"""Reading ahead in a thread."""

import threading
from collections.abc import Iterator

import pytest

from mastra_memory.importers import prefetch


def reading_threads() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if getattr(t, "_target", None) is prefetch._fill]


@pytest.mark.parametrize(
    "number", [0, 1, prefetch.CHUNK, prefetch.CHUNK * prefetch.WAITING * 3 + 1]
)
def test_read_ahead__everything_in_order(number: int) -> None:
    assert list(prefetch.read_ahead(range(number))) == list(range(number))


def test_read_ahead__a_failure_comes_after_what_was_whole() -> None:
    def failing() -> Iterator[int]:
        yield from range(prefetch.CHUNK)
        raise ValueError("torn")

    seen: list[int] = []
    with pytest.raises(ValueError, match="torn"):
        for number in prefetch.read_ahead(failing()):
            seen.append(number)
    assert seen == list(range(prefetch.CHUNK))


def test_read_ahead__leaving_off_ends_the_thread() -> None:
    endless = prefetch.read_ahead(iter(int, 1))
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

    reader = prefetch.read_ahead(counting())
    next(reader)
    threading.Event().wait(0.2)
    assert len(made) <= prefetch.CHUNK * (prefetch.WAITING + 2)
    reader.close()
