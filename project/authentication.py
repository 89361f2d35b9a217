"""DRF authentication by access token: `Authorization: Bearer ...`."""

from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from project.models import AccessToken


class BearerAuthentication(BaseAuthentication):
    """Knows the caller by an access token; requests without one are left to other classes."""

    def authenticate(self, request: Request) -> tuple[AbstractBaseUser, AccessToken] | None:
        """Give the user and the token. One query; one answer for every kind of bad token."""
        words = request.META.get("HTTP_AUTHORIZATION", "").split()
        if not words or words[0].lower() != "bearer":
            return None
        if len(words) != 2:
            raise AuthenticationFailed("The Authorization header must be `Bearer` and one token.")
        token = AccessToken.objects.find_live(words[1])
        if token is None:
            raise AuthenticationFailed("The access token is unknown or has expired.")
        token.mark_used()
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        """Answer 401, not 403, to callers who did not say who they are."""
        return 'Bearer realm="api"'


class BearerScheme(OpenApiAuthenticationExtension):
    """How the API documentation describes access tokens."""

    target_class = BearerAuthentication
    name = "accessToken"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """Describe the header."""
        return {"type": "http", "scheme": "bearer"}
