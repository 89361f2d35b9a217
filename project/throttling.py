"""Limit the requests of a caller."""

from typing import Any

from rest_framework.request import Request
from rest_framework.throttling import UserRateThrottle

from mastra_memory.memory.callers import may_access_all


class ScopedUserThrottle(UserRateThrottle):
    """Limit each user who may see one resource only.

    Callers who may see all resources, such as a product's own server, act for many users and are
    not limited. Counts are kept in Django's default cache.
    """

    scope = "scoped"

    def get_cache_key(self, request: Request, view: Any) -> str | None:
        """Return the key under which a user's requests are counted, or None for no limit."""
        return None if may_access_all(request.user) else super().get_cache_key(request, view)
