"""The caller of a request, and the resources that the caller may access.

The HTTP API and the MCP server answer on behalf of users. Both resolve the user to a `Caller` with
the setting `RESOURCE_FOR_REQUEST`, so that a user has the same rights through either.
"""

import functools
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.utils.module_loading import import_string

from mastra_memory import conf
from mastra_memory.exceptions import AccessDenied
from mastra_memory.types import StoredThread

ACCESS_ALL = "mastra_memory.access_all_resources"
"""The permission to reach the threads of every resource."""

_import_function = functools.cache(import_string)


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request.

    A scoped caller acts for one resource. An unscoped caller may reach all of them.
    """

    resource_id: str | None
    """The resource of a scoped caller, or None for an unscoped one."""

    @property
    def is_scoped(self) -> bool:
        """Return True if the caller may reach one resource only."""
        return self.resource_id is not None

    def owner(self, requested_id: str | None) -> str | None:
        """Return the resource that must own the requested data.

        This is the caller's own resource, or `requested_id` for an unscoped caller. None means that
        any resource may own it.
        """
        return self.resource_id if self.resource_id is not None else (requested_id or None)

    def check_owner(self, thread: StoredThread, requested_id: str | None = None) -> StoredThread:
        """Return the thread if the caller may access it and it belongs to `requested_id`.

        Raises:
            AccessDenied: The thread belongs to another resource.
        """
        owner = self.owner(requested_id)
        if owner is not None and thread.resource_id != owner:
            raise AccessDenied
        return thread


def get_caller(request: HttpRequest | Any) -> Caller:
    """Return the caller of a Django or REST framework request.

    Args:
        request: Passed to the function that `RESOURCE_FOR_REQUEST` names. Only its `user` is
            needed by the default function.

    Raises:
        AccessDenied: The user has no resource and may not access all resources.
    """
    resource_id = _import_function(conf.app_settings().RESOURCE_FOR_REQUEST)(request)
    if resource_id is None and may_access_all(request.user):
        return Caller(None)
    if not resource_id:
        raise AccessDenied("No resource belongs to this user")
    return Caller(str(resource_id))


def get_caller_of_user(user: Any) -> Caller:
    """Return the caller that a request of this user would have.

    Raises:
        AccessDenied: The user has no resource and may not access all resources.
    """
    request = HttpRequest()
    request.user = user
    return get_caller(request)


def may_access_all(user: Any) -> bool:
    """Return True for superusers and for users with `access_all_resources`."""
    return bool(user.is_authenticated and user.has_perm(ACCESS_ALL))
