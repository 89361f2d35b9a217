"""Wait for a condition, and end what would never end.

No test asserts how long something takes: a busy machine is slow, which is not a failure. The limits
here are far beyond what any machine needs. They only keep a broken test from running for ever.
"""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn, TypeVar

T = TypeVar("T")

MAX_WAIT_SECONDS = 300.0
POLL_SECONDS = 0.05


def wait_until(
    condition: Callable[[], T],
    *,
    seconds: float = MAX_WAIT_SECONDS,
    describe: Callable[[], object] = lambda: "the condition never became true",
) -> T:
    """Return the first true value of `condition`.

    Args:
        condition: Called again and again. An `AssertionError` that it raises ends the wait.
        seconds: After this time the test fails.
        describe: Returns what is shown if the test fails, for example the log of a server.
    """
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, describe()
        time.sleep(POLL_SECONDS)
    return value


@contextmanager
def fail_after(seconds: int = 120) -> Iterator[None]:
    """Fail if the block has not ended after `seconds`.

    For algorithms that must be linear: their inputs are so large that a quadratic one would work
    for hours, so that the limit can be generous. Works in the main thread of a test process.
    """

    def fail(number: int, frame: FrameType | None) -> NoReturn:
        raise AssertionError(f"not finished after {seconds} seconds")

    previous = signal.signal(signal.SIGALRM, fail)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
