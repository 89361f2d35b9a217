"""Authentication that costs nothing, for measuring: Mastra's server asks nobody who they are."""

from django.contrib.auth.models import AbstractBaseUser, User
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

ANYONE = User(username="anyone", is_superuser=True)


class Anyone(BaseAuthentication):
    """Takes every caller for one who may see all resources, without asking the database."""

    def authenticate(self, request: Request) -> tuple[AbstractBaseUser, None]:
        """Give the same user every time."""
        return ANYONE, None
