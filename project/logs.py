"""Keep out of the log what users have sent: texts, ids, values of rows.

Logs are kept longer than conversations, and are read by more people. A record still names
the route, task or statement that failed, the place in the code, and the kind of error.
"""

import logging
import re
import traceback
from types import TracebackType
from typing import Any

from django.urls import Resolver404, resolve

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None]


class RequestContentFilter(logging.Filter):
    """Replace what a request or a task contains in records of Django and Celery."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the record; every record passes."""
        if record.name == "asyncio":
            _drop_asyncio_details(record)
        if 400 <= getattr(record, "status_code", 0) < 500:
            record.exc_info = None  # a refused request is one line, not a traceback
            record.exc_text = None
        if (request := getattr(record, "request", None)) is not None and record.args:
            _replace_path(record, request)
        if isinstance(record.args, dict) and "exc" in record.args:
            _replace_task_error(record)
        return True


class ContentFreeFormatter(logging.Formatter):
    """Format tracebacks with the types of the exceptions, without their messages.

    Messages hold values: PostgreSQL quotes the row that it refuses, a parser the text. The
    SQLSTATE and the names of constraint, table and column are enough to find a failing statement.
    """

    def formatException(self, ei: Any) -> str:  # noqa: N802 (overrides the standard library)
        """Return the traceback of an exception and of those that led to it."""
        return "\n".join(_format_chain(ei[1], seen=set()))


def describe_error(error: BaseException) -> str:
    """Return the type of an exception and the facts that PostgreSQL gives, without values."""
    kind = type(error)
    text = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    diag = getattr(error, "diag", None) or getattr(error.__cause__, "diag", None)
    names = ("sqlstate", "constraint_name", "table_name", "column_name")
    facts = [f"{name}={getattr(diag, name)}" for name in names if getattr(diag, name, None)]
    return f"{text} ({', '.join(facts)})" if facts else text


def _format_chain(error: BaseException, seen: set[int]) -> list[str]:
    lines: list[str] = []
    seen.add(id(error))
    earlier = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if earlier is not None and id(earlier) not in seen:
        lines += [*_format_chain(earlier, seen), "", "Then:", ""]
    lines.append("Traceback (most recent call last):")
    lines += [line.rstrip("\n") for line in traceback.format_tb(error.__traceback__)]
    lines.append(describe_error(error))
    return lines


def _drop_asyncio_details(record: logging.LogRecord) -> None:
    """Keep only the kind of failure: asyncio appends the repr of arguments and exceptions."""
    first_line = record.getMessage().partition("\n")[0]
    record.msg, record.args = re.sub(r"(callback|Executing) .*", r"\1", first_line), ()


def _replace_path(record: logging.LogRecord, request: Any) -> None:
    """Show the route in place of the path, which holds ids of threads and users."""
    path = str(getattr(request, "path", ""))
    escaped = path.encode("unicode_escape").decode("ascii")  # as Django logs it
    if isinstance(record.args, tuple):
        record.args = tuple(
            _describe_route(request) if arg in (path, escaped) else arg for arg in record.args
        )


def _describe_route(request: Any) -> str:
    match = getattr(request, "resolver_match", None)
    if match is None:
        try:
            match = resolve(request.path_info)
        except Resolver404:
            return "an unknown path"
    return f"/{match.route}"


def _replace_task_error(record: logging.LogRecord) -> None:
    """Remove the arguments and the exception's text from Celery's record of a failed task."""
    error = record.exc_info[1] if record.exc_info else None
    kind = describe_error(error) if error else str(record.args["exc"]).partition("(")[0]  # type: ignore
    hidden = {"exc": kind, "traceback": "", "args": "", "kwargs": "", "return_value": ""}
    record.args = {**record.args, **hidden}  # type: ignore[dict-item]
