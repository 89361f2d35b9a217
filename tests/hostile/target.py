"""Run the whole service, send requests to it, and measure its time and memory."""

import http.client
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import psutil

from tests.project.commands import ROOT, environment, manage
from tests.support.servers import free_port
from tests.support.waiting import MAX_WAIT_SECONDS

MB = 1024 * 1024
START_SECONDS = 180.0
LOGIN = re.compile(r"as admin with password (\S+) ")
CSRF = re.compile(rb'name="csrfmiddlewaretoken" value="(\w+)"')
ADMIN = "/admin/mastra_memory/thread/"
DEFAULT_AGENT = "hostile"


@dataclass(frozen=True)
class Reply:
    """A response. Only the start of its body is kept, for the messages of failed tests."""

    status: int
    size: int
    start: bytes
    headers: dict[str, str]


@dataclass(frozen=True)
class Cost:
    """What the web processes spent on an attack."""

    seconds: float
    megabytes: float
    """The peak of their memory, minus their memory before the attack."""
    left: float
    """Their memory after the attack, in megabytes."""


class Target:
    """A running service, an access token and an administrator's session."""

    def __init__(self, port: int, pid: int, token: str) -> None:
        self.port = port
        self.pid = pid
        self.token = token
        self.cookies: dict[str, str] = {}
        self.timeout = 300.0

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        timeout: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send a request and read the whole answer."""
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout or self.timeout)
        try:
            client.request(method, path, body, dict(headers or {}))
            answer = client.getresponse()
            start, size = b"", 0
            while piece := answer.read(256 * 1024):
                start = start or piece[:2_000]
                size += len(piece)
            self._keep_cookies(answer)
            return Reply(answer.status, size, start, dict(answer.getheaders()))
        finally:
            client.close()

    def api(self, method: str, path: str, body: Any = None, **query: Any) -> Reply:
        """Call the API with access to all resources. A body of bytes is sent unchanged."""
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        words = {"agentId": DEFAULT_AGENT} | query
        return self.send(
            method,
            f"/api/memory/{path}?{urlencode(words)}",
            body,
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )

    def page(self, path: str) -> Reply:
        """Open a page of the admin as an administrator."""
        return self.send("GET", path, headers=self._session())

    def conversation(self, thread_id: str, page: str = "change") -> Reply:
        """Open a conversation in the admin."""
        return self.page(f"{ADMIN}{quote(thread_id, safe='')}/{page}/")

    def log_in(self, password: str) -> None:
        """Log into the admin."""
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        client.request("GET", "/admin/login/")
        form = client.getresponse()
        token = CSRF.search(form.read())
        assert token is not None
        self._keep_cookies(form)
        client.close()
        fields = {
            "username": "admin",
            "password": password,
            "csrfmiddlewaretoken": token[1].decode(),
        }
        headers = {"Content-Type": "application/x-www-form-urlencoded", **self._session()}
        reply = self.send("POST", "/admin/login/", urlencode(fields).encode(), headers=headers)
        assert reply.status == 302, reply

    def store(self, thread_id: str, *messages: Any) -> None:
        """Create a thread with messages of these contents; fail if they are refused.

        On a busy machine a large message may exceed the time limit of the database (503).
        """
        deadline = time.monotonic() + MAX_WAIT_SECONDS
        while (reply := self.save(thread_id, *messages)).status == 503:
            assert time.monotonic() < deadline, reply
        assert reply.status == 200, reply

    def save(self, thread_id: str, *messages: Any) -> Reply:
        """Create a thread, send messages of these contents, and return the answer to them."""
        self.api("POST", "threads", {"resourceId": "r", "threadId": thread_id, "title": thread_id})
        batch = [
            {"role": "user", "threadId": thread_id, "resourceId": "r", "content": content}
            for content in messages
        ]
        return self.api("POST", "save-messages", {"messages": batch})

    def healthy(self, timeout: float = 10) -> bool:
        """Return True if the service reports that it is alive."""
        with suppress(OSError, http.client.HTTPException):
            return self.send("GET", "/healthz", timeout=timeout).status == 200
        return False

    def web_processes(self) -> list[psutil.Process]:
        """Return the processes that answer requests."""
        family = psutil.Process(self.pid).children(recursive=True)
        return [process for process in family if _is_web(process)]

    @contextmanager
    def measured(self) -> Iterator[list[Cost]]:
        """Measure the block; the list holds its cost at the end."""
        costs: list[Cost] = []
        before = self._memory("VmRSS")
        for process in self.web_processes():
            Path(f"/proc/{process.pid}/clear_refs").write_text("5")
        started = time.monotonic()
        yield costs
        seconds = time.monotonic() - started
        peak, left = self._memory("VmHWM"), self._memory("VmRSS")
        costs.append(Cost(seconds, max(0.0, peak - before), left))

    def _memory(self, name: str) -> float:
        """Return the largest value of the web processes, in megabytes."""
        found = [0.0]
        for process in self.web_processes():
            with suppress(OSError):
                status = Path(f"/proc/{process.pid}/status").read_text()
                found += [int(size) / 1024 for size in re.findall(rf"{name}:\s+(\d+)", status)]
        return max(found)

    def _session(self) -> dict[str, str]:
        return {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}

    def _keep_cookies(self, answer: http.client.HTTPResponse) -> None:
        for header in answer.headers.get_all("Set-Cookie", []):
            self.cookies |= {name: cookie.value for name, cookie in SimpleCookie(header).items()}


def _is_web(process: psutil.Process) -> bool:
    """A process of the web server, or the one that it was forked or spawned from."""
    try:
        line = " ".join(process.cmdline())
        parent = process.parent()
        above = " ".join(parent.cmdline()) if parent else ""
    except psutil.Error:
        return False
    return "resource_tracker" not in line and ("granian" in line or "granian" in above)


@contextmanager
def serving(
    folder: Path,
    *,
    settings: str = "project.settings",
    samples: bool = False,
    log_level: str = "WARNING",
) -> Iterator[Target]:
    """Run `manage.py serve` in this folder, and leave nothing of it behind."""
    port, log, var_dir = free_port(), folder / "serve.log", folder / "var"
    plain = {
        "PORT": str(port), "DJANGO_ENV": "development", "DEBUG": "0", "LOG_LEVEL": log_level,
    }  # fmt: skip
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "serve", *([] if samples else ["--no-samples"])],
            cwd=ROOT,
            env=environment(var_dir, **plain) | {"DJANGO_SETTINGS_MODULE": settings},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        family: list[psutil.Process] = []
        try:
            password = _password(process, log)
            secret = manage(var_dir, "create_token", "admin", **plain).stdout.strip()
            target = Target(port, process.pid, secret)
            target.log_in(password)
            family = psutil.Process(process.pid).children(recursive=True)
            yield target
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(30)
            process.kill()
            process.wait()
            for child in family:
                with suppress(psutil.NoSuchProcess):
                    child.kill()


def _password(process: "subprocess.Popen[bytes]", log: Path) -> str:
    give_up = time.monotonic() + START_SECONDS
    while time.monotonic() < give_up and process.poll() is None:
        if (found := LOGIN.search(log.read_text())) and "Ctrl-C" in log.read_text():
            return found[1]
        time.sleep(0.2)
    raise AssertionError(f"The service does not start:\n{log.read_text()}")
