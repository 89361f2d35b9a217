"""The load generator: a process of its own that keeps some connections busy with one request.

`python -m benchmarks.load` reads a job as JSON from standard input and writes the outcome to
standard output. Requests are bytes with two marks: a number that no other request has, and the
number of a lane, of which each connection has its own few, so that writers need not meet.
"""

import json
import selectors
import socket
import sys
import time
from dataclasses import asdict, dataclass

NUMBER = "@number@"
LANE = "@lane@"
CHUNK = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What to send, where to, and for how long."""

    port: int
    method: str
    path: str
    body: str = ""
    headers: dict[str, str]
    connections: int
    seconds: float
    most: int | None = None
    """Stop after this many requests, however early."""
    first: int = 0
    """The number of the first request."""
    lanes: int = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a job. A request counts when its answer has arrived whole."""

    answers: int
    seconds: float
    first_failure: str = ""
    """The beginning of the first answer that was not 200."""

    @property
    def rate(self) -> float:
        """Answers per second."""
        return self.answers / self.seconds


class Answer:
    """Reads one HTTP answer from the pieces that arrive, as cheaply as may be."""

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.length: int | None = None
        self.chunked = False

    def feed(self, data: bytes) -> bool:
        """Take a piece; tell whether the answer is whole."""
        self.buffer += data
        if self.length is None and not self.chunked and not self._read_head():
            return False
        if self.chunked:
            return self.buffer.endswith(b"0\r\n\r\n")
        return self.length is not None and len(self.buffer) >= self.length

    def _read_head(self) -> bool:
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return False
        head = bytes(self.buffer[:end]).lower()
        start = head.find(b"content-length:")
        if start >= 0:
            line_end = head.find(b"\r\n", start)
            stop = line_end if line_end > 0 else end
            self.length = end + 4 + int(head[start + 15 : stop])
        else:
            self.chunked = True
        return True


class Requests:
    """Makes the bytes of each request from the job's patterns."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.sent = 0
        # Marks are replaced by as many digits as they are long, so the length never changes.
        lines = [f"{job.method} {job.path} HTTP/1.1", "Host: 127.0.0.1"]
        lines += [f"{name}: {value}" for name, value in job.headers.items()]
        if job.body:
            lines += ["Content-Type: application/json", f"Content-Length: {len(job.body.encode())}"]
        self.pattern = ("\r\n".join(lines) + "\r\n\r\n" + job.body).encode()
        self.is_constant = NUMBER not in self.pattern.decode() and LANE not in self.pattern.decode()

    def next(self) -> bytes | None:
        """Give the next request; None when there have been enough."""
        if self.job.most is not None and self.sent >= self.job.most:
            return None
        number = self.job.first + self.sent
        self.sent += 1
        if self.is_constant:
            return self.pattern
        data = self.pattern.replace(NUMBER.encode(), b"%0*d" % (len(NUMBER), number))
        return data.replace(LANE.encode(), b"%0*d" % (len(LANE), number % self.job.lanes))


class Connection:
    """One keep-alive connection with at most one request under way."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.answer = Answer()

    def send(self, data: bytes) -> None:
        """Send a request whole; it is small against the socket's buffer, or the server reads it."""
        self.answer = Answer()
        self.socket.sendall(data)

    def receive(self) -> bytearray | None:
        """Take what has arrived; give the answer when it is whole."""
        data = self.socket.recv(CHUNK)
        if not data:
            raise ConnectionError("the server closed the connection")
        return self.answer.buffer if self.answer.feed(data) else None


def run(job: Job) -> Outcome:
    """Keep every connection busy until the time is over, then wait for the last answers."""
    requests = Requests(job)
    answers, failure = 0, ""
    with selectors.DefaultSelector() as selector:
        connections = [Connection(job.port) for _ in range(job.connections)]
        started = time.perf_counter()
        for connection in connections:
            if (data := requests.next()) is not None:
                selector.register(connection.socket, selectors.EVENT_READ, connection)
                connection.send(data)
        while selector.get_map():
            for key, _ in selector.select():
                answer = key.data.receive()
                if answer is None:
                    continue
                answers += 1
                if not answer.startswith(b"HTTP/1.1 200") and not failure:
                    failure = answer[:500].decode(errors="replace")
                late = time.perf_counter() - started >= job.seconds
                data = None if late else requests.next()
                if data is None:
                    selector.unregister(key.fileobj)
                else:
                    key.data.send(data)
        seconds = time.perf_counter() - started
        for connection in connections:
            connection.socket.close()
    return Outcome(answers=answers, seconds=seconds, first_failure=failure)


if __name__ == "__main__":
    json.dump(asdict(run(Job(**json.load(sys.stdin)))), sys.stdout)
