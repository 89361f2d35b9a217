"""Choose the threads of a resource to observe, and put them into batches."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ThreadSize:
    """The unobserved messages of a thread."""

    thread_id: str
    tokens: int
    oldest: str
    """The time of the oldest message, in the format of the API."""


def select_threads(threads: Sequence[ThreadSize], threshold: int) -> list[ThreadSize]:
    """Return the largest threads that together reach the threshold, oldest messages first.

    The others are observed later. No thread is returned if all together are smaller.
    """
    if sum(thread.tokens for thread in threads) < threshold:
        return []
    selected: list[ThreadSize] = []
    total = 0
    for thread in sorted(threads, key=lambda item: (-item.tokens, item.oldest, item.thread_id)):
        if total >= threshold or not thread.tokens:
            break
        selected.append(thread)
        total += thread.tokens
    return sorted(selected, key=lambda item: (item.oldest, item.thread_id))


def make_batches(threads: Sequence[ThreadSize], max_tokens: int) -> list[list[ThreadSize]]:
    """Return the threads in batches of at most `max_tokens`, in their order.

    A thread that is larger is a batch of its own.
    """
    batches: list[list[ThreadSize]] = []
    size = 0
    for thread in threads:
        if not batches or size + thread.tokens > max_tokens:
            batches.append([])
            size = 0
        batches[-1].append(thread)
        size += thread.tokens
    return batches
