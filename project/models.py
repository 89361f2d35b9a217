"""Access tokens, with which clients call the API without a browser session."""

import hashlib
import secrets
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import models
from django.utils import timezone

from mastra_memory.db import sql

SECRET_PREFIX = "mm_"
SECRET_BYTES = 32
PREFIX_LENGTH = 10
DEFAULT_LIFETIME_DAYS = 90
MAX_NAME_LENGTH = 100
LAST_USED_PRECISION = timedelta(hours=1)


def get_default_expiry() -> datetime:
    """Return the default time at which a new token expires."""
    return timezone.now() + timedelta(days=DEFAULT_LIFETIME_DAYS)


class AccessTokenQuerySet(models.QuerySet["AccessToken"]):
    """Queries of access tokens."""

    def find_live(self, secret: str) -> "AccessToken | None":
        """Return the live token with this secret and its active user, or None.

        Every API request calls this. So the statement is built once, and each connection plans it
        once.
        """
        rows = sql.fetch_all_prepared(_find_live_sql(), [hash_secret(secret)])
        if not rows:
            return None
        width = len(AccessToken._meta.concrete_fields)
        token: AccessToken = _build_instance(AccessToken, rows[0][:width])
        token.user = _build_instance(get_user_model(), rows[0][width:])
        return token

    def revoke(self) -> int:
        """Let these tokens expire now. Those that have expired keep their date."""
        now = timezone.now()
        return self.filter(expires_at__gt=now).update(expires_at=now)


class AccessToken(models.Model):
    """A bearer token. Only a hash of its secret is stored, so the secret cannot be read again."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="access_tokens"
    )
    name = models.CharField(
        max_length=MAX_NAME_LENGTH, blank=True, help_text="What the token is for."
    )
    prefix = models.CharField(
        max_length=PREFIX_LENGTH,
        editable=False,
        help_text="The first characters of the secret.",
    )
    secret_hash = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField(
        default=get_default_expiry, help_text="The API rejects the token after this time."
    )
    last_used_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="Accurate to one hour."
    )

    objects = AccessTokenQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-pk"]

    def __str__(self) -> str:
        return f"{self.prefix}… {self.name}".strip()

    @property
    def is_live(self) -> bool:
        """Return True if the token has not expired. Its user may still be inactive."""
        return self.expires_at > timezone.now()

    def generate_secret(self) -> str:
        """Generate a secret, set its hash and prefix, and return it. It is not stored."""
        secret = SECRET_PREFIX + secrets.token_urlsafe(SECRET_BYTES)
        self.prefix = secret[:PREFIX_LENGTH]
        self.secret_hash = hash_secret(secret)
        return secret

    def mark_used(self) -> None:
        """Store the time of use, at most once an hour."""
        now = timezone.now()
        if self.last_used_at is None or now - self.last_used_at >= LAST_USED_PRECISION:
            AccessToken.objects.filter(pk=self.pk).update(last_used_at=now)


@cache
def _find_live_sql() -> str:
    """Return the statement for a live token: all columns of the token, then of its user."""
    token, user = AccessToken._meta, get_user_model()._meta
    columns = [f't."{field.column}"' for field in token.concrete_fields]
    columns += [f'u."{field.column}"' for field in user.concrete_fields]
    return f"""SELECT {", ".join(columns)} FROM "{token.db_table}" t
        JOIN "{user.db_table}" u ON u."{user.pk.column}" = t.user_id
        WHERE t.secret_hash = %s AND t.expires_at > clock_timestamp() AND u.is_active"""


def _build_instance(model: type[models.Model], values: tuple[Any, ...]) -> Any:
    names = [field.attname for field in model._meta.concrete_fields]
    return model.from_db(None, names, values)


def hash_secret(secret: str) -> str:
    """Hash a secret. It holds 256 random bits, so a fast hash without salt is enough."""
    return hashlib.sha256(secret.encode(errors="backslashreplace")).hexdigest()
