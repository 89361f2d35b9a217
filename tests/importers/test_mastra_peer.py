"""Tests of importing a database that a real Mastra server has written.

They need the packages of the conformance kit (`make conformance`).
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from django.db import connection

from mastra_memory.importers import sources
from mastra_memory.importers.records import ResourceMapping
from mastra_memory.models import Message, ObservationalRecord, Thread, WorkingMemory
from tests.importers.test_mastra_postgres import address
from tests.support import servers
from tests.support.importing import count_outcomes, import_items, list_texts

KIT = Path(os.environ.get("CONFORMANCE_DIR") or servers.KIT)
DATABASE = "mastra_peer_source"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not servers.node(KIT).exists(), reason="the kit's packages are missing"),
    pytest.mark.django_db(transaction=True),
]

ODD = {"a": 1, "b": [1.5, None, True, {"deep": 'ü☃ "q" \\ \n'}], "long": "x" * 300}
CONTENT = {"format": 2, "parts": [{"type": "text", "text": "Hello ü"}], "metadata": {"k": 1}}


@pytest.fixture(params=["libsql", "pg"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[dict[str, str], str]]:
    """Return the server's environment variables for its database, and the database as a source."""
    if request.param == "libsql":
        yield {"STORE": "libsql", "LIBSQL": f"file:{tmp_path}/m.db"}, str(tmp_path / "m.db")
        return
    url = address().replace(connection.settings_dict["NAME"], DATABASE)
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
        cursor.execute(f"CREATE DATABASE {DATABASE}")
        yield {"STORE": "pg", "PGURL": url}, url
        cursor.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")


def fill(base: str) -> None:
    """Create a thread with every kind of data through the routes of the server."""

    def post(path: str, body: Any) -> None:
        data = json.dumps(body).encode()
        sent = Request(base + path, data=data, headers={"Content-Type": "application/json"})
        with urlopen(sent, timeout=30) as answer:
            answer.read()

    agent = "agentId=test-agent"
    post(f"/api/memory/threads?{agent}",
         {"threadId": "t1", "resourceId": "r1", "title": "T", "metadata": ODD})  # fmt: skip
    messages = [
        {"id": f"m{n}", "role": "user", "threadId": "t1", "resourceId": "r1", "content": CONTENT,
         "createdAt": f"2024-01-01T00:00:0{n}.123Z"} for n in range(3)
    ]  # fmt: skip
    post(f"/api/memory/save-messages?{agent}", {"messages": messages})
    memory = {"workingMemory": "# Known\n- tea", "resourceId": "r1"}
    post(f"/api/memory/threads/t1/working-memory?{agent}", memory)
    memory = {"workingMemory": "of the thread", "resourceId": "r1"}
    post("/api/memory/threads/t1/working-memory?agentId=thread-wm-agent", memory)
    post(f"/api/memory/threads/t1/clone?{agent}", {"newThreadId": "c1"})
    generations = [
        {"createdAt": "2024-03-01T10:00:00.000Z", "activeObservations": "first"},
        {"createdAt": "2024-03-02T10:00:00.500Z", "activeObservations": "second",
         "lastObservedAt": "2024-03-02T09:00:00.250Z", "isObserving": True},
    ]  # fmt: skip
    about = {"scope": "thread", "resourceId": "r1", "threadId": "t1", "generations": generations}
    post("/_control/observational-memory", about)


def test_read__everything_that_a_mastra_server_writes(
    store: tuple[dict[str, str], str], tmp_path: Path
) -> None:
    variables, source = store
    port = servers.free_port()
    env = {**os.environ, **variables, "PORT": str(port)}
    base = f"http://127.0.0.1:{port}"
    command = [str(servers.node(KIT)), "peer/server.mjs"]
    health_url = f"{base}/_control/ping"
    with servers.running(command, env=env, log=tmp_path / "log", health_url=health_url, cwd=KIT):
        fill(base)
        with sources.open_source(source) as opened:  # while the server runs
            report = import_items(opened.read(ResourceMapping()))

    thread, clone = Thread.objects.get(pk="t1"), Thread.objects.get(pk="c1")
    assert (thread.title, thread.metadata) == ("T", ODD)
    assert clone.clone_source_id == "t1"
    assert list_texts(thread) == list_texts(clone) == [("user", "Hello ü")] * 3
    message = Message.objects.get(pk="m1")
    assert message.content == CONTENT
    assert message.created_at.isoformat(timespec="milliseconds") == "2024-01-01T00:00:01.123+00:00"
    kept = WorkingMemory.objects.order_by("scope").values_list("thread_id", "content")
    assert list(kept) == [(None, "# Known\n- tea"), ("t1", "of the thread")]
    record = ObservationalRecord.objects.get(generation_count=1)
    assert (record.active_observations, record.is_observing) == ("second", False)
    assert record.last_observed_at and record.last_observed_at.microsecond == 250_000
    assert count_outcomes(report, "messages") == {"stored": 6}
