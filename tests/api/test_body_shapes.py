"""Bodies of 20 MB in every shape, sent to the real web server: bounded in memory and time."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mastra_memory.models import Message
from tests.support.factories import make_thread
from tests.support.live_server import RealServer, real_server

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

AGENT = "?agentId=a"
SIZE = 20 * 1024 * 1024 - 1_000
MAX_MEMORY = 400 * 1024 * 1024
"""Bytes that one request may add to the memory of the process."""
MAX_SECONDS = 5.0


def repeated(piece: bytes) -> bytes:
    """Return as many items of a list as fit in a body."""
    return b",".join([piece] * (SIZE // (len(piece) + 1)))


def nested(levels: int) -> bytes:
    """A list in a list in a list."""
    return b"[" * levels + b"]" * levels


PARTS = {
    "empty objects": b"{}",
    "empty lists": b"[]",
    "numbers": b"1",
    "long numbers": b"12345678901234567890",
    "fractions": b"1.5",
    "null": b"null",
    "empty strings": b'""',
    "short strings": b'"a"',
    "strings beyond ASCII": '"\U0001f600"'.encode(),
    "objects with a key": b'{"a":1}',
    "objects in lists": b'{"a":[{}]}',
    "deep lists": nested(200),
    "too deep lists": nested(1_000),
    "lone surrogates": b'"\\ud800"',
    "NUL": b'"\\u0000"',
    "text full of commas": b'"' + b"," * 1_000_000 + b'"',
    "text full of quotes": b'"' + b'\\"' * 500_000 + b'"',
    "short words": b'"' + b"ab cd " * 1_000_000 + b'"',
    "long words": b'"' + b"x" * 5_000_000 + b'"',
    "messages": b'{"role":"user","threadId":"t","resourceId":"r","content":"x"}',
}
LISTS = {name: b"[" + repeated(piece) + b"]" for name, piece in PARTS.items()}
BODIES: dict[str, Callable[[], bytes]] = {
    "short keys": lambda: b"{" + b",".join(b'"%x":0' % n for n in range(SIZE // 9)) + b"}",
    "the same key": lambda: b"{" + repeated(b'"a":0') + b"}",
    "strings without commas": lambda: b'"a"' * (SIZE // 3),
    "quotes": lambda: b'"' * SIZE,
    "unclosed lists": lambda: b"[" * SIZE,
    "unclosed objects": lambda: b'{"a":' * (SIZE // 5),
    "commas": lambda: b"," * SIZE,
    "blanks": lambda: b" " * SIZE,
    "a long string": lambda: b'"' + b"a" * SIZE + b'"',
    "a long number": lambda: b"1" * SIZE,
    "backslashes": lambda: b'"' + b"\\" * SIZE + b'"',
}
PLACES = {
    "save-messages": b'{"messages":%b}',
    "threads/t/context": b'{"newMessages":%b}',
    "messages/delete": b'{"messageIds":%b}',
    "threads": b'{"resourceId":"r","metadata":{"x":%b}}',
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RealServer]:
    with real_server(tmp_path) as running:
        yield running


def cost(server: RealServer, path: str, body: bytes) -> tuple[int, bytes, int, float]:
    """Status and answer, bytes of memory that the request added, and its seconds of CPU."""
    before, started = server.forget_peak(), cpu_seconds(server.pid)
    status, raw = server.send("POST", f"{path}{AGENT}", body)
    return status, raw, server.peak() - before, cpu_seconds(server.pid) - started


def cpu_seconds(pid: int) -> float:
    """The CPU time of a process, which other load on the machine does not change much."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_body__of_any_shape_costs_little(server: RealServer) -> None:
    make_thread("r", "t")
    server.send("POST", f"save-messages{AGENT}", {"messages": []})  # loads what is loaded once
    bodies = [
        (f"{name} as {path}", path, LISTS[name], shape)
        for path, shape in PLACES.items()
        for name in LISTS
    ]
    costs: dict[str, Any] = {}
    for name, path, value, shape in bodies:
        costs[name] = cost(server, path, shape % value)
    for name, made in BODIES.items():
        costs[name] = cost(server, "save-messages", made())
    for name, (status, raw, memory, seconds) in costs.items():
        assert status < 500, (name, raw[:300])
        assert status == 200 or json.loads(raw)["error"], name
        assert memory < MAX_MEMORY, (name, status, memory >> 20)
        assert seconds < MAX_SECONDS, (name, status, seconds)


def message(text: str, parts: int = 1) -> dict[str, Any]:
    listed = [{"type": "text", "text": text} for _ in range(parts)]
    owner = {"threadId": "t", "resourceId": "r", "role": "user"}
    return {**owner, "content": {"format": 2, "parts": listed}}


def test_body__legitimate_large_batches_are_saved(server: RealServer) -> None:
    make_thread("r", "t")
    batches = {
        "one message of 19 MB": [message("word, " * 3_300_000)],
        "one message of 19 MB beyond ASCII": [message("wörd \U0001f600 " * 1_700_000)],
        "a thousand messages of a hundred parts": [message("hello there", 100)] * 1_000,
        "five thousand messages": [message("hello there")] * 5_000,
    }
    stored = 0
    for name, batch in batches.items():
        body = json.dumps({"messages": batch}, ensure_ascii=False).encode()
        status, raw, memory, seconds = cost(server, "save-messages", body)
        assert status == 200, (name, raw[:300])
        assert memory < MAX_MEMORY, (name, memory >> 20)
        assert seconds < MAX_SECONDS, (name, seconds)
        stored += len(batch)
    assert Message.objects.count() == stored
