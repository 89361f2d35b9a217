"""A load generator that runs in its own process and keeps a number of connections busy.

`python -m benchmarks.load_generator` reads a `Job` as JSON from standard input and writes an
`Outcome` as JSON to standard output. Paths and bodies may contain two placeholders: `NUMBER`
becomes a number that is unique to the run, and `SLOT` a number from a small range, which spreads
writes over several threads.
"""

import json
import selectors
import socket
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any

NUMBER = "@number@"
SLOT = "@slot@"
SLOT_COUNT = 64
RECEIVE_BYTES = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """An HTTP request that may contain placeholders."""

    method: str = "GET"
    path: str
    body: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What to send, where to send it, and for how long."""

    port: int
    requests: list[Request]
    """The requests of one run, sent one after the other on the same connection."""
    headers: dict[str, str]
    connections: int
    seconds: float
    max_runs: int | None = None
    """Stop after this number of runs even if there is time left."""
    first_number: int = 0
    """The value of `NUMBER` in the first run; later runs count up."""

    @classmethod
    def from_json(cls, text: str) -> "Job":
        """Read a job that was written with `dataclasses.asdict` and `json.dumps`."""
        values: dict[str, Any] = json.loads(text)
        return cls(**values | {"requests": [Request(**request) for request in values["requests"]]})


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a job. A run counts when its last response has arrived completely."""

    runs: int
    seconds: float
    first_error: str = ""
    """The beginning of the first response whose status was not 200."""

    @property
    def rate(self) -> float:
        """Runs per second."""
        return self.runs / self.seconds


class Response:
    """Collect one HTTP response. Parses only what is needed to find its end."""

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.length: int | None = None
        self.is_chunked = False

    def feed(self, data: bytes) -> bool:
        """Add received bytes and return whether the response is complete."""
        self.buffer += data
        if self.length is None and not self.is_chunked and not self._parse_headers():
            return False
        if self.is_chunked:
            return self.buffer.endswith(b"0\r\n\r\n")
        return self.length is not None and len(self.buffer) >= self.length

    def _parse_headers(self) -> bool:
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return False
        headers = bytes(self.buffer[:end]).lower()
        start = headers.find(b"content-length:")
        if start >= 0:
            line_end = headers.find(b"\r\n", start)
            stop = line_end if line_end > 0 else end
            self.length = end + 4 + int(headers[start + 15 : stop])
        else:
            self.is_chunked = True
        return True


class Runs:
    """Build the bytes of each run from the job's requests."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.started = 0
        self.templates = [self._template(request) for request in job.requests]

    def _template(self, request: Request) -> bytes:
        # Placeholders are replaced by numbers of the same length, so Content-Length stays right.
        lines = [f"{request.method} {request.path} HTTP/1.1", "Host: 127.0.0.1"]
        lines += [f"{name}: {value}" for name, value in self.job.headers.items()]
        if request.body:
            lines += ["Content-Type: application/json"]
            lines += [f"Content-Length: {len(request.body.encode())}"]
        return ("\r\n".join(lines) + "\r\n\r\n" + request.body).encode()

    def next(self) -> list[bytes] | None:
        """Return the requests of the next run, or None after `max_runs` runs."""
        if self.job.max_runs is not None and self.started >= self.job.max_runs:
            return None
        number = self.job.first_number + self.started
        self.started += 1
        return [fill_placeholders(template, number) for template in self.templates]


def fill_placeholders(template: bytes, number: int) -> bytes:
    """Replace both placeholders for the run with this number."""
    if b"@" not in template:
        return template
    data = template.replace(NUMBER.encode(), b"%0*d" % (len(NUMBER), number))
    return data.replace(SLOT.encode(), b"%0*d" % (len(SLOT), number % SLOT_COUNT))


class Connection:
    """A keep-alive connection that sends the requests of one run after the other."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.response = Response()
        self.remaining: list[bytes] = []

    def start_run(self, requests: list[bytes]) -> None:
        """Send the first request and keep the others for later."""
        self.remaining = requests[1:]
        self._send(requests[0])

    def send_next(self) -> bool:
        """Send the next request of the run and return whether there was one."""
        if not self.remaining:
            return False
        self._send(self.remaining.pop(0))
        return True

    def receive(self) -> bytearray | None:
        """Read what has arrived and return the response if it is complete.

        Raises:
            ConnectionError: The server closed the connection.
        """
        data = self.socket.recv(RECEIVE_BYTES)
        if not data:
            raise ConnectionError("the server closed the connection")
        return self.response.buffer if self.response.feed(data) else None

    def _send(self, data: bytes) -> None:
        # Blocks while the server reads. Requests are small enough for that to be short.
        self.response = Response()
        self.socket.sendall(data)


def generate_load(job: Job) -> Outcome:
    """Keep every connection busy until the time is up, then wait for the last responses."""
    runs = Runs(job)
    completed, first_error = 0, ""
    with selectors.DefaultSelector() as selector:
        connections = [Connection(job.port) for _ in range(job.connections)]
        started = time.perf_counter()
        for connection in connections:
            if (requests := runs.next()) is not None:
                selector.register(connection.socket, selectors.EVENT_READ, connection)
                connection.start_run(requests)
        while selector.get_map():
            for key, _ in selector.select():
                response = key.data.receive()
                if response is None:
                    continue
                if not response.startswith(b"HTTP/1.1 200") and not first_error:
                    first_error = response[:500].decode(errors="replace")
                if key.data.send_next():
                    continue
                completed += 1
                time_is_up = time.perf_counter() - started >= job.seconds
                requests = None if time_is_up else runs.next()
                if requests is None:
                    selector.unregister(key.fileobj)
                else:
                    key.data.start_run(requests)
        seconds = time.perf_counter() - started
        for connection in connections:
            connection.socket.close()
    return Outcome(runs=completed, seconds=seconds, first_error=first_error)


if __name__ == "__main__":
    json.dump(asdict(generate_load(Job.from_json(sys.stdin.read()))), sys.stdout)
