"""Staff with different rights, signed in."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

SignIn = Callable[..., Client]


def make_staff(name: str, *rights: str, group: bool = False) -> User:
    """A member of staff with these rights of the app, or with the ready group's."""
    user = User.objects.create(username=name, is_staff=True)
    if group:
        user.groups.add(Group.objects.get(name="Support reviewer"))
    for right in rights:
        user.user_permissions.add(
            Permission.objects.get(content_type__app_label="mastra_memory", codename=right)
        )
    return user


@pytest.fixture
def sign_in(db: None) -> SignIn:
    """Sign in a user: the given one, or a new one with the given permissions."""

    def signed_in(name: str, *rights: str, group: bool = False) -> Client:
        client = Client()
        client.force_login(make_staff(name, *rights, group=group))
        return client

    return signed_in


@pytest.fixture
def admin(db: None) -> Client:
    """Return a client of a superuser."""
    client = Client()
    user = User.objects.create(username="root", is_staff=True, is_superuser=True)
    client.force_login(user)
    return client


@pytest.fixture
def reviewer(sign_in: SignIn) -> Client:
    """A member of the ready group."""
    return sign_in("ana", group=True)
