"""The list of messages over all conversations."""

from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from mastra_memory.models import Message
from mastra_memory.review import message_search
from tests.admin.conftest import SignIn
from tests.admin.pages import page_of, text_of
from tests.conftest import Statements
from tests.support.factories import make_thread, save, some_messages

pytestmark = pytest.mark.django_db
LIST = "/admin/mastra_memory/message/"


def save_message(thread_id: str, pk: str, *parts: dict[str, Any], role: str = "user") -> None:
    content = {"format": 2, "parts": list(parts)}
    owner = {"threadId": thread_id, "resourceId": "bob"}
    save([{"id": pk, "role": role, "content": content, **owner}])


def text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def tool_part(state: str) -> dict[str, Any]:
    call = {"state": state, "toolName": "look", "toolCallId": "c", "args": {}, "errorText": "no"}
    return {"type": "tool-invocation", "toolInvocation": call}


@pytest.fixture
def conversations(db: None) -> None:
    """Two conversations: one with a failed tool call, one with a successful one."""
    for pk in ("tent", "boot"):
        make_thread("bob", pk, title=f"About a {pk}")
    save_message("tent", "m1", text_part("My tent leaks"))
    save_message("tent", "m2", text_part("Sorry"), tool_part("output-error"), role="assistant")
    save_message("boot", "m3", text_part("The boots fit"), tool_part("result"), role="assistant")


def listed(client: Client, **query: str) -> set[str]:
    """Return the ids of the messages on the list."""
    page = client.get(LIST, query)
    assert page.status_code == 200
    return {message.pk for message in page.context["cl"].result_list}


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ({}, {"m1", "m2", "m3"}),
        ({"q": "tent"}, {"m1"}),
        ({"q": "leaks tent"}, {"m1"}),
        ({"q": "nothing"}, set()),
        ({"q": "m3"}, {"m3"}),
        ({"role__exact": "assistant"}, {"m2", "m3"}),
        ({"tool_call": "yes"}, {"m2", "m3"}),
        ({"tool_call": "no"}, {"m1"}),
        ({"error": "yes"}, {"m2"}),
        ({"error": "no"}, {"m1", "m3"}),
        ({"error": "no", "q": "sorry"}, set()),
        ({"created_at__gte": "2100-01-01 00:00:00+00:00"}, set()),
    ],
)
def test_list__searches_and_filters(
    reviewer: Client, conversations: None, query: dict[str, str], ids: set[str]
) -> None:
    assert listed(reviewer, **query) == ids


def test_list__links_into_the_conversation(reviewer: Client, conversations: None) -> None:
    page = reviewer.get(LIST, {"q": "tent"})
    href = page_of("tent", at="m1")
    assert f'href="{href}"' in page.content.decode()
    assert "<mark>tent</mark>" in page.content.decode() and "About a tent" in text_of(page)
    assert reviewer.get(f"{LIST}m1/change/")["Location"] == href
    assert "mm-target" in reviewer.get(href).content.decode()


def test_list__changes_nothing(admin: Client, conversations: None) -> None:
    rows = {"action": "delete_selected", "_selected_action": ["m1"], "post": "yes"}
    admin.post(LIST, rows)
    assert admin.post(f"{LIST}m1/delete/", {"post": "yes"}).status_code == 403
    assert admin.get(f"{LIST}add/").status_code == 403
    assert Message.objects.count() == 3


def test_list__shows_only_visible_threads(
    admin: Client, conversations: None, settings: Settings
) -> None:
    settings.MASTRA_MEMORY = {"ADMIN_THREADS": "tests.admin.test_access.only_alice"}
    for query in ({}, {"q": "tent"}, {"q": "m1"}, {"error": "yes"}):
        assert listed(admin, **query) == set()
    assert admin.get(f"{LIST}m1/change/").status_code == 404


def test_list__masks_and_does_not_find_masked_words(sign_in: SignIn, admin: Client) -> None:
    make_thread("bob", "t", title="Of zoe@example.com")
    save_message("t", "m1", text_part("Mail zoe@example.com please"))
    masked = sign_in("ana", "view_thread")
    page = masked.get(LIST).content.decode()
    assert "zoe@example.com" not in page and "[email]" in page
    assert listed(masked, q="please") == {"m1"}
    assert listed(masked, q="zoe@example.com") == listed(masked, q="zoe") == set()
    assert listed(admin, q="zoe") == {"m1"}


def test_list__needs_the_right_to_view_conversations(sign_in: SignIn, conversations: None) -> None:
    client = sign_in("nobody")
    assert client.get(LIST).status_code == 403
    assert client.get(f"{LIST}m1/change/").status_code == 403


def test_autocomplete__of_messages_is_off(admin: Client, conversations: None) -> None:
    field = {"app_label": "mastra_memory", "model_name": "embeddingrequest"}
    query = {**field, "field_name": "message", "term": "tent"}
    assert admin.get("/admin/autocomplete/", query).status_code in (403, 404)


def test_list__covers_recent_conversations_unless_searched(
    reviewer: Client, conversations: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_search, "MAX_LISTED_THREADS", 1)
    assert len(listed(reviewer)) < 3
    assert listed(reviewer, q="tent") == {"m1"} and listed(reviewer, q="boots") == {"m3"}


@pytest.mark.parametrize(("query", "limit"), [({}, 8), ({"q": "message", "role": "user"}, 14)])
def test_list__costs_a_fixed_number_of_statements(
    reviewer: Client, statements: Statements, query: dict[str, str], limit: int
) -> None:
    counts = []
    for _ in range(2):
        for _n in range(10):
            thread = make_thread()
            save(some_messages(thread, 2, prefix=f"{thread.id}-"))
        with statements() as sent:
            reviewer.get(LIST, query)
        counts.append(len(sent))
        assert not [sql for sql in sent if "LIKE" in sql.upper().split("WHERE")[-1]]
    assert counts[0] == counts[1] <= limit, sent


def test_list__counts_no_further_than_needed(
    reviewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mastra_memory.admin.changelist.MAX_COUNT", 60)
    monkeypatch.setattr("mastra_memory.admin.message.MAX_COUNT", 60)
    save(some_messages(make_thread(), 130))
    page = reviewer.get(LIST)
    assert "more than 1,000 messages" in text_of(page) and "Older" in text_of(page)
    assert page.context["cl"].result_count == 61
