"""Error responses: one table from exceptions to statuses, and one JSON format for all."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from django.core.exceptions import PermissionDenied, TooManyFieldsSent
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, JsonResponse, UnreadablePostError
from django.views.decorators.csrf import csrf_exempt
from rest_framework import exceptions as drf
from rest_framework.response import Response
from rest_framework.views import set_rollback

from mastra_memory import exceptions as ours
from mastra_memory.api import database_errors
from mastra_memory.db.statement_timeout import is_statement_timeout
from mastra_memory.exceptions import MAX_ISSUES, Issue

# Sent without Retry-After, since the same request would take as long again.
STATEMENT_TIMEOUT_MESSAGE = (
    "The database took too long, and the request was cancelled. Request less data: use a smaller "
    "page, a narrower filter or a shorter query."
)

NO_STORE = {"Cache-Control": "no-store"}
"""Sent with every response: browsers and proxies must not cache conversations."""

RETRY_AFTER_SECONDS = 5
"""The value of `Retry-After` in responses with status 503."""

STATUSES: dict[type[Exception], int] = {
    ours.InvalidInput: 400,
    ours.MemoryNotConfigured: 400,
    ours.FeatureDisabled: 400,
    TooManyFieldsSent: 400,
    UnreadablePostError: 400,
    ours.AccessDenied: 403,
    PermissionDenied: 403,
    ours.ThreadNotFound: 404,
    ours.AgentNotFound: 404,
    Http404: 404,
    ours.Conflict: 409,
    ours.StaleData: 409,
    ours.ClaimLost: 409,
    ours.BodyTooLarge: 413,
    ours.ProviderRefused: 502,
    ours.ProviderUnavailable: 503,
    ours.EmbedderMismatch: 503,
    ours.ConcurrentUpdate: 503,
    OperationalError: 503,
    InterfaceError: 503,
}
_MESSAGES = {
    TooManyFieldsSent: "Too many query parameters",
    Http404: "Not found",
    UnreadablePostError: "The request body ended before its announced length",
}


def handle_exception(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """Return the response to an exception: `{"error": text}`, for invalid input with `issues`.

    REST framework calls this for every exception of a view. None means that the exception is
    unexpected; Django then answers with status 500.
    """
    if isinstance(error, drf.APIException):
        set_rollback()
        return _framework_response(error)
    if is_statement_timeout(error):
        set_rollback()
        return Response({"error": STATEMENT_TIMEOUT_MESSAGE}, status=503)
    if isinstance(error, OperationalError | InterfaceError | ours.ConcurrentUpdate):
        set_rollback()
        text, seconds = database_errors.describe_database_error(error)
        return Response({"error": text}, status=503, headers={"Retry-After": str(seconds)})
    for kind, status in STATUSES.items():
        if isinstance(error, kind):
            set_rollback()
            body: dict[str, Any] = {"error": _MESSAGES.get(kind) or str(error) or "Access denied"}
            if isinstance(error, ours.InvalidInput) and error.issues:
                body["issues"] = _issue_list(error.issues)
            headers = {"Retry-After": str(RETRY_AFTER_SECONDS)} if status == 503 else {}
            return Response(body, status=status, headers=headers)
    return None


def _framework_response(error: drf.APIException) -> Response:
    challenge, wait = getattr(error, "auth_header", None), getattr(error, "wait", None)
    headers = {"WWW-Authenticate": challenge} if challenge else {}
    if wait:
        headers["Retry-After"] = str(int(wait))
    detail = error.detail
    text = detail if isinstance(detail, str) else "Invalid request"
    body: dict[str, Any] = {"error": str(text)}
    if isinstance(error, drf.ValidationError):
        body["issues"] = _issue_list(flatten_errors(error.detail))
    return Response(body, status=error.status_code, headers=headers)


def _issue_list(issues: Iterable[Issue]) -> list[dict[str, str]]:
    return [
        {"field": issue.field, "message": issue.message} for issue in islice(issues, MAX_ISSUES)
    ]


@csrf_exempt
def not_found(request: HttpRequest, **kwargs: Any) -> JsonResponse:
    """Answer 404 for a path without a route. Authentication is not needed."""
    return JsonResponse({"error": "Not found"}, status=404, headers=NO_STORE)


def flatten_errors(detail: Any, path: str = "") -> Iterator[Issue]:
    """Yield the nested errors of a serializer, each with the dotted path of its field."""
    if isinstance(detail, Mapping):
        for key, value in detail.items():
            name = "" if key == "non_field_errors" else str(key)
            yield from flatten_errors(value, f"{path}.{name}".strip("."))
    elif isinstance(detail, Sequence) and not isinstance(detail, str):
        for index, value in enumerate(detail):
            nested = isinstance(value, Mapping)
            yield from flatten_errors(value, f"{path}.{index}" if nested else path)
    else:
        yield Issue(path or "root", str(detail))
