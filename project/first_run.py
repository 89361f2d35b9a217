"""What the first `manage.py serve` puts into an empty database."""

import secrets
import string
from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib.auth import get_user_model
from django.db import connection

ADMINISTRATOR_USERNAME = "admin"
PASSWORD_LENGTH = 16
PASSWORD_ALPHABET = string.ascii_letters + string.digits
ADVISORY_LOCK_ID = 7_305_804_385
"""The key of the advisory lock that is held while the database is prepared."""


@contextmanager
def database_lock() -> Iterator[None]:
    """Let only one of all processes that use the database enter the block at a time."""
    holder = connection.copy()  # the block uses the connection itself
    try:
        holder.set_autocommit(False)
        with holder.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [ADVISORY_LOCK_ID])
        yield
    finally:
        holder.close()


def has_users() -> bool:
    """Return whether there are users, which is always true after the first run."""
    return get_user_model()._default_manager.exists()


def find_administrator() -> str | None:
    """Return the name of the oldest active administrator, or None if there is none."""
    users = get_user_model()
    first = users._default_manager.filter(is_superuser=True, is_active=True).order_by("pk").first()
    return first.get_username() if first else None


def create_administrator() -> str:
    """Create the administrator and return the password, of which only a hash is stored."""
    password = "".join(secrets.choice(PASSWORD_ALPHABET) for _ in range(PASSWORD_LENGTH))
    get_user_model()._default_manager.create_superuser(
        username=ADMINISTRATOR_USERNAME, email="", password=password
    )
    return password
