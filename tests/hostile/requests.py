"""Attacks by single requests: large bodies, schemas, filters and searches without bounds."""

from collections.abc import Callable
from functools import lru_cache

from tests.hostile.attack import HANDLED, LIMIT, Attack, filled

SHAPES: dict[str, Callable[[], bytes]] = {
    "empty objects": lambda: filled(b"[", b"{}", b"]"),
    "whole numbers": lambda: filled(b"[", b"1", b"]"),
    "texts": lambda: filled(b"[", b'""', b"]"),
    "lists": lambda: filled(b"[", b"[]", b"]"),
    "keys": lambda: b"{" + b",".join(b'"%d":1' % n for n in range(1_600_000)) + b"}",
    "nested lists": lambda: b"[" * (LIMIT // 2 - 100) + b"]" * (LIMIT // 2 - 100),
    "nested objects": lambda: b'{"a":' * 3_000_000 + b"1" + b"}" * 3_000_000,
    "one text": lambda: b'"' + b"x" * (LIMIT - 1_000) + b'"',
    "escapes": lambda: b'"' + b"\\u0000" * 3_000_000 + b'"',
    "a long number": lambda: b"1" * (LIMIT - 1_000),
}
PLACES = {
    "the body": ("POST", "threads", b"%b"),
    "metadata": ("POST", "threads", b'{"resourceId":"r","threadId":"shape","metadata":{"k":%b}}'),
    "messages": ("POST", "save-messages", b'{"messages":%b}'),
    "newMessages": ("POST", "threads/shape/context", b'{"resourceId":"r","newMessages":%b}'),
    "messageIds": ("POST", "messages/delete", b'{"messageIds":%b}'),
    "workingMemory": ("POST", "threads/shape/working-memory", b'{"workingMemory":%b}'),
}


@lru_cache(maxsize=1)  # made before the clock starts, and only one at a time
def large_body(place: str, shape: str) -> bytes:
    return PLACES[place][2].replace(b"%b", SHAPES[shape]())


def large(place: str, shape: str) -> Attack:
    """An attack by a body of 20 MB."""
    method, path, _ = PLACES[place]
    return Attack(
        f"20 MB of {shape} as {place}",
        lambda target: target.api(method, path, large_body(place, shape)),
        HANDLED,
        5,
        400,
        prepare=lambda target: large_body(place, shape),
        long=place not in ("the body", "newMessages"),
    )


BODIES = [large(place, shape) for place in PLACES for shape in SHAPES]
