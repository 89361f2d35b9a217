"""What the very first `manage.py serve` puts into an empty database."""

import secrets
import string

from django.contrib.auth import get_user_model

ADMINISTRATOR = "admin"
PASSWORD_LENGTH = 16
PASSWORD_ALPHABET = string.ascii_letters + string.digits


def find_administrator() -> str | None:
    """Give the name of the administrator who has been here longest, None before the first run."""
    users = get_user_model()
    first = users._default_manager.filter(is_superuser=True, is_active=True).order_by("pk").first()
    return first.get_username() if first else None


def create_administrator() -> str:
    """Create the administrator and give the password, which is kept nowhere in the clear."""
    password = "".join(secrets.choice(PASSWORD_ALPHABET) for _ in range(PASSWORD_LENGTH))
    get_user_model()._default_manager.create_superuser(
        username=ADMINISTRATOR, email="", password=password
    )
    return password
