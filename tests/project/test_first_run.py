"""The administrator of the first run."""

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.models import User

from project import first_run

pytestmark = pytest.mark.django_db


def test_create_administrator__can_log_in_with_the_password() -> None:
    password = first_run.create_administrator()
    user = authenticate(username="admin", password=password)
    assert user is not None and user.is_superuser
    assert len(password) >= 16


def test_find_administrator__none_before_the_first_run() -> None:
    assert first_run.find_administrator() is None and not first_run.has_users()
    User.objects.create_user("alice")
    assert first_run.find_administrator() is None and first_run.has_users()


def test_find_administrator__anybody_elses_superuser_counts() -> None:
    User.objects.create_superuser("root", password="x")
    assert first_run.find_administrator() == "root"
