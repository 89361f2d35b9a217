"""The rules that a host project sets for REST framework hold for our routes."""

from collections.abc import Callable
from typing import Any

import pytest
from django.core.cache import cache
from django.urls import include, path
from django.utils.translation import gettext_lazy
from pytest_django import Settings
from rest_framework.authentication import BaseAuthentication
from rest_framework.permissions import AllowAny, BasePermission
from rest_framework.renderers import BrowsableAPIRenderer
from rest_framework.response import Response
from rest_framework.test import APIClient
from rest_framework.throttling import SimpleRateThrottle
from rest_framework.versioning import (
    NamespaceVersioning,
    QueryParameterVersioning,
    URLPathVersioning,
)

from mastra_memory.api import errors
from mastra_memory.memory import Memory
from tests.conftest import Person
from tests.support.factories import a_message, make_thread

pytestmark = [pytest.mark.django_db, pytest.mark.urls(__name__)]

THREADS = "/api/memory/threads"
HERE = f"{__name__}."
ROUTES = "mastra_memory.api.urls"

urlpatterns = [
    path("api/", include(ROUTES)),
    path("v2/api/", include((ROUTES, "memory"), namespace="v2")),
    path("<version>/path/", include(ROUTES)),
    path("tenants/<slug:tenant>/", include(ROUTES)),
]


class ByNamespace(NamespaceVersioning):
    """Two versions."""

    default_version, allowed_versions = "v1", ("v1", "v2")


class ByPath(URLPathVersioning):
    """One version."""

    default_version, allowed_versions = "v1", ("v1",)


class ByQuery(QueryParameterVersioning):
    """One version."""

    default_version, allowed_versions = "v1", ("v1",)


class HasContract(BasePermission):
    """Refuse users without a contract."""

    message = "Your contract has ended"

    def has_permission(self, request: Any, view: Any) -> bool:
        """Return False for users whose last name is `Cancelled`."""
        return bool(request.user.last_name != "Cancelled")


class IsTenant(BasePermission):
    """Allow the tenant in the address."""

    def has_permission(self, request: Any, view: Any) -> bool:
        """Return True for the tenant `acme`."""
        return bool(view.kwargs.get("tenant") == "acme")


class OncePerTest(SimpleRateThrottle):
    """Allow one request."""

    rate = "1/day"

    def get_cache_key(self, request: Any, view: Any) -> str:
        """Count all requests together."""
        return "once-per-test"


class Header(BaseAuthentication):
    """Authenticate nobody."""

    def authenticate(self, request: Any) -> None:
        """Return None."""

    def authenticate_header(self, request: Any) -> str:
        """Return the challenge."""
        return "Product"


class ProductPages(BrowsableAPIRenderer):
    """The product's own browsable API."""


def wrap_errors(error: Exception, context: Any) -> Response | None:
    """Wrap our errors in the format of the product."""
    response = errors.handle_exception(error, context)
    if response is not None:
        response.data = {"product": gettext_lazy("Invalid"), "inner": response.data}
    return response


@pytest.fixture
def rules(settings: Settings) -> Callable[..., None]:
    """Return a function that sets the product's `REST_FRAMEWORK`."""

    def configure(**chosen: Any) -> None:
        settings.REST_FRAMEWORK = chosen

    return configure


@pytest.fixture
def client(alice: Person) -> APIClient:
    """A client of alice, with one thread."""
    client = APIClient()
    client.force_authenticate(alice.user)
    thread = make_thread(alice.resource_id, "t")
    Memory().save_messages([a_message(thread, "m", text="Hello")])
    return client


def test_permissions__of_the_product_apply_in_addition(
    client: APIClient, alice: Person, rules: Callable[..., None]
) -> None:
    rules(DEFAULT_PERMISSION_CLASSES=[HERE + "HasContract"])
    assert client.get(THREADS).status_code == 200
    alice.user.last_name = "Cancelled"
    refused = client.get(THREADS)
    assert refused.status_code == 403 and "contract has ended" in refused.json()["error"]


def test_permissions__of_the_product_do_not_replace_ours(
    client: APIClient, bob: Person, rules: Callable[..., None]
) -> None:
    rules(DEFAULT_PERMISSION_CLASSES=["rest_framework.permissions.AllowAny"])
    assert APIClient().get(THREADS).status_code in (401, 403)
    client.force_authenticate(bob.user)
    assert client.get(f"{THREADS}/t").status_code == 403
    assert client.post(f"{THREADS}/t/transfer", {"resourceId": "x"}).status_code == 403


def test_rest_framework__names_other_classes_for_our_routes(
    client: APIClient, alice: Person, rules: Callable[..., None], memory_settings: Any
) -> None:
    rules(
        DEFAULT_PERMISSION_CLASSES=[HERE + "HasContract"],
        DEFAULT_AUTHENTICATION_CLASSES=["rest_framework.authentication.SessionAuthentication"],
    )
    memory_settings(
        REST_FRAMEWORK={
            "DEFAULT_PERMISSION_CLASSES": [AllowAny],
            "DEFAULT_AUTHENTICATION_CLASSES": [HERE + "Header"],
        }
    )
    alice.user.last_name = "Cancelled"
    assert client.get(THREADS).status_code == 200
    anonymous = APIClient().get(THREADS)
    assert anonymous.status_code == 401 and anonymous["WWW-Authenticate"] == "Product"


def test_throttles__of_the_product_apply(client: APIClient, rules: Callable[..., None]) -> None:
    cache.delete("once-per-test")
    rules(DEFAULT_THROTTLE_CLASSES=[HERE + "OncePerTest"])
    assert client.get(THREADS).status_code == 200
    throttled = client.get(THREADS)
    assert throttled.status_code == 429 and int(throttled["Retry-After"]) > 0


@pytest.mark.parametrize(
    ("renderers", "html"),
    [
        (["rest_framework.renderers.JSONRenderer"], False),
        ([HERE + "ProductPages", "rest_framework.renderers.JSONRenderer"], True),
    ],
)
def test_renderers__show_pages_only_if_the_product_does(
    client: APIClient, rules: Callable[..., None], renderers: list[str], html: bool
) -> None:
    rules(DEFAULT_RENDERER_CLASSES=renderers)
    page = client.get(THREADS, headers={"accept": "text/html"})
    assert page.status_code == 200 and ("text/html" in page["Content-Type"]) is html


@pytest.mark.parametrize("address", [THREADS, "/v2/api/memory/threads", f"{THREADS}/t/messages"])
def test_versioning__by_namespace_does_not_hide_routes(
    client: APIClient, rules: Callable[..., None], address: str
) -> None:
    rules(DEFAULT_VERSIONING_CLASS=HERE + "ByNamespace")
    assert client.get(address).status_code == 200


@pytest.mark.parametrize(
    ("scheme", "address", "status"),
    [
        ("ByPath", "/v1/path/memory/threads", 200),
        ("ByPath", "/v7/path/memory/threads", 404),
        ("ByPath", "/v1/path/memory/threads/t/messages", 200),
        ("ByQuery", f"{THREADS}?version=v1", 200),
        ("ByQuery", f"{THREADS}?version=v7", 404),
    ],
)
def test_versioning__of_the_product_applies(
    client: APIClient,
    rules: Callable[..., None],
    scheme: str,
    address: str,
    status: int,
) -> None:
    rules(DEFAULT_VERSIONING_CLASS=HERE + scheme)
    assert client.get(address).status_code == status


def test_prefix__may_have_parameters(client: APIClient, rules: Callable[..., None]) -> None:
    rules(DEFAULT_PERMISSION_CLASSES=[HERE + "IsTenant"])
    assert client.get("/tenants/acme/memory/threads/t/messages").status_code == 200
    assert client.get("/tenants/other/memory/threads/t/messages").status_code == 403
    assert client.get("/tenants/acme/memory/nowhere").status_code == 404


def test_exception_handler__of_the_product_is_not_used_for_our_contract(
    client: APIClient, rules: Callable[..., None]
) -> None:
    rules(EXCEPTION_HANDLER=HERE + "wrap_errors")
    assert client.get(f"{THREADS}/nobody").json() == {"error": "Thread not found"}


def test_exception_handler__can_be_named_and_wrap_ours(
    client: APIClient, memory_settings: Any
) -> None:
    memory_settings(REST_FRAMEWORK={"EXCEPTION_HANDLER": HERE + "wrap_errors"})
    missing = client.get(f"{THREADS}/nobody")
    assert missing.status_code == 404
    assert missing.json() == {"product": "Invalid", "inner": {"error": "Thread not found"}}


def test_response__has_the_data_of_its_json(client: APIClient) -> None:
    for address in (THREADS, f"{THREADS}/t", f"{THREADS}/t/messages", f"{THREADS}/nobody"):
        response = client.get(address)
        assert response.data == response.json()
    large = client.get(f"{THREADS}/t/messages")
    assert large.data["messages"][0]["id"] == "m"


def test_response__of_a_streamed_list_has_data_too(client: APIClient, alice: Person) -> None:
    thread = Memory().get_thread("t")
    Memory().save_messages([a_message(thread, f"n{n}", text="x" * 600_000) for n in range(3)])
    response: Any = client.post(f"{THREADS}/t/clone?agentId=a", {}, format="json")
    assert response.streaming and len(response.data["clonedMessages"]) == 4
    assert len(response.data["clonedMessages"]) == 4
