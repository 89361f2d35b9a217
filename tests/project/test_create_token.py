"""`manage.py create_token`."""

from datetime import timedelta
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone

from project.models import AccessToken

pytestmark = pytest.mark.django_db


def test_create_token__prints_the_token_and_nothing_else() -> None:
    User.objects.create_user("alice")
    out = StringIO()
    call_command("create_token", "alice", "--days", "7", "--name", "robot", stdout=out)
    (line,) = out.getvalue().splitlines()
    token = AccessToken.objects.for_secret(line).get()
    assert (token.user.get_username(), token.name) == ("alice", "robot")
    assert timedelta(days=6) < token.expires_at - timezone.now() <= timedelta(days=7)


def test_create_token__unknown_user_is_an_error() -> None:
    with pytest.raises(CommandError, match="no user 'nobody'"):
        call_command("create_token", "nobody")


def test_create_token__refuses_a_token_that_is_over_already() -> None:
    User.objects.create_user("alice")
    with pytest.raises(CommandError, match="--days"):
        call_command("create_token", "alice", "--days", "0")
