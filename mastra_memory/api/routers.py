"""Routers for thread ids that may contain any character, slashes included."""

from django.urls import register_converter
from rest_framework.routers import DynamicRoute, Route, SimpleRouter


class ThreadIdConverter:
    """Match any text, with slashes and line breaks; Django's `path` stops at a line break."""

    regex = r"[\s\S]+"

    def to_python(self, value: str) -> str:
        """Return the id unchanged."""
        return value

    def to_url(self, value: str) -> str:
        """Return the id unchanged."""
        return value


register_converter(ThreadIdConverter, "mastra_thread_id")

THREAD = "<mastra_thread_id:thread_id>"
"""The id of a thread, for the prefixes of nested routes."""


class MemoryRouter(SimpleRouter):
    """Route collections without trailing slashes.

    A thread's id may contain slashes, so `threads/<id>` matches every longer path as well.
    Therefore the actions of a thread come before the thread itself, and nested viewsets must be
    registered first.
    """

    routes = [
        Route("{prefix}", {"get": "list", "post": "create"}, "{basename}-list", False, {}),
        DynamicRoute("{prefix}/{url_path}", "{basename}-{url_name}", False, {}),
        DynamicRoute("{prefix}/{lookup}/{url_path}", "{basename}-{url_name}", True, {}),
        Route(
            "{prefix}/{lookup}",
            {"get": "retrieve", "patch": "partial_update", "delete": "destroy"},
            "{basename}-detail",
            True,
            {},
        ),
    ]

    def __init__(self) -> None:
        """Create a router without trailing slashes."""
        super().__init__(trailing_slash=False, use_regex_path=False)


class SingletonRouter(SimpleRouter):
    """Route resources that exist once, such as the working memory of a thread."""

    routes = [
        Route("{prefix}", {"get": "retrieve", "post": "update"}, "{basename}", False, {}),
        DynamicRoute("{prefix}/{url_path}", "{basename}-{url_name}", False, {}),
    ]

    def __init__(self) -> None:
        """Create a router without trailing slashes."""
        super().__init__(trailing_slash=False, use_regex_path=False)


class NetworkRouter(MemoryRouter):
    """Route the aliases below `network/`, where Mastra has no actions on a thread."""

    routes = [
        route
        for route in MemoryRouter.routes
        if not (isinstance(route, DynamicRoute) and route.detail)
    ]
