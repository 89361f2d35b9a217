"""The definition of an attack: what is sent, and what it may cost."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.hostile.target import MB, Reply, Target

LIMIT = 20 * MB
"""The default of `MAX_BODY_BYTES`."""
Send = Callable[[Target], Reply]


@dataclass(frozen=True)
class Attack:
    """A request, the statuses it may get, and the time and memory it may take."""

    name: str
    send: Send
    statuses: frozenset[int]
    seconds: float
    megabytes: float = 150
    prepare: Callable[[Target], object] | None = None
    """Called before the attack; its time, memory and response are not checked."""
    long: bool = False
    """Only run by `make faults`."""


SHOWN = frozenset({200})
"""The status of a page that must be displayed in spite of the attack."""
HANDLED = frozenset({200, 400, 404, 413})
"""The statuses of a request that may be refused, but must not fail."""


def filled(start: bytes, piece: bytes, end: bytes, size: int = LIMIT - 100) -> bytes:
    """Return a body of nearly `size` bytes: one piece again and again."""
    count = (size - len(start) - len(end)) // (len(piece) + 1)
    return start + b",".join([piece] * count) + end


def message_of(text: str) -> dict[str, Any]:
    return {"format": 2, "parts": [{"type": "text", "text": text}]}
