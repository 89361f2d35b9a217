"""Users, to which our rows refer by primary key.

The host project may keep its users in another database than our models, with keys of any type. Our
rows therefore contain the key as text, and no statement joins our tables with the table of users.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db.models import Model


def get_user_id(user: Any) -> str:
    """Return the primary key of a user as text. A key is accepted in place of the user."""
    return str(user.pk if isinstance(user, Model) else user)


def find_users(user_ids: Iterable[Any]) -> dict[str, Any]:
    """Return users by primary key as text. Users that were deleted are missing.

    Runs one query, or none without ids.
    """
    keys = _parse_keys(str(user_id) for user_id in user_ids)
    if not keys:
        return {}
    users = get_user_model()._default_manager.filter(pk__in=list(keys.values()))
    return {get_user_id(user): user for user in users}


def get_usernames(user_ids: Iterable[Any]) -> dict[str, str]:
    """Return user names by primary key as text. Users that were deleted are missing.

    Runs one query, or none without ids.
    """
    return {user_id: get_username(user) for user_id, user in find_users(user_ids).items()}


def find_user_ids(values: Iterable[str]) -> set[str]:
    """Return the values that are primary keys of existing users."""
    keys = _parse_keys(values)
    if not keys:
        return set()
    users = get_user_model()._default_manager.filter(pk__in=list(keys.values()))
    return {str(key) for key in users.values_list("pk", flat=True)}


def get_username(user: Any) -> str:
    """Return the value of the field with which the user logs in, such as an email address."""
    return str(user.get_username())


def get_full_name(user: Any) -> str:
    """Return the full name, or the user name if there is none.

    User models that extend only `AbstractBaseUser` have no `get_full_name`.
    """
    full_name = user.get_full_name() if hasattr(user, "get_full_name") else ""
    return str(full_name or get_username(user))


def _parse_keys(values: Iterable[str]) -> Mapping[str, Any]:
    """Map each value to the primary key it represents; leave out what cannot be one: "x", "007"."""
    field: Any = get_user_model()._meta.pk
    while field.remote_field:  # a user model that inherits from another model with a table
        field = field.target_field
    keys = {}
    for value in values:
        key = _parse_key(field, value)
        if key is not None and str(key) == value:
            keys[value] = key
    return keys


def _parse_key(field: Any, value: str) -> Any:
    try:
        key = field.to_python(value)
        field.run_validators(key)  # the range of integers, above all
    except (ValidationError, ValueError, OverflowError):
        return None
    return key
