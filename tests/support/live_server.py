"""A real web server on the database of the tests, and what it costs in memory."""

import http.client
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from django.db import connection

from project.models import AccessToken
from tests.support import servers
from tests.support.factories import make_user, unique


@dataclass(frozen=True)
class RealServer:
    """One process of the web server, and a token of a caller without bounds."""

    port: int
    pid: int
    """The process that answers."""
    token: str

    def connect(self) -> http.client.HTTPConnection:
        """A connection to it."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        chunked: bool = False,
    ) -> tuple[int, bytes]:
        """Status and body of the answer; bytes and iterators are sent as they are."""
        if isinstance(body, dict | list):
            body = json.dumps(body).encode()
        sent = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        client = self.connect()
        try:
            client.request(
                method,
                f"/api/memory/{path}",
                body,
                sent | dict(headers or {}),
                encode_chunked=chunked,
            )
            answer = client.getresponse()
            return answer.status, answer.read()
        finally:
            client.close()

    def forget_peak(self) -> int:
        """Begin a new measurement; the bytes it holds now."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")
        return self._memory("VmRSS")

    def peak(self) -> int:
        """The most bytes it has held since."""
        return self._memory("VmHWM")

    def _memory(self, name: str) -> int:
        status = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        (line,) = (line for line in status if line.startswith(f"{name}:"))
        return int(line.split()[1]) * 1024


@contextmanager
def real_server(folder: Path, **variables: str) -> Iterator[RealServer]:
    """Run the server as `make run` does, on the database that this test uses."""
    token = AccessToken(user=make_user(unique("caller"), unscoped=True))
    secret = token.generate_secret()
    token.save()
    port = servers.free_port()
    command, health_url = servers.build_server_command(port), f"http://127.0.0.1:{port}/healthz"
    env = environment(folder, **variables)
    with servers.running(
        command, env=env, log=folder / "server.log", health_url=health_url
    ) as process:
        yield RealServer(port, _worker_of(process.pid), secret)


def environment(folder: Path, **variables: str) -> dict[str, str]:
    """The environment of a process that is to use the database of this test."""
    return servers.environment("project.settings", folder, DATABASE_URL=_url(), **variables)


def _url() -> str:
    at = connection.settings_dict
    host = quote(str(at["HOST"]), safe="")
    return f"postgresql://{at['USER']}:{at['PASSWORD']}@{host}:{at['PORT']}/{at['NAME']}"


def _worker_of(pid: int) -> int:
    """The one child that serves requests."""
    for folder in Path(f"/proc/{pid}/task").iterdir():
        for child in (folder / "children").read_text().split():
            if b"resource_tracker" not in Path(f"/proc/{child}/cmdline").read_bytes():
                return int(child)
    return os.getpid() if pid == os.getpid() else pid
