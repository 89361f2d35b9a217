"""Read what users send in paths, query strings and forms."""

import re
from collections.abc import Mapping
from datetime import date
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, QueryDict
from django.utils.dateparse import parse_date, parse_datetime

from mastra_memory.db import json_text

MAX_INTEGER = 2**63 - 1
"""The largest value of a `bigint` column."""

FIRST_DAY, LAST_DAY = date(1900, 1, 1), date(9998, 12, 31)
"""Accepted days. Days at the ends of the calendar overflow in some time zones."""

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


def is_day_out_of_range(text: str) -> bool:
    """Return True for a date, with or without a time, that lies outside the accepted days."""
    try:
        moment = parse_datetime(text)
        day = moment.date() if moment else parse_date(text)
    except ValueError:
        return False  # Not a date: Django reports it.
    return day is not None and not FIRST_DAY <= day <= LAST_DAY


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
