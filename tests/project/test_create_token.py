"""`manage.py create_token`."""

from datetime import timedelta
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone

from project.models import AccessToken, hash_secret

pytestmark = pytest.mark.django_db


def test_create_token__prints_the_token_and_nothing_else() -> None:
    User.objects.create_user("alice")
    out = StringIO()
    call_command("create_token", "alice", "--days", "7", "--name", "robot", stdout=out)
    (line,) = out.getvalue().splitlines()
    token = AccessToken.objects.get(secret_hash=hash_secret(line))
    assert (token.user.get_username(), token.name) == ("alice", "robot")
    assert timedelta(days=6) < token.expires_at - timezone.now() <= timedelta(days=7)


def test_create_token__unknown_user_is_an_error() -> None:
    with pytest.raises(CommandError, match="Unknown user 'nobody'"):
        call_command("create_token", "nobody")


@pytest.mark.parametrize(
    ("option", "value"),
    [("--days", "0"), ("--days", "-5"), ("--days", "9" * 12), ("--name", "n" * 101)],
)
def test_create_token__refuses_a_life_or_a_name_that_cannot_be(option: str, value: str) -> None:
    User.objects.create_user("alice")
    with pytest.raises(CommandError, match=option):
        call_command("create_token", "alice", option, value)
    assert not AccessToken.objects.exists()


def test_create_token__refuses_a_user_who_is_switched_off() -> None:
    User.objects.create_user("alice", is_active=False)
    with pytest.raises(CommandError, match="'alice' is not active"):
        call_command("create_token", "alice")
