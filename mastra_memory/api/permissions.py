"""Who calls, and what is theirs. Closed unless something opens it."""

import functools
from dataclasses import dataclass
from typing import Any

from django.utils.module_loading import import_string
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request

from mastra_memory import conf
from mastra_memory.exceptions import AccessDenied
from mastra_memory.types import StoredThread

_imported = functools.cache(import_string)
ACCESS_ALL = "mastra_memory.access_all_resources"


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever sends a request."""

    resource_id: str | None
    """The one resource a scoped caller speaks for; None for a caller who may see all."""

    @property
    def is_scoped(self) -> bool:
        return self.resource_id is not None

    def owner(self, named: str | None) -> str | None:
        """The resource that must own what is asked for: the caller's, else the one named."""
        return self.resource_id if self.resource_id is not None else (named or None)

    def check_owner(self, thread: StoredThread, named: str | None = None) -> StoredThread:
        """The thread, if it is the caller's and the named resource's. Raises `AccessDenied`."""
        owner = self.owner(named)
        if owner is not None and thread.resource_id != owner:
            raise AccessDenied
        return thread

    def require_unscoped(self) -> None:
        """Raise `AccessDenied` for a scoped caller."""
        if self.is_scoped:
            raise AccessDenied("This needs a caller who is not bound to one resource")


def caller_of(request: Request) -> Caller:
    """The caller, as the setting `RESOURCE_FOR_REQUEST` sees it.

    A user without a resource and without `access_all_resources` is nobody: raises
    `PermissionDenied`.
    """
    resource_id = _imported(conf.app_settings().RESOURCE_FOR_REQUEST)(request)
    if resource_id is None and may_access_all(request.user):
        return Caller(None)
    if not resource_id:
        raise PermissionDenied("No resource belongs to this user")
    return Caller(str(resource_id))


def resource_of_user(request: Request) -> str | None:
    """The default: a user's resource is the primary key; None for users who may see all."""
    user = request.user
    return None if may_access_all(user) or user.pk is None else str(user.pk)


def may_access_all(user: Any) -> bool:
    """True for superusers and users with `access_all_resources`."""
    return bool(user.is_authenticated and user.has_perm(ACCESS_ALL))
