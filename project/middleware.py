"""Middleware for pages only: a program that calls the API has no login, language or files.

A request to the API's routes that brings no cookie and wants no page skips them, for they cost
more than a short answer. What guards everybody is left as it is.
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
    """Tell whether the API is asked, and for no page: the answer then is the same for all."""
    accepted = request.META.get("HTTP_ACCEPT", "")
    return request.path_info.startswith(API_PREFIX) and "text/html" not in accepted


def is_api_request(request: HttpRequest) -> bool:
    """Tell whether a program asks: without cookies nobody is logged in by a page."""
    return accepts_only_data(request) and not request.META.get("HTTP_COOKIE")


class _SkipForApiRequests:
    get_response: Any

    def __call__(self, request: HttpRequest) -> Any:
        page: Any = super()
        return self.get_response(request) if is_api_request(request) else page.__call__(request)


class PageWhiteNoiseMiddleware(_SkipForApiRequests, WhiteNoiseMiddleware):
    """The files that pages are made of."""


class PageSessionMiddleware(_SkipForApiRequests, SessionMiddleware):
    """What a browser is remembered by."""


class PageLocaleMiddleware(LocaleMiddleware):
    """Pages in the reader's language."""

    def __call__(self, request: HttpRequest) -> Any:
        if accepts_only_data(request):
            return self.get_response(request)
        with translation.override(translation.get_language()):  # else the next caller inherits it
            return super().__call__(request)


class PageAuthenticationMiddleware(_SkipForApiRequests, AuthenticationMiddleware):
    """Who is logged in."""


class PageMessageMiddleware(_SkipForApiRequests, MessageMiddleware):
    """What was done, told on the next page."""
