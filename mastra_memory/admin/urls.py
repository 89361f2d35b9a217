"""Addresses of our pages within the admin site that handles the current request."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

_site_name: ContextVar[str | None] = ContextVar("mastra_memory_admin_site", default=None)


@contextmanager
def use_site(request: HttpRequest) -> Iterator[None]:
    """Let `reverse_page` return addresses of the admin site of this request.

    A project may have several admin sites, which share the application namespace `admin`.
    """
    match = request.resolver_match
    token = _site_name.set(match.namespace if match else None)
    try:
        yield
    finally:
        _site_name.reset(token)


def reverse_page(name: str, args: Sequence[Any] = ()) -> str:
    """Return the address of a page of the admin, such as `mastra_memory_thread_next`."""
    return reverse(f"admin:{name}", args=args, current_app=_site_name.get())
