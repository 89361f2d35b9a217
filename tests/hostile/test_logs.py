"""No log holds what users send: not the service's, not the worker's, not the database's."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from tests.api.routes import ROUTES, Named, Route, filled
from tests.hostile.target import Target, serving

pytestmark = pytest.mark.slow
SECRET = "hunter2secret"
BROKEN: tuple[Any, ...] = (
    None, 7, [SECRET], {SECRET: SECRET}, f"{SECRET}\0", [[SECRET]], SECRET * 200,
    {"$regex": f"({SECRET}"}, f"2024-13-{SECRET}",
)  # fmt: skip
SCHEMA = {
    "type": "object",
    "properties": {SECRET: {"type": SECRET, "minimum": SECRET, "$ref": f"#/{SECRET}"}},
}
CONFIG = {"workingMemory": {"enabled": True, "schema": SCHEMA}, "lastMessages": SECRET}
BODIES = (b"{" + SECRET.encode(), b'"' + SECRET.encode() + b'\xff"', b"\xff" + SECRET.encode())


def variants(value: Any) -> Iterator[Any]:
    """Yield the object with one field after another replaced by something broken."""
    if isinstance(value, dict):
        for key in value:
            for part in BROKEN:
                yield value | {key: part}
        yield value | {"memoryConfig": CONFIG, SECRET: SECRET}
        schema = {"workingMemory": {"enabled": True, "schema": SCHEMA}}
        yield value | {"memoryConfig": schema}
        yield value | {"memoryConfig": {"workingMemory": {"schema": json.dumps(SCHEMA)[:-9]}}}


def send(target: Target, key: str, query: Any, body: Any) -> None:
    method, path = key.split(" ", 1)
    words = {"agentId": SECRET} | {
        name: part if isinstance(part, str) else json.dumps(part)
        for name, part in (query or {}).items()
    }
    raw = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {target.token}", "Content-Type": "application/json"}
    address = f"/api/memory/{quote(path)}?{urlencode(words)}"
    reply = target.send(method, address, raw, headers=headers)
    assert reply.status < 500, (key, query, body, reply)


def attack(target: Target, key: str, route: Route) -> None:
    """Send the route's request whole, with every field broken, and with a body that is not JSON."""
    named = Named(f"{SECRET} resource", f"{SECRET} thread", f"{SECRET} message")
    path, query, body = (filled(part, named) for part in (key, route.query, route.body))
    send(target, path, query, body)
    for broken in variants(query or {}):
        send(target, path, broken, body)
    if body is not None:
        for broken in [*variants(body), *BODIES]:
            send(target, path, query, broken)


@pytest.mark.parametrize("level", ["INFO"])
def test_logs__hold_nothing_that_was_sent(tmp_path: Path, level: str) -> None:
    with serving(tmp_path, settings="tests.hostile.contract_settings", log_level=level) as target:
        for key, route in ROUTES.items():
            if not key.split(" ")[1].startswith("network/"):
                attack(target, key, route)
        for path in (f"/admin/{SECRET}/", f"/{SECRET}", f"/api/{SECRET}", f"/admin/?{SECRET}"):
            target.page(path)
        target.page(f"/admin/mastra_memory/thread/{SECRET}/change/")
        logs = [tmp_path / "serve.log", *(tmp_path / "var").rglob("*.log")]
        texts = {log.name: log.read_text(errors="replace") for log in logs}
    assert {"serve.log", "server.log"} <= texts.keys()
    assert "Not Found: " in texts["serve.log"]  # the log is written at all
    for name, text in texts.items():
        found = [line for line in text.splitlines() if SECRET in line]
        assert not found, (name, found[:5])
