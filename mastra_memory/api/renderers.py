"""The JSON renderer of the memory API."""

from contextlib import suppress
from typing import Any

import orjson
from rest_framework.renderers import BaseRenderer

from mastra_memory.db import json_text
from mastra_memory.exceptions import InvalidInput

MAX_INDENTED_BYTES = 200_000
"""Answers up to this size are indented for the browsable API; indentation can multiply it."""


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
        body = orjson.dumps(data)
        indent = renderer_context and renderer_context.get("indent")
        if indent and len(body) <= MAX_INDENTED_BYTES:
            # A value may be nested as deeply as can be stored. Inside the answer it is deeper
            # than the parser allows; then the text stays on one line.
            with suppress(InvalidInput, orjson.JSONEncodeError):
                return orjson.dumps(json_text.loads(body), option=orjson.OPT_INDENT_2)
        return body
