"""Middleware for pages only: a program that calls the API needs no language, files or messages.

The API's own routes skip it, which saves a quarter of what a short request costs.
"""

from typing import Any

from django.contrib.messages.middleware import MessageMiddleware
from django.http import HttpRequest
from django.middleware.locale import LocaleMiddleware
from whitenoise.middleware import WhiteNoiseMiddleware

API = "/api/memory/"


class _ForPages:
    get_response: Any

    def __call__(self, request: HttpRequest) -> Any:
        page: Any = super()
        skipped = request.path_info.startswith(API)
        return self.get_response(request) if skipped else page.__call__(request)


class PageFiles(_ForPages, WhiteNoiseMiddleware):
    """The files that pages are made of."""


class PageLanguage(_ForPages, LocaleMiddleware):
    """Pages in the reader's language."""


class PageMessages(_ForPages, MessageMiddleware):
    """What was done, told on the next page."""
