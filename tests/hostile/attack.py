"""What an attack is: one line of the table."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.hostile.target import MB, Reply, Target

LIMIT = 20 * MB
"""The default of `MAX_BODY_BYTES`."""
Send = Callable[[Target], Reply]


@dataclass(frozen=True)
class Attack:
    """One line of the table."""

    name: str
    send: Send
    statuses: frozenset[int]
    seconds: float
    megabytes: float = 150
    prepare: Callable[[Target], object] | None = None
    """What is stored first; neither measured nor judged."""
    long: bool = False
    """Only run by `make faults`."""


SHOWN = frozenset({200})
HANDLED = frozenset({200, 400, 404, 413})


def filled(start: bytes, piece: bytes, end: bytes, size: int = LIMIT - 100) -> bytes:
    """Return a body of nearly `size` bytes: one piece again and again."""
    count = (size - len(start) - len(end)) // (len(piece) + 1)
    return start + b",".join([piece] * count) + end


def message_of(text: str) -> dict[str, Any]:
    return {"format": 2, "parts": [{"type": "text", "text": text}]}
