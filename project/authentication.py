"""DRF authentication by access token: `Authorization: Bearer ...`."""

from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from project.models import AccessToken


class BearerAuthentication(BaseAuthentication):
    """Authenticate by access token; requests without one are left to other classes."""

    def authenticate(self, request: Request) -> tuple[AbstractBaseUser, AccessToken] | None:
        """Return the user and the token. All invalid tokens get the same answer."""
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
        """Return the challenge, with which unauthenticated callers get 401 instead of 403."""
        return 'Bearer realm="api"'


class BearerScheme(OpenApiAuthenticationExtension):
    """Describe access tokens in the API documentation."""

    target_class = BearerAuthentication
    name = "accessToken"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """Describe the header."""
        return {"type": "http", "scheme": "bearer"}
