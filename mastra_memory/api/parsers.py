"""Read and parse request bodies: size limits, chunked bodies and content types."""

from typing import Any

from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from mastra_memory import conf
from mastra_memory.db import json_text
from mastra_memory.exceptions import BodyTooLarge, InvalidInput, Issue

MAX_DISCARDED_BYTES = 256 * 1024 * 1024
"""The maximum number of bytes that are read from a rejected body before the response is sent."""


class JsonParser(BaseParser):
    """Parse JSON bodies up to `MAX_BODY_BYTES` and `MAX_BODY_VALUES`."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        """Return the parsed body.

        Raises:
            BodyTooLarge: The body exceeds one of the limits.
            InvalidInput: The body is not valid JSON.
        """
        return _read_json(stream, int(stream.META.get("CONTENT_LENGTH") or 0))


def _read_json(stream: Any, content_length: int = 0) -> Any:
    limit = conf.app_settings().MAX_BODY_BYTES
    if content_length <= limit:
        data = stream.read(limit + 1)
        if len(data) <= limit:
            return _parse_json(data)
    discard_body(stream)
    raise BodyTooLarge(f"The request body is larger than {limit} bytes")


def _parse_json(data: bytes) -> Any:
    max_values = conf.app_settings().MAX_BODY_VALUES
    if json_text.has_more_values(data, max_values):
        raise BodyTooLarge(f"The request body holds more than {max_values} JSON names and values")
    try:
        return json_text.loads(data)
    except InvalidInput as error:
        raise InvalidInput(f"Invalid request body: {error}", error.issues) from None


def discard_body(stream: Any) -> None:
    """Read the rest of a body and ignore it.

    Many clients do not read the response before they have sent the whole body.
    """
    remaining = MAX_DISCARDED_BYTES
    while remaining > 0 and (data := stream.read(64 * 1024)):
        remaining -= len(data)


def parse_chunked_body(request: Request) -> Any:
    """Return the parsed body of a request that was sent in chunks.

    REST framework treats a request without `Content-Length` as one without a body, and Django
    limits the stream of such a request to 0 bytes. Therefore `wsgi.input` is read directly.

    Raises:
        BodyTooLarge: The body exceeds one of the limits.
        InvalidInput: The body is not valid JSON.
    """
    stream = getattr(request, "environ", {}).get("wsgi.input", request)
    return _read_json(stream)


class ContentNegotiation(BaseContentNegotiation):
    """Return the browsable API to browsers and JSON to other clients. Accept only JSON bodies."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        """Return the parser of JSON.

        Raises:
            UnsupportedMediaType: The body is compressed.
            InvalidInput: The content type is not JSON.
        """
        coding = request.META.get("HTTP_CONTENT_ENCODING", "identity")
        if coding.strip().lower() != "identity":
            reason = f"The body may not be compressed: send it without Content-Encoding: {coding}"
            raise UnsupportedMediaType("", detail=reason)
        media_type = (request.content_type or "").partition(";")[0].strip().lower()
        if media_type == JsonParser.media_type:
            return parsers[0]
        reason = "send JSON, with the header Content-Type: application/json"
        raise InvalidInput(f"Invalid request body: {reason}", [Issue("root", reason)])

    def select_renderer(self, request: Request, renderers: Any, format_suffix: Any = None) -> Any:
        """Return the browsable renderer if HTML is accepted, else the JSON renderer."""
        accepts_html = "text/html" in request.META.get("HTTP_ACCEPT", "")
        renderer = renderers[-1 if accepts_html else 0]
        return renderer, renderer.media_type
