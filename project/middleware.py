"""Middleware that only pages need, and API requests skip: sessions, languages, static files.

An API request without cookies needs none of them, and they take longer than a short response. The
middleware that protects all requests is not affected.
"""

from typing import Any

from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest
from django.middleware.locale import LocaleMiddleware
from django.utils import translation
from whitenoise.middleware import WhiteNoiseMiddleware

API_PREFIX = "/api/memory/"


def accepts_only_data(request: HttpRequest) -> bool:
    """Return whether this is an API request that does not accept HTML."""
    accepted = request.META.get("HTTP_ACCEPT", "")
    return request.path_info.startswith(API_PREFIX) and "text/html" not in accepted


def is_api_request(request: HttpRequest) -> bool:
    """Return whether this is an API request without cookies, and so without a session."""
    return accepts_only_data(request) and not request.META.get("HTTP_COOKIE")


class _SkipForApiRequests:
    get_response: Any

    def __call__(self, request: HttpRequest) -> Any:
        page: Any = super()
        return self.get_response(request) if is_api_request(request) else page.__call__(request)


class PageWhiteNoiseMiddleware(_SkipForApiRequests, WhiteNoiseMiddleware):
    """Serves static files."""


class PageSessionMiddleware(_SkipForApiRequests, SessionMiddleware):
    """Adds the session."""


class PageLocaleMiddleware(LocaleMiddleware):
    """Activates the user's language."""

    def __call__(self, request: HttpRequest) -> Any:
        """Answer requests for data without activating a language."""
        if accepts_only_data(request):
            return self.get_response(request)
        with translation.override(translation.get_language()):  # else the next caller inherits it
            return super().__call__(request)


class PageAuthenticationMiddleware(_SkipForApiRequests, AuthenticationMiddleware):
    """Adds the user of the session."""


class PageMessageMiddleware(_SkipForApiRequests, MessageMiddleware):
    """Adds the messages that the next page shows."""
