"""Access tokens as rows."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from project.models import AccessToken, hash_secret

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice() -> User:
    return User.objects.create_user("alice")


def make_token(user: User, *, days: int = 1) -> tuple[AccessToken, str]:
    token = AccessToken(user=user, expires_at=timezone.now() + timedelta(days=days))
    secret = token.generate_secret()
    token.save()
    return token, secret


def test_give_secret__only_the_hash_is_kept(alice: User) -> None:
    token, secret = make_token(alice)
    row = AccessToken.objects.values().get(pk=token.pk)
    assert row["secret_hash"] == hash_secret(secret)
    assert all(secret not in str(value) for value in row.values())
    assert secret.startswith(row["prefix"])


def test_give_secret__is_random_and_long(alice: User) -> None:
    secrets = {make_token(alice)[1] for _ in range(20)}
    assert len(secrets) == 20
    assert min(map(len, secrets)) >= 43


def test_default_expiry__is_ninety_days_away(alice: User) -> None:
    token = AccessToken(user=alice)
    assert timedelta(days=89) < token.expires_at - timezone.now() <= timedelta(days=90)


def test_find_live__leaves_out_expired_tokens_and_inactive_users(alice: User) -> None:
    live, secret = make_token(alice)
    _, expired = make_token(alice, days=-1)
    assert [AccessToken.objects.find_live(one) for one in (secret, expired)] == [live, None]
    User.objects.update(is_active=False)
    assert AccessToken.objects.find_live(secret) is None


def test_revoke__ends_live_tokens_and_keeps_the_date_of_others(alice: User) -> None:
    live, _ = make_token(alice)
    expired, _ = make_token(alice, days=-1)
    assert AccessToken.objects.all().revoke() == 1
    live.refresh_from_db()
    assert not live.is_live
    assert AccessToken.objects.get(pk=expired.pk).expires_at == expired.expires_at


def test_mark_used__writes_once_an_hour(alice: User) -> None:
    token, _ = make_token(alice)
    token.mark_used()
    first = AccessToken.objects.get(pk=token.pk)
    first.mark_used()
    assert AccessToken.objects.get(pk=token.pk).last_used_at == first.last_used_at
    assert first.last_used_at is not None
    first.last_used_at -= timedelta(minutes=61)
    first.save()
    first.mark_used()
    used_at = AccessToken.objects.get(pk=token.pk).last_used_at
    assert used_at is not None and used_at > timezone.now() - timedelta(minutes=1)
