"""The JSON renderer of the memory API."""

from contextlib import suppress
from typing import Any

import orjson
from rest_framework.renderers import BaseRenderer
from rest_framework.utils.encoders import JSONEncoder

from mastra_memory.db import json_text
from mastra_memory.exceptions import InvalidInput

MAX_INDENTED_BYTES = 200_000
"""Larger responses are not indented in the browsable API: indentation can multiply their size."""


class JsonRenderer(BaseRenderer):
    """Render JSON with orjson, which inserts stored JSON (`orjson.Fragment`) without parsing it."""

    media_type = "application/json"
    format = "json"
    charset = None

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None
    ) -> bytes:
        """Return the JSON text; the browsable API asks for indented text."""
        if data is None:
            return b""
        # A handler of exceptions that the host project names may return lazy texts.
        body = orjson.dumps(data, default=JSONEncoder().default)
        indent = renderer_context and renderer_context.get("indent")
        if indent and len(body) <= MAX_INDENTED_BYTES:
            # A stored value may have the maximum depth. Inside the response it then exceeds the
            # limit of the parser, and the text is not indented.
            with suppress(InvalidInput, orjson.JSONEncodeError):
                return orjson.dumps(json_text.loads(body), option=orjson.OPT_INDENT_2)
        return body
