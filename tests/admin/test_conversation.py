"""The conversation page: what is on it, its ways out, and what it costs."""

from datetime import timedelta
from urllib.parse import quote

import pytest
from django.test import Client
from django.utils import timezone

from mastra_memory.models import Message, ModelUsage, ReviewNote, Visit
from mastra_memory.working_memory import save_for_resource
from tests.admin.pages import LIST, page_of, text_of, user_of
from tests.conftest import Statements
from tests.support.factories import a_message, fill, make_record, make_thread, save, some_messages

pytestmark = pytest.mark.django_db

TOOL = {
    "type": "tool-invocation",
    "createdAt": 1000,
    "toolInvocation": {
        "state": "output-error",
        "toolCallId": "c1",
        "toolName": "lookupOrder",
        "args": {"order": "F-1"},
        "errorText": "no answer within 10 s",
    },
}


def test_page__shows_parts_as_what_they_are(reviewer: Client) -> None:
    thread = make_thread()
    parts = [
        {"type": "reasoning", "reasoning": "think first"},
        TOOL,
        {"type": "text", "text": "**bold** and `code`", "createdAt": 3500},
        {"type": "weather", "degrees": 21},
        {"type": "source", "source": {"url": "https://docs.example/a", "title": "Manual"}},
    ]
    save([a_message(thread, role="assistant", content={"format": 2, "parts": parts})])
    response = reviewer.get(page_of(thread.id))
    page, html = text_of(response), response.content.decode()
    assert "Reasoning think first" in page
    assert "lookupOrder failed 2.5 s no answer within 10 s" in page
    assert '"order": "F-1"' in page and '"degrees": 21' in page
    assert "<strong>bold</strong>" in html and "<code>code</code>" in html
    assert 'href="https://docs.example/a"' in html and "Next tool error (1)" in page


def test_page__shows_days_and_gaps(reviewer: Client) -> None:
    thread = make_thread()
    save([a_message(thread, at=at) for at in (0, 60, 2 * 3600, 90 * 3600)])
    page = text_of(reviewer.get(page_of(thread.id)))
    assert page.count("Jan. 1, 2024") == 1
    assert "1 hour later" in page and "Jan. 4, 2024" in page


def test_page__never_loads_a_long_thread_at_once(reviewer: Client) -> None:
    thread = make_thread()
    fill(thread, 500)
    html = reviewer.get(page_of(thread.id)).content.decode()
    assert html.count("<article") == 40 and "Earlier messages" in html
    assert "Message 499" in html and "Message 459" not in html
    earlier = reviewer.get(page_of(thread.id, before=f"{thread.id}:460", part="1"))
    assert earlier.content.decode().count("<article") == 40
    assert b"Message 459" in earlier.content and b"Later messages" not in earlier.content


def test_page__opens_around_the_message_one_came_for(reviewer: Client) -> None:
    thread = make_thread()
    fill(thread, 500)
    html = reviewer.get(page_of(thread.id, at=f"{thread.id}:250")).content.decode()
    assert "data-target" in html and "Earlier messages" in html and "Later messages" in html
    assert "Message 250" in html and "Message 240" in html and "Message 279" in html


def test_page__of_a_message_that_is_not_there_is_the_end(reviewer: Client) -> None:
    thread = make_thread()
    fill(thread, 50)
    other = make_thread("bob")
    save([a_message(other, "foreign", text="not here")])
    for at in ("nowhere", "foreign"):
        html = reviewer.get(page_of(thread.id, at=at)).content.decode()
        assert "Message 49" in html and "not here" not in html


def test_page__ties_of_time_are_paged_without_loss(reviewer: Client) -> None:
    thread = make_thread()
    save([a_message(thread, f"t{n:03}", at=0, text=f"tie {n:03}") for n in range(100)])
    shown = reviewer.get(page_of(thread.id)).content.decode()
    before = reviewer.get(page_of(thread.id, before="t060")).content.decode()
    assert "tie 060" in shown and "tie 059" not in shown
    assert "tie 059" in before and "tie 020" in before and "tie 060" not in before


def test_find__leads_to_the_matches(reviewer: Client) -> None:
    thread = make_thread()
    fill(thread, 200)
    save([a_message(thread, "needle", text="a needle in the hay", at=50.5)])
    html = reviewer.get(page_of(thread.id, find="needle")).content.decode()
    assert "a needle in the hay" in html and "Next match (1)" in html and "mm-match" in html
    assert "Nothing found" in text_of(reviewer.get(page_of(thread.id, find="unicorn")))


def test_unread__is_what_came_after_the_last_visit(reviewer: Client) -> None:
    thread = make_thread()
    save(some_messages(thread, 3))
    assert "First unread" not in text_of(reviewer.get(page_of(thread.id)))
    save([a_message(thread, "later", text="and one more", at=10)])
    page = text_of(reviewer.get(page_of(thread.id)))
    assert "First unread" in page and page.count(" new ") >= 1
    assert "First unread" not in text_of(reviewer.get(page_of(thread.id)))


def test_page__shows_the_sidebar(reviewer: Client) -> None:
    thread = make_thread("alice", title="One", metadata={"plan": "plus"})
    make_thread("alice", title="Another of hers")
    save(some_messages(thread, 2))
    save_for_resource("alice", "# Customer\n- likes tea", source="api")
    make_record(thread, active_observations="* she asked about tea", generation_count=2)
    ModelUsage.objects.create(
        thread_id=thread.id, resource_id="alice", purpose="title", model="x/y", input_tokens=120
    )
    ReviewNote.objects.create(thread_id=thread.id, text="look again", message_id="m1")
    page = text_of(reviewer.get(page_of(thread.id)))
    for words in ("Another of hers", '"plan": "plus"', "likes tea", "she asked about tea"):
        assert words in page
    for words in ("Generation 2", "Input tokens 120", "look again", "Next note (1)"):
        assert words in page


def test_here__names_the_others(reviewer: Client, admin: Client) -> None:
    thread = make_thread()
    save(some_messages(thread, 1))
    admin.get(page_of(thread.id))
    assert "root is looking at this conversation too" in text_of(reviewer.get(page_of(thread.id)))
    Visit.objects.filter(user_id=user_of(admin).pk).update(
        seen_at=timezone.now() - timedelta(minutes=2)
    )
    assert "root is looking" not in text_of(reviewer.get(page_of(thread.id)))


def test_list__marks_threads_with_messages_since_the_visit(reviewer: Client) -> None:
    seen, unopened = make_thread(title="Seen"), make_thread(title="Unopened")
    fill(seen, 2)
    fill(unopened, 2)
    reviewer.get(page_of(seen.id))
    assert "new messages" not in text_of(reviewer.get(LIST))
    save([a_message(seen, text="And now?", at=9_000)])
    page = text_of(reviewer.get(LIST))
    assert page.count("new messages") == 1 and "Seen new messages" in page


def test_here__reports_new_messages(reviewer: Client) -> None:
    thread = make_thread()
    fill(thread, 60)
    page = reviewer.get(page_of(thread.id) + "?from=start").content.decode()
    newest = Message.objects.order_by("-created_at", "-sequence").first()
    assert newest and f"newest={quote(newest.pk, safe='')}" in page
    here = f"{LIST}{thread.id}/here/"
    assert "new message" not in text_of(reviewer.get(here, {"newest": newest.pk}))
    assert "new message" not in text_of(reviewer.get(here, {"newest": "deleted"}))
    save([a_message(thread, at=9_000)])
    assert "There is 1 new message." in text_of(reviewer.get(here, {"newest": newest.pk}))


def test_page__costs_a_fixed_number_of_statements(reviewer: Client, statements: Statements) -> None:
    short, long = make_thread("alice"), make_thread("bob")
    save(some_messages(short, 2))
    fill(long, 3000)
    counts = []
    for thread in (short, long):
        reviewer.get(page_of(thread.id))
        with statements() as listed:
            reviewer.get(page_of(thread.id))
        counts.append(len(listed))
    assert counts[0] == counts[1] <= 36, listed


def test_observations__lead_to_their_sources(reviewer: Client) -> None:
    thread = make_thread()
    save(some_messages(thread, 3))
    text = '<observation-group id="a" range="m1:m2">\n* likes tea\n</observation-group>'
    make_record(thread, active_observations=text)
    html = reviewer.get(page_of(thread.id)).content.decode()
    assert "likes tea" in html and "observation-group" not in html
    assert f'<a href="{page_of(thread.id, at="m1")}">source 1</a>' in html
