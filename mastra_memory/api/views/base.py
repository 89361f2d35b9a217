"""What every viewset of the memory API shares: JSON in and out, the caller, the agent."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from io import BytesIO
from typing import Any, ClassVar

import orjson
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.utils.functional import cached_property
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.permissions import IsAuthenticated
from rest_framework.renderers import BaseRenderer, BrowsableAPIRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from mastra_memory import conf
from mastra_memory.api import errors
from mastra_memory.api.openapi import MemoryAutoSchema
from mastra_memory.api.permissions import HasResource
from mastra_memory.api.query_parameters import Params
from mastra_memory.db import json_text, statement_timeout
from mastra_memory.db.sql import MAX_PAGE
from mastra_memory.exceptions import (
    AgentNotFound,
    BodyTooLarge,
    InvalidInput,
    Issue,
    MemoryNotConfigured,
    ThreadNotFound,
)
from mastra_memory.memory import Memory
from mastra_memory.memory.callers import Caller, get_caller
from mastra_memory.types import StoredThread

MIN_STREAMED_BYTES = 1024 * 1024
"""Lists beyond so many bytes are sent piece by piece."""

MAX_INDENTED_BYTES = 200_000
"""The browsable page indents answers up to this size; indentation can multiply their length."""

MAX_DISCARDED_BYTES = 256 * 1024 * 1024
"""Of a body that is too large, so many bytes are read and dropped before the answer."""


class JsonRenderer(BaseRenderer):
    """JSON by orjson; a stored document inside is passed through as it is."""

    media_type = "application/json"
    format = "json"
    charset = None

    def render(self, data: Any, media_type: str | None = None, context: Any = None) -> bytes:
        if data is None:
            return b""
        body = orjson.dumps(data)
        if context and context.get("indent") and len(body) <= MAX_INDENTED_BYTES:
            # A value may be as deep as can be stored, and is then in a list or an object.
            with suppress(InvalidInput, orjson.JSONEncodeError):
                return orjson.dumps(json_text.loads(body), option=orjson.OPT_INDENT_2)
        return body


class JsonParser(BaseParser):
    """Parse JSON up to `MAX_BODY_BYTES` and `MAX_BODY_VALUES`, cleaned by `jsontext.loads`."""

    media_type = "application/json"

    def parse(self, stream: Any, *_: Any) -> Any:
        limit = conf.app_settings().MAX_BODY_BYTES
        if int(stream.META.get("CONTENT_LENGTH") or 0) <= limit:
            data = stream.read(limit + 1)
            if len(data) <= limit:
                return _parse(data)
        discard_body(stream)
        raise BodyTooLarge(f"The request body is larger than {limit} bytes")


def _parse(data: bytes) -> Any:
    most = conf.app_settings().MAX_BODY_VALUES
    if json_text.has_more_values(data, most):
        raise BodyTooLarge(f"The request body holds more than {most} JSON names and values")
    try:
        return json_text.loads(data)
    except InvalidInput as error:
        raise InvalidInput(f"Invalid request body: {error}", error.issues) from None


_HEADERS = {"Content-Type": JsonRenderer.media_type, "Vary": "Accept", **errors.NO_STORE}


class Negotiation(BaseContentNegotiation):
    """JSON for programs, the browsable page for a browser; a `format` parameter means nothing."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        coding = request.META.get("HTTP_CONTENT_ENCODING", "identity")
        if coding.strip().lower() != "identity":
            reason = f"The body may not be compressed: send it without Content-Encoding: {coding}"
            raise UnsupportedMediaType("", detail=reason)
        kind = (request.content_type or "").partition(";")[0].strip().lower()
        if kind == JsonParser.media_type:
            return parsers[0]
        reason = "send JSON, with the header Content-Type: application/json"
        raise InvalidInput(f"Invalid request body: {reason}", [Issue("root", reason)])

    def select_renderer(self, request: Request, renderers: Any, format_suffix: Any = None) -> Any:
        chosen = renderers[-1 if "text/html" in request.META.get("HTTP_ACCEPT", "") else 0]
        return chosen, chosen.media_type


class MemoryViewSet(ViewSet):
    """The base of all viewsets. Only for authenticated callers; whose resource, `Caller` knows."""

    permission_classes = (IsAuthenticated, HasResource)
    parser_classes = (JsonParser,)
    renderer_classes = (JsonRenderer, BrowsableAPIRenderer)
    content_negotiation_class = Negotiation
    schema = MemoryAutoSchema()

    _limits: ExitStack
    params: Params

    thread_kwarg: ClassVar[str] = "thread_id"

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        with ExitStack() as self._limits:
            return super().dispatch(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        # Entered here and not in `dispatch`, so that a database which cannot be reached is
        # answered by the exception handler.
        seconds = conf.app_settings().STATEMENT_TIMEOUT_API
        self._limits.enter_context(statement_timeout.limit_statements(seconds))
        super().initial(request, *args, **kwargs)
        self.params = Params(request.query_params)
        if request.META.get("HTTP_TRANSFER_ENCODING") and not request.META.get("CONTENT_LENGTH"):
            buffer_chunked_body(request._request)  # not before it is known who sends it

    @cached_property
    def caller(self) -> Caller:
        """The caller of this request."""
        return get_caller(self.request)

    @property
    def default_response_headers(self) -> dict[str, str]:
        return {}  # `finalize_response` asks for them where they are wanted

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(response, Response):  # made by `answer`, complete
            return response
        self.headers = super().default_response_headers | errors.NO_STORE
        if response.exception:  # in JSON also for a browser: whoever reads it can rely on the type
            request.accepted_renderer = JsonRenderer()
            request.accepted_media_type = JsonRenderer.media_type
        return super().finalize_response(request, response, *args, **kwargs)

    def get_exception_handler(self) -> Callable[..., Response | None]:
        return errors.handle_exception

    def http_method_not_allowed(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        # With a slash in it the id was a guess: there is no such path.
        if "/" in kwargs.get(self.thread_kwarg, ""):
            raise ThreadNotFound("Not found")
        return super().http_method_not_allowed(request, *args, **kwargs)

    def answer(self, data: Any) -> HttpResponseBase:
        """A 200 with this JSON, straight to the bytes unless a browser wants a page."""
        if isinstance(self.request.accepted_renderer, JsonRenderer):
            return HttpResponse(orjson.dumps(data), headers=_HEADERS)
        return Response(data)

    def answer_with_list(self, data: dict[str, Any], name: str, items: list[bytes]) -> Any:
        """A 200 with this JSON and a list of JSON texts, which is used up.

        A large one is sent piece by piece, so that it is held in memory only once.
        """
        plain = isinstance(self.request.accepted_renderer, JsonRenderer)
        if plain and sum(map(len, items)) > MIN_STREAMED_BYTES:
            pieces = _pieces(orjson.dumps(data), name, items)
            return StreamingHttpResponse(pieces, headers=_HEADERS)
        return self.answer({**data, name: [orjson.Fragment(item) for item in items]})

    def memory(self) -> Memory:
        """The memory of the agent named by `agentId`, which a write needs.

        Raises `InvalidInput` without it, `AgentNotFound`, `MemoryNotConfigured`.
        """
        return Memory(self.params.required("agentId"))

    def reading_memory(self) -> tuple[Memory, bool]:
        """The agent's memory, and whether there is one; else the storage alone, for reading."""
        agent_id = self.params.text("agentId")
        if agent_id is None:
            return Memory(), False
        try:
            return Memory(agent_id), True
        except (AgentNotFound, MemoryNotConfigured):
            return Memory(), False

    def thread(self, memory: Memory, thread_id: str, named: str | None) -> StoredThread:
        """A thread that the caller may touch. Raises `ThreadNotFound` and `AccessDenied`."""
        return self.caller.check_owner(memory.get_thread(thread_id), named)

    def per_page(self, default: int) -> int:
        """The page size asked for; capped for scoped callers."""
        return min(self.params.whole("perPage", default), self.largest_page())

    def largest_page(self) -> int:
        """How many rows this caller may ask for at once; scoped callers have a limit."""
        return conf.app_settings().MAX_PER_PAGE if self.caller.is_scoped else MAX_PAGE


def discard_body(stream: Any) -> None:
    """Read what a client still sends: one that is cut off while sending sees no answer."""
    left = MAX_DISCARDED_BYTES
    while left > 0 and (piece := stream.read(64 * 1024)):
        left -= len(piece)


def buffer_chunked_body(request: HttpRequest) -> None:
    """Read a body that was sent in pieces: without a length it would be taken for none."""
    source = getattr(request, "environ", {}).get("wsgi.input", request)
    limit = conf.app_settings().MAX_BODY_BYTES
    data = source.read(limit + 1)
    if len(data) > limit:
        discard_body(source)
    vars(request).update(_stream=BytesIO(data), _read_started=False)
    request.META["CONTENT_LENGTH"] = str(len(data))


def _pieces(data: bytes, name: str, items: list[bytes]) -> Iterator[bytes]:
    yield data[:-1] + b',"%b":[' % name.encode()
    items.reverse()
    while items:
        some = b",".join([items.pop() for _ in range(min(100, len(items)))])
        yield some + b"," if items else some
    yield b"]}"
