"""Error answers outside the viewsets: JSON below `/api/`, Django's own pages elsewhere.

Django calls the handlers for what its middleware refuses, for unknown paths, and for exceptions
that no view has handled. A program that calls the API must be able to parse those answers too.
"""

import sys
from typing import Any

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views import defaults
from django.views.decorators.csrf import csrf_exempt

from mastra_memory.api import database_errors
from mastra_memory.api.errors import NO_STORE

API_PREFIX = "/api"


def is_api_path(request: HttpRequest) -> bool:
    """Return True for paths of the API, its schema and its documentation."""
    return request.path_info == API_PREFIX or request.path_info.startswith(f"{API_PREFIX}/")


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 400: a host name that is not allowed, too many fields, a broken form."""
    if is_api_path(request):
        return json_error("Bad request", 400)
    return defaults.bad_request(request, exception)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 403."""
    if is_api_path(request):
        return json_error("Access denied", 403)
    return defaults.permission_denied(request, exception)


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer 404 where no route or object exists."""
    if is_api_path(request):
        return json_error("Not found", 404)
    return defaults.page_not_found(request, exception)


@csrf_exempt
def api_not_found(request: HttpRequest) -> JsonResponse:
    """Answer 404 for a path below `/api/` without a route, also while DEBUG is on."""
    return json_error("Not found", 404)


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer 500, or 503 with the reason if the database failed."""
    if not is_api_path(request):
        return defaults.server_error(request)
    error = sys.exc_info()[1]
    if isinstance(error, OperationalError | InterfaceError):
        text, seconds = database_errors.describe_database_error(error)
        return json_error(text, 503, **{"Retry-After": str(seconds)})
    return json_error("Internal server error", 500)


def json_error(text: str, status: int, **headers: Any) -> JsonResponse:
    """Return an error in the shape of the memory API."""
    return JsonResponse({"error": text}, status=status, headers=NO_STORE | headers)
