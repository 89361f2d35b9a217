"""The application that Granian loads: it reads a request's body, then calls Django in a thread.

Granian's WSGI interface starts a thread of Python when the head of a request has arrived, and that
thread waits for the body. A few clients that send theirs slowly would keep all threads waiting. So
bodies are read here, on the event loop, within a time and a size. A thread gets whole requests
only, and slow clients cost a connection and a little memory.

The interface: https://github.com/emmett-framework/granian/blob/master/docs/spec/RSGI.md
"""

import asyncio
import gc
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING, Any, cast

import orjson
from granian.rsgi import (  # type: ignore[attr-defined]  # documented, but not in its types
    HTTPProtocol,
    ProtocolClosed,
    ProtocolError,
    Scope,
)

from mastra_memory import conf
from project.health import HEALTHZ_BODY
from project.wsgi import application as django_application

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

THREADS = int(os.environ.get("THREADS") or 2)
BODY_TIMEOUT_SECONDS = float(os.environ.get("BODY_TIMEOUT") or 30)
"""Seconds for a body to arrive, plus one second for each `MIN_BYTES_PER_SECOND` bytes of it."""
MIN_BYTES_PER_SECOND = 16 * 1024
SEND_TIMEOUT_SECONDS = 60.0
"""Seconds for a client to receive one chunk of a streamed response."""
MAX_ANONYMOUS_BODY_BYTES = 1024 * 1024
"""Bytes in the body of a request that has neither a cookie nor an Authorization header."""
MAX_DISCARDED_BYTES = 256 * 1024 * 1024
"""A refused body is read up to this size.

If the connection is closed while a client sends, the client does not see the response.
"""
MAX_BYTES_IN_MEMORY = 256 * 1024
"""Larger bodies are kept in a temporary file until a thread is free for them."""

Headers = list[tuple[str, str]]


class BodyRefused(Exception):
    """A body that is too large or too slow."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class BodyIncomplete(Exception):
    """The client left before its body had arrived."""


class Application:
    """The RSGI application of one web process."""

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the threads, and exclude the loaded modules from garbage collection."""
        self.loop = loop
        self.threads = ThreadPoolExecutor(THREADS, "request")
        gc.collect()
        gc.freeze()

    async def __rsgi__(self, scope: Scope, protocol: HTTPProtocol) -> None:
        """Answer one request."""
        if scope.path == "/healthz":  # no thread is needed: all may be busy
            protocol.response_bytes(200, [("Content-Type", "application/json")], HEALTHZ_BODY)
            return
        try:
            with await read_body(scope, protocol) as body:
                response = await self._in_thread(call_django, scope, body)
        except BodyRefused as refusal:
            send_refusal(protocol, refusal)
            return
        except (BodyIncomplete, ProtocolClosed, ProtocolError):
            return  # the client has left
        if not response.streaming:
            protocol.response_bytes(response.status, response.headers, response.content)
            return
        await self._stream(protocol, response)

    async def _in_thread(self, function: Any, *arguments: Any) -> Any:
        return await self.loop.run_in_executor(self.threads, function, *arguments)

    async def _stream(self, protocol: HTTPProtocol, response: "DjangoResponse") -> None:
        """Send a response in chunks. No thread waits for a client that reads slowly."""
        try:
            transport = protocol.response_stream(response.status, response.headers)
            while (chunk := await self._in_thread(next, response.chunks, None)) is not None:
                async with asyncio.timeout(SEND_TIMEOUT_SECONDS):
                    await transport.send_bytes(chunk)
        except (ProtocolClosed, ProtocolError, TimeoutError):
            pass  # the client has left, or does not read
        finally:
            await self._in_thread(response.close)


class DjangoResponse:
    """Django's response: either complete (`content`) or an iterator (`chunks`)."""

    status: int
    headers: Headers
    content: bytes
    chunks: Iterator[bytes]
    streaming: bool

    def start(self, status: str, headers: Headers, exc_info: Any = None) -> None:
        """Store status and headers: WSGI's `start_response`."""
        self.status, self.headers = int(status[:3]), headers

    def set_result(self, result: Any) -> None:
        """Store the result of the WSGI application. Read and close it unless it is streamed."""
        self._result = result
        self.streaming = getattr(result, "streaming", False)
        if self.streaming:
            self.chunks = iter(result)
            return
        try:
            self.content = b"".join(result)
        finally:
            result.close()

    def close(self) -> None:
        """Close Django's response, whether it was sent or the client left."""
        self._result.close()


def call_django(scope: Scope, body: IO[bytes]) -> DjangoResponse:
    """Run Django's WSGI application on a request that has arrived completely."""
    response = DjangoResponse()
    response.set_result(
        django_application(build_wsgi_environ(scope, body), cast("StartResponse", response.start))
    )
    return response


def build_wsgi_environ(scope: Scope, body: IO[bytes]) -> "WSGIEnvironment":
    """Return the environment that PEP 3333 describes for a request."""
    length = body.seek(0, os.SEEK_END)
    body.seek(0)
    host, _, port = scope.server.rpartition(":")
    environ: WSGIEnvironment = {
        "REQUEST_METHOD": scope.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": scope.path.encode().decode("latin-1"),
        "QUERY_STRING": scope.query_string,
        "SERVER_NAME": host,
        "SERVER_PORT": port,
        "SERVER_PROTOCOL": f"HTTP/{scope.http_version}",
        "REMOTE_ADDR": scope.client.rpartition(":")[0],
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope.scheme,
        "wsgi.input": body,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    for name, value in scope.headers.items():
        if "_" in name:
            # In WSGI, `X_Name` and `X-Name` have the same key. A proxy may have checked only the
            # second one, so the first one is ignored.
            continue
        key = f"HTTP_{name.upper().replace('-', '_')}"
        if key in environ:
            value = f"{environ[key]}{'; ' if name == 'cookie' else ','}{value}"
        environ[key] = value
    # A chunked body is complete now and has a known length.
    environ.pop("HTTP_TRANSFER_ENCODING", None)
    environ["CONTENT_TYPE"] = environ.pop("HTTP_CONTENT_TYPE", "")
    environ["CONTENT_LENGTH"] = str(length)
    environ.pop("HTTP_CONTENT_LENGTH", None)
    return environ


async def read_body(scope: Scope, protocol: HTTPProtocol) -> IO[bytes]:
    """Read a request's body to its end.

    Raises `BodyRefused` for one that is too large or too slow, and `BodyIncomplete` or granian's
    `ProtocolClosed` if the client leaves.
    """
    headers = scope.headers
    is_chunked = "transfer-encoding" in headers
    if not is_chunked and "content-length" not in headers:
        return BytesIO()
    limit = get_max_body_bytes(scope)
    length = int(headers.get("content-length") or 0)
    if not is_chunked and length <= min(limit, MAX_BYTES_IN_MEMORY):
        return await read_small_body(protocol, length)
    if length > limit and "expect" in headers:
        raise build_too_large_error(limit)  # a client that asks first has sent nothing yet
    body = SpooledTemporaryFile(MAX_BYTES_IN_MEMORY)
    size, now = 0, asyncio.get_running_loop().time
    started = now()
    try:
        async with asyncio.timeout(BODY_TIMEOUT_SECONDS) as deadline:
            async for chunk in protocol:
                size += len(chunk)
                deadline.reschedule(started + BODY_TIMEOUT_SECONDS + size / MIN_BYTES_PER_SECOND)
                if size <= limit:
                    body.write(chunk)
                elif size > MAX_DISCARDED_BYTES:
                    break
    except TimeoutError:
        body.close()
        raise build_timeout_error() from None
    except BaseException:
        body.close()
        raise
    if size > limit:
        body.close()
        raise build_too_large_error(limit)
    if size < length:  # Granian ends the iteration when the connection is closed
        body.close()
        raise BodyIncomplete
    return body


async def read_small_body(protocol: HTTPProtocol, length: int) -> IO[bytes]:
    """Read a body of a known, small length, and raise the exceptions of `read_body`.

    Reading chunks, as `read_body` does, wakes the event loop at least twice for each body.
    """
    try:
        async with asyncio.timeout(BODY_TIMEOUT_SECONDS + length / MIN_BYTES_PER_SECOND):
            data = await protocol()
    except TimeoutError:
        raise build_timeout_error() from None
    if len(data) < length:
        raise BodyIncomplete
    return BytesIO(data)


def get_max_body_bytes(scope: Scope) -> int:
    """Return how many bytes the body of this request may have."""
    largest = conf.app_settings().MAX_BODY_BYTES
    if "authorization" in scope.headers or "cookie" in scope.headers:
        return largest
    return min(largest, MAX_ANONYMOUS_BODY_BYTES)


def build_too_large_error(limit: int) -> BodyRefused:
    """Return the error for a body beyond the limit."""
    return BodyRefused(413, f"The request body is larger than {limit} bytes")


def build_timeout_error() -> BodyRefused:
    """Return the error for a body that arrives too slowly."""
    return BodyRefused(408, "The request body did not arrive in time")


def send_refusal(protocol: HTTPProtocol, refusal: BodyRefused) -> None:
    """Answer with a JSON error and close the connection, as the rest of the body is unread."""
    headers = [("Content-Type", "application/json"), ("Cache-Control", "no-store")]
    headers.append(("Connection", "close"))
    protocol.response_bytes(refusal.status, headers, orjson.dumps({"error": str(refusal)}))


application = Application()
