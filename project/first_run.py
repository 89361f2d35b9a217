"""What the very first `manage.py serve` puts into an empty database."""

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
"""The number of the lock that whoever prepares the database holds."""


@contextmanager
def database_lock() -> Iterator[None]:
    """A block that one process at a time enters, of all that use the database."""
    holder = connection.copy()  # the connection itself is in the hands of the block
    try:
        holder.set_autocommit(False)
        with holder.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [ADVISORY_LOCK_ID])
        yield
    finally:
        holder.close()


def has_users() -> bool:
    """Tell whether anybody has an account, which after the first run is always so."""
    return get_user_model()._default_manager.exists()


def find_administrator() -> str | None:
    """Give the name of the administrator who has been here longest, None before the first run."""
    users = get_user_model()
    first = users._default_manager.filter(is_superuser=True, is_active=True).order_by("pk").first()
    return first.get_username() if first else None


def create_administrator() -> str:
    """Create the administrator and give the password, which is kept nowhere in the clear."""
    password = "".join(secrets.choice(PASSWORD_ALPHABET) for _ in range(PASSWORD_LENGTH))
    get_user_model()._default_manager.create_superuser(
        username=ADMINISTRATOR_USERNAME, email="", password=password
    )
    return password
