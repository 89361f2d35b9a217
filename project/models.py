"""Access tokens: who may call the API without a browser session."""

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
    """Give the end of a token's life where nobody chose one."""
    return timezone.now() + timedelta(days=DEFAULT_LIFETIME_DAYS)


class AccessTokenQuerySet(models.QuerySet["AccessToken"]):
    """What one may ask of tokens."""

    def find_live(self, secret: str) -> "AccessToken | None":
        """The live token with this secret, with its user; None without one.

        Every call of the API asks this: the statement is made once, and planned once a connection.
        """
        found = sql.fetch_all_prepared(_find_live_sql(), [hash_secret(secret)])
        if not found:
            return None
        own = len(AccessToken._meta.concrete_fields)
        token: AccessToken = _build_instance(AccessToken, found[0][:own])
        token.user = _build_instance(get_user_model(), found[0][own:])
        return token

    def revoke(self) -> int:
        """End the life of these tokens now; those that have ended keep their date."""
        now = timezone.now()
        return self.filter(expires_at__gt=now).update(expires_at=now)


class AccessToken(models.Model):
    """A bearer token. Only a hash of its secret is kept, so nobody can read it from here."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="access_tokens"
    )
    name = models.CharField(max_length=MAX_NAME_LENGTH, blank=True, help_text="What it is for.")
    prefix = models.CharField(
        max_length=PREFIX_LENGTH,
        editable=False,
        help_text="How the secret begins, to recognise it.",
    )
    secret_hash = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField(
        default=get_default_expiry, help_text="From then on it opens nothing."
    )
    last_used_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="To the hour."
    )

    objects = AccessTokenQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-pk"]

    def __str__(self) -> str:
        return f"{self.prefix}… {self.name}".strip()

    @property
    def is_live(self) -> bool:
        """Whether its time has not come; the user may still be switched off."""
        return self.expires_at > timezone.now()

    def generate_secret(self) -> str:
        """Draw a new secret and keep its hash. The caller alone ever sees the secret."""
        secret = SECRET_PREFIX + secrets.token_urlsafe(SECRET_BYTES)
        self.prefix = secret[:PREFIX_LENGTH]
        self.secret_hash = hash_secret(secret)
        return secret

    def mark_used(self) -> None:
        """Note the time of use, with one write an hour at most."""
        now = timezone.now()
        if self.last_used_at is None or now - self.last_used_at >= LAST_USED_PRECISION:
            AccessToken.objects.filter(pk=self.pk).update(last_used_at=now)


@cache
def _find_live_sql() -> str:
    """The statement for a live token and its user: all columns of the one, then of the other."""
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
