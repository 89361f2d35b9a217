"""The base of all viewsets of the memory API."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import cached_property
from typing import Any, ClassVar

import orjson
from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from rest_framework.exceptions import NotFound
from rest_framework.filters import BaseFilterBackend
from rest_framework.permissions import IsAuthenticated
from rest_framework.renderers import BrowsableAPIRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.versioning import NamespaceVersioning
from rest_framework.viewsets import GenericViewSet

from mastra_memory import conf
from mastra_memory.api import errors, rest_settings
from mastra_memory.api.openapi import MemoryAutoSchema
from mastra_memory.api.pagination import PageNumberPagination
from mastra_memory.api.parsers import ContentNegotiation, JsonParser, parse_chunked_body
from mastra_memory.api.permissions import HasResource
from mastra_memory.api.renderers import JsonRenderer
from mastra_memory.api.serializers.query_strings import QuerySerializer
from mastra_memory.api.serializers.request_base import RequestSerializer
from mastra_memory.db import json_text, statement_timeout
from mastra_memory.db.sql import MAX_PAGE
from mastra_memory.exceptions import AgentNotFound, MemoryNotConfigured, ThreadNotFound
from mastra_memory.memory import Memory
from mastra_memory.memory.callers import Caller, get_caller
from mastra_memory.models import Thread
from mastra_memory.types import StoredThread

MIN_STREAMED_BYTES = 1024 * 1024
"""Lists that are larger than this are sent in parts."""

ITEMS_PER_PART = 100
"""The number of list items in one part of a streamed response."""

JSON_HEADERS = {"Content-Type": JsonRenderer.media_type, "Vary": "Accept", **errors.NO_STORE}


class JsonBytesResponse(HttpResponse):
    """A response of JSON text."""

    @property
    def data(self) -> Any:
        """The parsed text, for tests: REST framework's responses have such an attribute."""
        return json_text.loads(self.content)


class JsonStreamingResponse(StreamingHttpResponse):
    """A response of JSON text that is sent in parts."""

    @property
    def data(self) -> Any:
        """The parsed text, for tests. The content can be read again afterwards."""
        content = self.getvalue()
        self.streaming_content = [content]
        return json_text.loads(content)


class MemoryViewSet(GenericViewSet[Any]):
    """The base class: statement timeouts, the caller, validation, and JSON responses.

    Authentication, throttling and versioning are those of the host project, and its permission
    classes apply in addition to ours; see `rest_settings`. Exceptions are handled by
    `errors.handle_exception`, unless `MASTRA_MEMORY` names another handler.
    """

    permission_classes = (IsAuthenticated, HasResource)
    parser_classes = (JsonParser,)
    renderer_classes = (JsonRenderer,)
    content_negotiation_class = ContentNegotiation
    filter_backends: Sequence[type[BaseFilterBackend]] = ()
    pagination_class: type[PageNumberPagination] | None = None
    schema = MemoryAutoSchema()
    queryset = Thread.objects.all()
    lookup_field = "pk"
    lookup_url_kwarg = "thread_id"
    lookup_value_converter: ClassVar[str] = "mastra_thread_id"

    _limits: ExitStack
    _url_kwargs: dict[str, Any] | None = None

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        """Handle a request, and reset the statement timeout afterwards.

        The prefix that the host project has chosen may contain parameters, such as a version or a
        tenant. The methods of our views do not get them; `self.kwargs` has them.
        """
        self._url_kwargs = kwargs
        name = self.lookup_url_kwarg
        own_kwargs = {name: kwargs[name]} if name in kwargs else {}
        with ExitStack() as self._limits:
            response = super().dispatch(request, *args, **own_kwargs)
        if isinstance(response, Response):
            response.add_post_render_callback(self._release_request)
        else:
            self._release_request(response)
        return response

    def _release_request(self, response: Any) -> None:
        """Break the reference cycles of this view and of REST framework's request and response.

        They would keep a body of 20 MB and its answer in memory until the next full garbage
        collection, which may be many requests later. A view serves one request only.
        """
        self.request.parser_context.clear()
        vars(self).clear()
        context = getattr(response, "renderer_context", None)
        if context is not None:  # a Response of REST framework
            context.clear()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Set the statement timeout, then authenticate the request and check permissions."""
        # Not in `dispatch`: if the database is unreachable, this raises an exception, and the
        # exception handler covers only what runs here or later.
        seconds = conf.app_settings().STATEMENT_TIMEOUT_API
        self._limits.enter_context(statement_timeout.limit_statements(seconds))
        super().initial(request, *args, **kwargs)

    def initialize_request(self, request: Any, *args: Any, **kwargs: Any) -> Request:
        """Return REST framework's request, and keep all keyword arguments of the URL."""
        if self._url_kwargs is not None:  # None while a schema is generated
            self.kwargs = self._url_kwargs
        return super().initialize_request(request, *args, **kwargs)

    def get_authenticators(self) -> list[Any]:
        """Return the authenticators of the host project."""
        return [kind() for kind in rest_settings.list_classes("DEFAULT_AUTHENTICATION_CLASSES")]

    def get_permissions(self) -> list[Any]:
        """Return our permissions, then those of the host project."""
        classes = [
            *self.permission_classes,
            *rest_settings.list_classes("DEFAULT_PERMISSION_CLASSES"),
        ]
        return [kind() for kind in dict.fromkeys(classes)]

    def get_throttles(self) -> list[Any]:
        """Return the throttles of the host project."""
        return [kind() for kind in rest_settings.list_classes("DEFAULT_THROTTLE_CLASSES")]

    def get_renderers(self) -> list[Any]:
        """Return the renderer of JSON, and the browsable API if the host project has it."""
        classes = rest_settings.list_classes("DEFAULT_RENDERER_CLASSES")
        browsable = [kind for kind in classes if issubclass(kind, BrowsableAPIRenderer)]
        return [JsonRenderer(), *(kind() for kind in browsable[:1])]

    def determine_version(self, request: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Return the version of the API that is requested, and the scheme of the host project.

        With `NamespaceVersioning`, the default version is used if the routes were included without
        the namespace of a version.
        """
        scheme_class = rest_settings.get_setting("DEFAULT_VERSIONING_CLASS")
        if scheme_class is None:
            return None, None
        scheme = scheme_class()
        try:
            return scheme.determine_version(request, *args, **{**kwargs, **self.kwargs}), scheme
        except NotFound:
            if not isinstance(scheme, NamespaceVersioning):
                raise
            return scheme.default_version, scheme

    @cached_property
    def caller(self) -> Caller:
        """The caller of this request."""
        return get_caller(self.request)

    @property
    def default_response_headers(self) -> dict[str, str]:
        """No headers: `finalize_response` adds them, when the type of the response is known."""
        return {}

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Add the headers that are missing.

        Errors are always JSON, also in a browser, so that clients can rely on the content type.
        """
        if not isinstance(response, Response):
            return response  # made by `respond`, with all headers
        self.headers = super().default_response_headers | errors.NO_STORE
        if response.exception:
            request.accepted_renderer = JsonRenderer()
            request.accepted_media_type = JsonRenderer.media_type
        return super().finalize_response(request, response, *args, **kwargs)

    def get_exception_handler(self) -> Callable[..., Response | None]:
        """Return the function that converts exceptions into responses."""
        handler: Callable[..., Response | None] = rest_settings.get_exception_handler(
            errors.handle_exception
        )
        return handler

    def http_method_not_allowed(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        """Return 404 if the path matched a thread only because ids may contain slashes."""
        if "/" in kwargs.get(self.lookup_url_kwarg, ""):
            raise ThreadNotFound("Not found")
        return super().http_method_not_allowed(request, *args, **kwargs)

    @property
    def max_page_size(self) -> int:
        """The largest number of items that this caller may request at once."""
        return conf.app_settings().MAX_PER_PAGE if self.caller.is_scoped else MAX_PAGE

    def validate_query(self, serializer_class: type[QuerySerializer]) -> dict[str, Any]:
        """Return the validated query parameters of the request."""
        return serializer_class.validate_data(self.request.query_params)

    def validate_body(self, serializer_class: type[RequestSerializer]) -> dict[str, Any]:
        """Return the validated body of the request."""
        meta = self.request.META
        if meta.get("HTTP_TRANSFER_ENCODING") and not meta.get("CONTENT_LENGTH"):
            self.content_negotiation_class().select_parser(self.request, self.get_parsers())
            return serializer_class.validate_data(parse_chunked_body(self.request))
        return serializer_class.validate_data(self.request.data)

    def get_read_memory(self, agent_id: str | None) -> tuple[Memory, bool]:
        """Return a `Memory` for reading, and whether it has the options of the agent.

        If there is no agent, or the agent has no memory, default options are used.
        """
        if agent_id is None:
            return Memory(), False
        try:
            return Memory(agent_id), True
        except (AgentNotFound, MemoryNotConfigured):
            return Memory(), False

    def get_thread(self, memory: Memory, thread_id: str, resource_id: str | None) -> StoredThread:
        """Return a thread that the caller may access, and that belongs to `resource_id` if given.

        Raises:
            ThreadNotFound: The thread does not exist.
            AccessDenied: The thread belongs to another resource.
        """
        return self.caller.check_owner(memory.get_thread(thread_id), resource_id)

    def respond(self, data: Any) -> HttpResponseBase:
        """Return a response with status 200 and `data` as JSON.

        Except for the browsable API, this is a plain `HttpResponse`. Rendering REST framework's
        `Response` would take a tenth of the time of a short request.
        """
        if isinstance(self.request.accepted_renderer, JsonRenderer):
            return JsonBytesResponse(orjson.dumps(data), headers=JSON_HEADERS)
        return Response(data)

    def get_paginated_response(self, data: Any) -> Any:
        """Return a response with the serialized items of a page."""
        paginator: Any = self.paginator
        return self.respond(paginator.get_paginated_data(data))

    def paginate_queryset(self, queryset: Any) -> Any:
        """Return the items of the requested page; see `PageNumberPagination`."""
        return super().paginate_queryset(queryset)

    def respond_with_list(
        self, data: dict[str, Any], name: str, items: list[bytes]
    ) -> HttpResponseBase:
        """Return a response with `data` and, under `name`, a list of serialized JSON.

        A large list is streamed, and items are removed after they were sent, to save memory.
        """
        is_json = isinstance(self.request.accepted_renderer, JsonRenderer)
        if is_json and sum(map(len, items)) > MIN_STREAMED_BYTES:
            return JsonStreamingResponse(
                _stream_list(orjson.dumps(data), name, items),
                headers=JSON_HEADERS,
            )
        return self.respond({**data, name: [orjson.Fragment(item) for item in items]})


def _stream_list(data: bytes, name: str, items: list[bytes]) -> Iterator[bytes]:
    yield data[:-1] + b',"%b":[' % name.encode()
    items.reverse()  # `pop` takes from the end
    while items:
        count = min(ITEMS_PER_PART, len(items))
        part = b",".join([items.pop() for _ in range(count)])
        yield part + b"," if items else part
    yield b"]}"
