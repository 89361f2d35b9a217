"""Authentication without a database query, because Mastra's server does not authenticate."""

from django.contrib.auth.models import AbstractBaseUser, User
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

SUPERUSER = User(username="benchmark-superuser", is_superuser=True)


class SuperuserAuthentication(BaseAuthentication):
    """Authenticate every request as one superuser that is not stored in the database."""

    def authenticate(self, request: Request) -> tuple[AbstractBaseUser, None]:
        """Return the superuser."""
        return SUPERUSER, None
