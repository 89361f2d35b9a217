"""Names of users, for records that keep only their keys."""

from collections.abc import Iterable
from typing import Any

from django.contrib.auth import get_user_model


def get_usernames(user_ids: Iterable[Any]) -> dict[Any, str]:
    """Return user names by primary key. Users that were deleted are missing.

    Runs one query, or none without ids.
    """
    ids = set(user_ids)
    if not ids:
        return {}
    users = get_user_model()._default_manager.filter(pk__in=ids)
    return {user.pk: user.get_username() for user in users}
