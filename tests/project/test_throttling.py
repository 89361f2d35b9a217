"""Limits on how many requests a caller may send."""

from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from mastra_memory.api.views.base import MemoryViewSet
from project.models import AccessToken
from project.throttling import ScopedUserThrottle
from tests.support.factories import make_user

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _three_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ScopedUserThrottle, "rate", "3/min", raising=False)
    cache.clear()


def client_of(name: str, *, unscoped: bool = False) -> Client:
    """Return a client that sends a new user's access token."""
    token = AccessToken(user=make_user(name, unscoped=unscoped))
    secret = token.generate_secret()
    token.save()
    return Client(headers={"authorization": f"Bearer {secret}"})


def statuses(client: Client, count: int) -> list[int]:
    return [client.get("/api/memory/threads").status_code for _ in range(count)]


def test_scoped_user__is_limited_alone() -> None:
    ana, ben = client_of("ana"), client_of("ben")
    assert statuses(ana, 4) == [200, 200, 200, 429]
    refused = ana.post("/api/memory/threads?agentId=a", {}, content_type="application/json")
    assert refused.status_code == 429 and "throttled" in refused.json()["error"]
    assert 1 <= int(refused["Retry-After"]) <= 60
    assert statuses(ben, 1) == [200]


def test_unscoped_user__is_not_limited() -> None:
    assert statuses(client_of("server", unscoped=True), 5) == [200] * 5


def test_rate_of_none__is_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ScopedUserThrottle, "rate", None)
    monkeypatch.setattr(ScopedUserThrottle, "THROTTLE_RATES", {"scoped": None})
    assert statuses(client_of("ana"), 5) == [200] * 5


def test_viewsets__take_the_throttles_of_the_host() -> None:
    def own(kind: type[Any]) -> bool:
        return "throttle_classes" in vars(kind) or any(map(own, kind.__subclasses__()))

    assert not own(MemoryViewSet)
    assert MemoryViewSet.throttle_classes == [ScopedUserThrottle]
