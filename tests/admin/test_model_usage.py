"""The page of model usage: every call, and what they cost together."""

from decimal import Decimal

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from mastra_memory.llm import usage
from mastra_memory.models import ModelUsage
from tests.support.factories import make_thread, make_user

URL = "/admin/mastra_memory/modelusage/"
TITLE, SUMMARY = ModelUsage.Purpose.TITLE, ModelUsage.Purpose.SUMMARY


@pytest.fixture
def staff(db: None, client: Client) -> Client:
    client.force_login(make_user("boss", unscoped=True))
    return client


def called(
    purpose: ModelUsage.Purpose = TITLE,
    thread_id: str | None = "t",
    cost: Decimal | None = Decimal("0.0125"),
) -> None:
    usage.record_usage(
        purpose,
        "openai/gpt-5-mini",
        input_tokens=1200,
        output_tokens=30,
        cost=cost,
        thread_id=thread_id,
    )


def test_list__shows_calls_and_their_sum(staff: Client) -> None:
    make_thread("ann", "t")
    called()
    called(SUMMARY)
    page = staff.get(URL)
    assert page.status_code == 200
    text = " ".join(page.content.decode().split())
    assert "2 calls: 2400 tokens in, 60 out, 0.0250 US dollars" in text
    one = staff.get(URL, {"purpose__exact": "summary"}).content.decode()
    assert "1 call: 1200 tokens in" in one


def test_list__shows_no_cost_without_a_price(staff: Client) -> None:
    make_thread("ann", "t")
    called(cost=None)
    page = " ".join(staff.get(URL).content.decode().split())
    assert "1 call: 1200 tokens in, 30 out </caption>" in page


def test_list__without_calls_has_no_sum(staff: Client) -> None:
    assert "tokens in" not in staff.get(URL).content.decode()


def test_list__one_call_and_nothing_to_change(staff: Client) -> None:
    called(thread_id=None)
    row = ModelUsage.objects.get()
    assert staff.get(f"{URL}{row.pk}/change/").status_code == 200
    assert staff.get(f"{URL}add/").status_code == 403


def test_list__is_for_those_who_may_see_it(client: Client, db: None) -> None:
    user = User.objects.create(username="sam", is_staff=True)
    client.force_login(user)
    assert client.get(URL).status_code == 403
    user.user_permissions.set(Permission.objects.filter(codename="view_modelusage"))
    make_thread("ann", "t")
    called()
    shown = client.get(URL).content.decode()
    assert "gpt-5-mini" not in shown, "only users who may see threads"
