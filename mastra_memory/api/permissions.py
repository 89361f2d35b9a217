"""Permission classes of the memory API."""

from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from mastra_memory.memory.callers import may_access_all


class HasResource(BasePermission):
    """Allow callers that `RESOURCE_FOR_REQUEST` maps to a resource, and unscoped callers."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Resolve the caller; `get_caller` raises `AccessDenied` for a user without a resource."""
        return view.caller is not None


class IsUnscoped(BasePermission):
    """Allow only callers that are not limited to one resource."""

    message = "Only callers with access to all resources may do this"

    def has_permission(self, request: Request, view: Any) -> bool:
        """Return True for unscoped callers."""
        return not view.caller.is_scoped


def resource_of_user(request: Request) -> str | None:
    """Return the resource of the request's user: the default of `RESOURCE_FOR_REQUEST`.

    The resource id is the user's primary key. Users who may access all resources have none.
    """
    user = request.user
    return None if may_access_all(user) or user.pk is None else str(user.pk)
