"""The users to whom conversations can be assigned."""

from collections.abc import Iterable
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import FieldDoesNotExist
from django.db.models import Q, QuerySet

from mastra_memory.admin import access
from mastra_memory.db.users import get_user_id, get_username

MAX_USERS_CHECKED = 2_000
"""Users whose permissions are checked one by one, if the user model has no tables for them."""


def list_reviewers() -> list[Any]:
    """Return the possible assignees: active staff who may review threads, ordered by user name."""
    users = _filter_by_flags(get_user_model()._default_manager.all())
    if _has_fields("is_superuser", "user_permissions", "groups"):
        candidates: Iterable[Any] = _filter_by_permission(users)
    else:
        candidates = [
            user
            for user in users[:MAX_USERS_CHECKED]
            if access.has_permission(user, "review_thread")
        ]
    # A user model may have properties instead of these two fields.
    staff = [user for user in candidates if user.is_active and getattr(user, "is_staff", False)]
    return sorted(staff, key=get_username)


def list_choices() -> list[tuple[str, str]]:
    """Return the primary key, as text, and the name of each possible assignee."""
    return [(get_user_id(user), get_username(user)) for user in list_reviewers()]


def find_reviewer_id(user_id: str) -> str | None:
    """Return the key of a form if it belongs to a possible assignee, else None."""
    return user_id if user_id in dict(list_choices()) else None


def _has_fields(*names: str) -> bool:
    try:
        return all(get_user_model()._meta.get_field(name) for name in names)
    except FieldDoesNotExist:
        return False


def _filter_by_flags(users: QuerySet[Any]) -> QuerySet[Any]:
    for name in ("is_active", "is_staff"):
        if _has_fields(name):
            users = users.filter(**{name: True})
    return users


def _filter_by_permission(users: QuerySet[Any]) -> QuerySet[Any]:
    right = {"codename": "review_thread", "content_type__app_label": access.APP_LABEL}
    own = {f"user_permissions__{key}": value for key, value in right.items()}
    group = {f"groups__permissions__{key}": value for key, value in right.items()}
    able = users.filter(Q(is_superuser=True) | Q(**own) | Q(**group))
    return users.filter(pk__in=able.order_by().values("pk"))
