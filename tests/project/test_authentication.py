"""Who gets in with `Authorization: Bearer ...`."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import path
from pytest_django import DjangoAssertNumQueries
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.test import APIClient
from rest_framework.views import APIView

from project.models import AccessToken
from tests.project.test_models import make_token

pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__)]


class WhoAmI(APIView):
    """A view under the project's defaults.

    It is not throttled: the throttle reads the user's permissions, and the tests count queries.
    """

    throttle_classes = ()

    def get(self, request: Request) -> Response:
        return Response({"user": request.user.get_username()})


urlpatterns = [path("who", WhoAmI.as_view())]


@pytest.fixture
def alice() -> User:
    return User.objects.create_user("alice", password="secret")


def ask(client: APIClient, header: str) -> Any:
    return client.get("/who", headers={"authorization": header})


def test_authenticate__token_gives_its_user(alice: User) -> None:
    _, secret = make_token(alice)
    response = ask(APIClient(), f"Bearer {secret}")
    assert (response.status_code, response.json()) == (200, {"user": "alice"})


def test_find_live__is_as_whole_as_what_the_orm_reads(alice: User) -> None:
    _, secret = make_token(alice)
    found = AccessToken.objects.find_live(secret)
    whole = AccessToken.objects.select_related("user").get()
    assert found is not None
    for mine, theirs in ((found, whole), (found.user, whole.user)):
        names = [field.attname for field in theirs._meta.concrete_fields]
        assert [getattr(mine, n) for n in names] == [getattr(theirs, n) for n in names]
    assert not found.user.has_perm("mastra_memory.access_all_resources")


def test_authenticate__costs_one_query_once_the_use_is_noted(
    alice: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    _, secret = make_token(alice)
    with django_assert_num_queries(2):
        ask(APIClient(), f"Bearer {secret}")
    with django_assert_num_queries(1):
        ask(APIClient(), f"bearer {secret}")


def test_authenticate__anonymous_is_401(alice: User) -> None:
    response = APIClient().get("/who")
    assert response.status_code == 401
    assert response["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize("header", ["Bearer", "Bearer a b", "Bearer mm_wrong", "Bearer ü☃"])
def test_authenticate__bad_headers_are_401(alice: User, header: str) -> None:
    response = ask(APIClient(), header)
    assert response.status_code == 401
    assert response["WWW-Authenticate"].startswith("Bearer")


def test_authenticate__expired_revoked_and_inactive_are_alike(alice: User) -> None:
    _, expired = make_token(alice, days=-1)
    revoked_token, revoked = make_token(alice)
    AccessToken.objects.filter(pk=revoked_token.pk).revoke()
    _, inactive = make_token(User.objects.create_user("gone", is_active=False))
    answers = {ask(APIClient(), f"Bearer {it}").content for it in (expired, revoked, inactive)}
    assert answers == {ask(APIClient(), "Bearer mm_unknown").content}


def test_authenticate__other_schemes_are_left_to_the_session(alice: User) -> None:
    client = APIClient()
    client.force_login(alice)
    assert ask(client, "Basic YTpi").json() == {"user": "alice"}


def test_authenticate__the_hash_is_no_token(alice: User) -> None:
    token, _ = make_token(alice)
    assert ask(APIClient(), f"Bearer {token.secret_hash}").status_code == 401
