"""Vectors that are still to be made, as staff see them."""

import pytest
from django.test import Client
from django.utils import timezone

from mastra_memory.memory import Memory
from mastra_memory.models import EmbeddingRequest
from tests.admin.conftest import SignIn
from tests.support.factories import make_thread, some_messages

pytestmark = pytest.mark.django_db
LIST = "/admin/mastra_memory/embeddingrequest/"


@pytest.fixture(autouse=True)
def requests(db: None) -> None:
    """m0 waits, m1 failed once, m2 was given up."""
    Memory(options={"semanticRecall": True}).save_messages(
        some_messages(make_thread("bob", "t"), 3)
    )
    EmbeddingRequest.objects.filter(message="m1").update(error="slow down", attempts=1)
    EmbeddingRequest.objects.filter(message="m2").update(
        error="bad key", attempts=6, failed_at=timezone.now()
    )


def test_list__shows_attempts_and_errors(admin: Client) -> None:
    page = admin.get(LIST).content.decode()
    assert "bad key" in page and "slow down" in page and "m0" in page


@pytest.mark.parametrize(
    ("state", "shown"), [("pending", "m0"), ("retrying", "m1"), ("failed", "m2")]
)
def test_list__by_state(admin: Client, state: str, shown: str) -> None:
    page = admin.get(LIST, {"state": state}).content.decode()
    assert [key for key in ("m0", "m1", "m2") if f">{key}<" in page] == [shown]


def test_retry__begins_again(admin: Client) -> None:
    chosen = list(EmbeddingRequest.objects.values_list("pk", flat=True))
    body = {"action": "retry", "_selected_action": chosen}
    page = admin.post(LIST, body, follow=True).content.decode()
    assert "1 message will be retried." in page
    assert not EmbeddingRequest.objects.failed().exists()
    assert EmbeddingRequest.objects.get(message="m2").attempts == 0


def test_retry__not_without_the_right(sign_in: SignIn) -> None:
    client = sign_in("ana", "view_thread", "view_embeddingrequest")
    chosen = list(EmbeddingRequest.objects.values_list("pk", flat=True))
    client.post(LIST, {"action": "retry", "_selected_action": chosen})
    assert EmbeddingRequest.objects.failed().count() == 1


def test_list__only_of_threads_that_may_be_seen(sign_in: SignIn) -> None:
    client = sign_in("ana", "view_embeddingrequest")
    assert "bad key" not in client.get(LIST).content.decode()
