"""Read what users send in paths, query strings and forms."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, QueryDict

from mastra_memory.db import json_text

MAX_INTEGER = 2**63 - 1
"""The largest value of a `bigint` column."""

_INTEGER = re.compile(r"[0-9]{1,19}")


def read_integer(text: str | None, *, maximum: int = MAX_INTEGER) -> int | None:
    """Return the whole number, or None for anything else and for one beyond `maximum`.

    Only ASCII digits count. `str.isdigit()` accepts `²`, which `int()` refuses, and `int()`
    refuses more than 4,300 digits.
    """
    if text is None or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if number <= maximum else None


def clean_request(request: HttpRequest) -> None:
    """Replace characters that PostgreSQL cannot store in query string and form by U+FFFD."""
    if cleaned := _clean_values(request.GET):
        request.GET = QueryDict(cleaned)
    if request.method == "POST" and (cleaned := _clean_values(request.POST)):
        request.POST = QueryDict(cleaned)


def _clean_values(values: QueryDict) -> str:
    """Return the parameters with storable names and values, empty if they are storable."""
    given = [(name, str(value)) for name, listed in values.lists() for value in listed]
    cleaned = [(json_text.clean_text(name), json_text.clean_text(value)) for name, value in given]
    return urlencode(cleaned) if cleaned != given else ""


def clean_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a path with storable texts."""
    return {
        name: json_text.clean_text(value) if isinstance(value, str) else value
        for name, value in arguments.items()
    }
