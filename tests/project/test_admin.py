"""Access tokens, users and groups in the admin."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import reverse

from project.models import AccessToken, hash_secret
from tests.project.test_models import make_token

pytestmark = pytest.mark.django_db
LIST = "admin:project_accesstoken_changelist"
ADD = "admin:project_accesstoken_add"
EXPIRES = {"expires_at_0": "2999-01-01", "expires_at_1": "12:00:00"}


@pytest.fixture
def staff() -> User:
    user = User.objects.create_user("staff", is_staff=True)
    codenames = [f"{verb}_accesstoken" for verb in ("add", "view", "change")]
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    return user


@pytest.fixture
def staff_client(staff: User) -> Client:
    client = Client()
    client.force_login(staff)
    return client


def create(client: Client, user: User) -> Any:
    return client.post(reverse(ADD), {"user": user.pk, "name": "robot", **EXPIRES})


def test_add__shows_the_secret_once(admin_client: Client, admin_user: User) -> None:
    response = create(admin_client, admin_user)
    secret = response.context["secret"]
    assert response.status_code == 200
    assert "no-store" in response["Cache-Control"]
    assert secret in response.content.decode()
    token = AccessToken.objects.get(secret_hash=hash_secret(secret))
    page = reverse("admin:project_accesstoken_change", args=[token.pk])
    assert secret not in admin_client.get(page).content.decode()
    assert secret not in admin_client.get(reverse(LIST)).content.decode()


def test_add__neither_session_nor_log_learns_the_secret(
    admin_client: Client, admin_user: User
) -> None:
    secret = create(admin_client, admin_user).context["secret"]
    logged = " ".join(
        f"{entry.object_repr} {entry.change_message}" for entry in LogEntry.objects.all()
    )
    cookies = " ".join(morsel.value for morsel in admin_client.cookies.values())
    assert logged
    assert secret not in logged + cookies + str(dict(admin_client.session))


def test_add__staff_may_make_tokens_for_themselves_alone(
    staff_client: Client, staff: User, admin_user: User
) -> None:
    refused = create(staff_client, admin_user)
    assert "user" in refused.context["adminform"].form.errors
    assert create(staff_client, staff).status_code == 200
    assert [token.user for token in AccessToken.objects.all()] == [staff]


def test_changelist__other_peoples_tokens_are_out_of_sight(
    staff_client: Client, admin_user: User
) -> None:
    token, _ = make_token(admin_user)
    assert token.prefix not in staff_client.get(reverse(LIST)).content.decode()
    page = reverse("admin:project_accesstoken_change", args=[token.pk])
    assert staff_client.get(page).status_code == 302


def test_change__cannot_give_a_token_a_longer_life(admin_client: Client, admin_user: User) -> None:
    token, _ = make_token(admin_user)
    page = reverse("admin:project_accesstoken_change", args=[token.pk])
    admin_client.post(page, {"name": "renamed", **EXPIRES})
    changed = AccessToken.objects.get(pk=token.pk)
    assert (changed.name, changed.expires_at) == ("renamed", token.expires_at)


def test_revoke__ends_the_token_and_logs_the_user(admin_client: Client, admin_user: User) -> None:
    token, secret = make_token(admin_user)
    action = {"action": "revoke", "_selected_action": [token.pk]}
    assert admin_client.post(reverse(LIST), action).status_code == 302
    assert AccessToken.objects.find_live(secret) is None
    entry = LogEntry.objects.get(object_id=str(token.pk))
    assert (entry.user, entry.change_message) == (admin_user, "Revoked.")


@pytest.mark.parametrize("page", ["change", "delete", "history"])
@pytest.mark.parametrize("value", ["", " ", "junk", "\0", "²", "9" * 5_000, "password", "__", "id"])
def test_auth_pages__to_field_is_ignored_or_refused(
    admin_client: Client, admin_user: User, page: str, value: str
) -> None:
    admin_client.raise_request_exception = False
    group = Group.objects.create(name="support")
    for model, pk in (("user", admin_user.pk), ("group", group.pk)):
        address = reverse(f"admin:auth_{model}_{page}", args=[pk])
        response = admin_client.get(address, {"_to_field": value})
        assert response.status_code in (200, 302, 400), (address, response)


@pytest.mark.parametrize("lookup", ["password__startswith", "username__regex", "groups__name"])
def test_auth_lists__lookups_outside_of_filters_are_refused(
    admin_client: Client, lookup: str
) -> None:
    address = reverse("admin:auth_user_changelist")
    assert admin_client.get(address, {lookup: "a"}).status_code == 400
    assert admin_client.get(address, {"is_staff__exact": "1"}).status_code == 200


def test_auth_pages__belong_to_those_with_permissions(staff_client: Client) -> None:
    for page in ("auth_user_changelist", "auth_group_changelist", "auth_user_add"):
        assert staff_client.get(reverse(f"admin:{page}")).status_code == 403
