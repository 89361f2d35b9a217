"""The thread list: filters, search, views, and what a page of it costs."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from mastra_memory.admin import thread_filters
from mastra_memory.embedding import indexing
from mastra_memory.memory import Memory
from mastra_memory.models import Message, Review, ReviewNote, SavedView, Thread
from mastra_memory.review import tags, word_search
from mastra_memory.working_memory import save_for_resource, save_for_thread
from tests.admin.pages import LIST, do, page_of, text_of, user_of
from tests.conftest import Statements
from tests.support.factories import a_message, fill, make_thread, save, some_messages

pytestmark = pytest.mark.django_db


def shown(client: Client, **query: str) -> list[str]:
    """The titles on the list, in order."""
    page = client.get(LIST, query or {"all": "1"}).content.decode()
    titles = page.split('class="mm-title"')[1:]
    return [title.split("<bdi>")[1].split("</bdi>")[0] for title in titles]


def make_failed(thread: Any) -> None:
    call = {"state": "output-error", "toolName": "look", "errorText": "no"}
    part = {"type": "tool-invocation", "toolInvocation": call}
    save([a_message(thread, content={"format": 2, "parts": [part]})])


def dated(thread: Any) -> None:
    old = datetime(2023, 5, 5, 12, tzinfo=UTC)
    Thread.objects.filter(pk=thread.id).update(created_at=old, updated_at=old)


MAKERS: dict[str, Callable[[Any], Any]] = {
    "status=flagged": lambda t: Review.objects.create(thread_id=t.id, status="flagged"),
    "priority=3": lambda t: Review.objects.create(thread_id=t.id, priority=3),
    "tag=late": lambda t: None,
    "notes=yes": lambda t: ReviewNote.objects.create(thread_id=t.id, text="x"),
    "tool_errors=yes": make_failed,
    "memory=yes": lambda t: save_for_thread(t.id, t.resource_id, "tea", source="api"),
    "origin=clone": lambda t: Thread.objects.filter(pk=t.id).update(clone_source_id="gone"),
    "min_messages=3": lambda t: fill(t, 3),
    "metadata=plan=plus, n=1": lambda t: Thread.objects.filter(pk=t.id).update(
        metadata={"plan": "plus", "n": 1, "x": True}
    ),
    "resource=carol": lambda t: Thread.objects.filter(pk=t.id).update(resource_id="carol"),
    "active_to=2023-05-05": dated,
    "created_to=2023-05-05": dated,
}

OPPOSITES = {
    "status=new": "status=flagged",
    "notes=no": "notes=yes",
    "tool_errors=no": "tool_errors=yes",
    "memory=no": "memory=yes",
    "origin=original": "origin=clone",
    "max_messages=2": "min_messages=3",
    "active_from=2023-05-06": "active_to=2023-05-05",
}


@pytest.mark.parametrize("query", [*MAKERS, *OPPOSITES])
def test_filter__keeps_matching_threads(reviewer: Client, query: str) -> None:
    wanted, other = make_thread(title="wanted"), make_thread("bob", title="other")
    save(some_messages(other, 1))
    kind = OPPOSITES.get(query, query)
    if kind == "tag=late":
        do(reviewer, wanted.id, "review", tag="late")
    MAKERS[kind](wanted)
    name, _, value = query.partition("=")
    expected = ["other"] if query in OPPOSITES else ["wanted"]
    assert shown(reviewer, **{name: value}) == expected


def test_filter__memory_of_the_resource_counts(reviewer: Client) -> None:
    make_thread("alice", title="hers")
    make_thread("bob", title="his")
    save_for_resource("alice", "tea", source="api")
    assert shown(reviewer, memory="yes") == ["hers"]
    save_for_resource("alice", "", source="api")
    assert shown(reviewer, memory="yes") == []


def test_filter__assignee_me_and_unassigned(reviewer: Client, admin: Client) -> None:
    mine, theirs, _free = (make_thread(title=name) for name in ("mine", "theirs", "free"))
    Review.objects.create(thread_id=mine.id, assignee_id=str(user_of(reviewer).pk))
    Review.objects.create(thread_id=theirs.id, assignee_id=str(user_of(admin).pk))
    assert shown(reviewer, assignee="me") == ["mine"]
    assert shown(reviewer, assignee="none") == ["free"]
    assert shown(reviewer, assignee=str(user_of(admin).pk)) == ["theirs"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"active_from": "yesterday"}, "Enter a valid date"),
        ({"metadata": "plan"}, "Use the format key=value"),
        ({"min_messages": "-1"}, "greater than or equal to 0"),
        ({"status": "vanished"}, "not one of the available choices"),
    ],
)
def test_filter__an_error_is_shown_and_no_threads(
    reviewer: Client, query: dict[str, str], message: str
) -> None:
    make_thread(title="x")
    response = reviewer.get(LIST, query)
    assert message in text_of(response) and "0 conversations" in text_of(response)


@pytest.mark.parametrize("query", [{"nonsense": "1"}, {"o": "99"}, {"p": "-1"}, {"p": "x"}])
def test_list__unknown_parameters_are_accepted(reviewer: Client, query: dict[str, str]) -> None:
    make_thread(title="x")
    assert reviewer.get(LIST, query, follow=True).status_code == 200


def test_search__finds_words_titles_and_ids(reviewer: Client) -> None:
    first = make_thread("alice", "t-1", title="Broken tent pole")
    second = make_thread("alice", "t-2", title="Another")
    save([a_message(first, "m-1", text="The café was closed <b>today</b>")])
    save([a_message(second, "m-2", text="My umbrella split")])
    assert shown(reviewer, q="closed") == ["Broken tent pole"]
    assert shown(reviewer, q="cafe") == ["Broken tent pole"]
    assert shown(reviewer, q="tent") == ["Broken tent pole"]
    assert shown(reviewer, q="umbrellas") == ["Another"]
    assert shown(reviewer, q="t-2") == ["Another"]
    assert shown(reviewer, q="m-2") == ["Another"]
    assert shown(reviewer, q="closed umbrella") == []
    page = reviewer.get(LIST, {"q": "closed"}).content.decode()
    assert "<mark>closed</mark> &lt;b&gt;today" in page
    assert page_of("t-1", at="m-1").replace("&", "&amp;") in page


@pytest.mark.parametrize(
    "words", ["'", '"', "a & | ! (", "\\", "\x00", "%", "x" * 5000, "!!", "the"]
)
def test_search__unusual_queries_are_accepted(reviewer: Client, words: str) -> None:
    save([a_message(make_thread(), text="hello")])
    assert reviewer.get(LIST, {"q": words}).status_code == 200


def test_search__common_words_search_only_recent_threads(
    reviewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_search, "COMMON_WORD_THRESHOLD", 0)
    monkeypatch.setattr(word_search, "MAX_NEWEST_THREADS", 1)
    for name in ("older", "newer"):
        save([a_message(make_thread(title=name), text="hello there")])
    assert shown(reviewer, q="hello") == ["newer"]
    assert "very common" in text_of(reviewer.get(LIST, {"q": "hello"}))


def test_search__within_filters(reviewer: Client) -> None:
    for resource in ("alice", "bob"):
        save([a_message(make_thread(resource, title=f"of {resource}"), text="hello there")])
    assert shown(reviewer, q="hello", resource="bob") == ["of bob"]


def test_list__pages_and_counts_without_counting_all(
    reviewer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mastra_memory.admin.changelist.MAX_COUNT", 60)
    for n in range(70):
        make_thread(title=f"T{n:02}", thread_id=f"t{n:02}")  # ids break ties of time
    first = reviewer.get(LIST)
    assert "more than 1,000 conversations" in text_of(first) and "Older" in text_of(first)
    assert shown(reviewer, p="2")[0] == "T19"


def test_list__costs_a_fixed_number_of_statements(reviewer: Client, statements: Statements) -> None:
    counts = []
    for _ in range(2):
        for _n in range(20):
            thread = make_thread()
            save(some_messages(thread, 2, prefix=f"{thread.id}-"))
            do(reviewer, thread.id, "review", tag="x")
        with statements() as listed:
            reviewer.get(LIST, {"q": "message"})
        counts.append(len(listed))
        assert not [sql for sql in listed if "LIKE" in sql.upper().split("WHERE")[-1]]
    assert counts[0] == counts[1] <= 25, listed


def view(client: Client, **fields: str) -> str:
    return text_of(client.post(f"{LIST}views/", fields, follow=True))


def test_views__are_saved_shared_and_opened_by_default(reviewer: Client, admin: Client) -> None:
    make_thread(title="x")
    query = "?status=flagged&q=tent"
    assert "The view was saved" in view(
        reviewer, save="", name="Angry", query=query[1:], shared="on", default="on"
    )
    saved = SavedView.objects.get()
    assert saved.query == "q=tent&status=flagged"
    assert reviewer.get(LIST)["Location"].endswith("?q=tent&status=flagged")
    assert reviewer.get(f"{LIST}?all=1").status_code == 200
    assert "Angry" in text_of(admin.get(LIST))
    view(admin, delete="", view=str(saved.pk))
    assert SavedView.objects.exists(), "only its owner may delete it"
    view(reviewer, make_default="", view="")
    assert reviewer.get(LIST).status_code == 200
    view(reviewer, delete="", view=str(saved.pk))
    assert not SavedView.objects.exists()


def test_views__private_ones_stay_private(reviewer: Client, admin: Client) -> None:
    view(reviewer, save="", name="Mine alone", query="status=new")
    assert "Mine alone" not in text_of(admin.get(LIST))
    view(admin, make_default="", view=str(SavedView.objects.get().pk))
    assert admin.get(LIST).status_code == 200


def test_views__keep_filters_and_nothing_else(reviewer: Client) -> None:
    view(reviewer, save="", name="x", query="status=new&next=//evil.example&p=3")
    assert SavedView.objects.get().query == "status=new"


def test_search__by_meaning_ranks_the_nearest_first(reviewer: Client) -> None:
    for title, text in (
        ("refund", "Please refund the payment for my order"),
        ("weather", "It rained the whole weekend in the mountains"),
        ("money", "I want my money back for this purchase"),
    ):
        Memory(options={"semanticRecall": True}).save_messages(
            [a_message(make_thread(title=title), text=text)]
        )
    indexing.embed_pending(seconds=20)
    assert shown(reviewer, q="reimburse the order", by="meaning") == ["refund", "money", "weather"]
    assert shown(reviewer, q="rain", by="meaning")[0] == "weather"


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("", None, None),
        ("today", date(2024, 3, 15), None),
        ("7", date(2024, 3, 9), None),
        ("30", date(2024, 2, 15), None),
        ("month", date(2024, 3, 1), None),
        ("last_month", date(2024, 2, 1), date(2024, 2, 29)),
    ],
)
def test_period__counts_from_today(name: str, first: date | None, last: date | None) -> None:
    assert thread_filters.get_period(name, date(2024, 3, 15)) == (first, last)


def test_filter__by_a_period_of_activity(reviewer: Client) -> None:
    make_thread(title="new")
    dated(make_thread("bob", title="old"))
    assert shown(reviewer, active="7") == ["new"]
    assert shown(reviewer, active="last_month") == []
    assert shown(reviewer, active="7", active_to="2023-05-06") == []
    assert "not one of the available choices" in text_of(reviewer.get(LIST, {"active": "x"}))


def test_chips__name_each_filter_and_the_list_without_it(reviewer: Client) -> None:
    make_thread(title="x")
    query = {"status": "new", "tool_errors": "no", "q": "x", "p": "1", "notes": ""}
    page = reviewer.get(LIST, query).content.decode()
    assert "Status new ×" in text_of(reviewer.get(LIST, query)) and "Filters (2)" in page
    assert 'href="?tool_errors=no&amp;q=x"' in page
    assert 'href="?all=1" aria-label="Remove the filter Status"' in (
        reviewer.get(LIST, {"status": "new"}).content.decode()
    )


def test_views__the_open_quick_view_is_marked(reviewer: Client) -> None:
    page = reviewer.get(LIST, {"status": "new", "assignee": "none"}).content.decode()
    assert re.search(r'mm-open"[^>]*>New and unassigned', page)


def test_search__by_words_offers_the_search_by_meaning(reviewer: Client) -> None:
    save([a_message(make_thread(title="x"), text="My umbrella split")])
    for words in ("broken", "umbrella"):
        page = reviewer.get(LIST, {"q": words, "status": "new", "p": "1"}).content.decode()
        assert f'href="?q={words}&amp;status=new&amp;by=meaning"' in page
    page = text_of(reviewer.get(LIST, {"q": "umbrella", "by": "meaning"}))
    assert "Search by meaning" not in page and "most similar conversations come first" in page


def test_preview__leaves_out_signs_of_markdown(reviewer: Client) -> None:
    text = "# Hi\n| a | **b** |\n|---|---|\n| `code` | snake_case |"
    save([a_message(make_thread(), text=text)])
    assert "Hi a b code snake_case" in text_of(reviewer.get(LIST))


def test_tags__count_only_what_is_visible(admin: Client, settings: Settings) -> None:
    for resource in ("alice", "bob"):
        do(admin, make_thread(resource).id, "review", tag="late")
    assert "late 2" in text_of(admin.get("/admin/mastra_memory/tag/"))
    settings.MASTRA_MEMORY = {"ADMIN_THREADS": "tests.admin.test_access.only_alice"}
    assert "late 1" in text_of(admin.get("/admin/mastra_memory/tag/"))


def test_search__operators(reviewer: Client) -> None:
    for name, text in {
        "both": "I was charged twice, thank you",
        "one": "I was charged twice, card declined",
        "phrase": "twice the card was declined",
    }.items():
        save([a_message(make_thread(title=name), text=text)])
    assert shown(reviewer, q="charged -thank") == ["one"]
    assert shown(reviewer, q='twice -"thank you"') == ["phrase", "one"]
    assert shown(reviewer, q='"card declined"') == ["one"]
    assert shown(reviewer, q='"card declined" -thank') == ["one"]
    assert shown(reviewer, q='“card declined” OR "thank you"') == ["one", "both"]
    assert shown(reviewer, q="thank OR declined charged") == ["one", "both"]


@pytest.mark.parametrize(
    ("query", "notice"),
    [
        ("the of and", "too common"),
        ("-thank", "only excludes words"),
        ("tag:x -thank", "only excludes words"),
        ("?!", "Enter letters or digits"),
        ("after:someday", "expects a date"),
        ("role:nobody", "must be one of user"),
    ],
)
def test_search__explains_why_nothing_is_found(reviewer: Client, query: str, notice: str) -> None:
    save([a_message(make_thread(), "m", text="thank you")])
    assert notice in text_of(reviewer.get(LIST, {"q": query}))
    if "tag:" not in query:
        messages = reviewer.get("/admin/mastra_memory/message/", {"q": query})
        assert notice in text_of(messages)
    thread = Message.objects.get().thread
    if "tag:" not in query:
        assert notice in text_of(reviewer.get(page_of(thread.pk, find=query)))


def test_search__ranks_by_what_is_met_and_names_missing_words(reviewer: Client) -> None:
    save([a_message(make_thread(title="both"), text="the blue umbrella")])
    save([a_message(make_thread(title="one"), text="an umbrella")])
    assert shown(reviewer, q="blue umbrella zebra") == ["both", "one"]
    page = text_of(reviewer.get(LIST, {"q": "blue umbrella zebra"}))
    assert "No conversation contains: zebra" in page and "contains: blue" not in page


def test_search__fields_of_conversations(reviewer: Client) -> None:
    thread = make_thread("user-17", title="tagged")
    save([a_message(thread, "m1", text="umbrella", createdAt="2023-11-14T10:00:00Z")])
    save([a_message(make_thread(title="other"), text="umbrella", createdAt="2020-09-13T10:00:00Z")])
    tags.add_tag([thread.id], "vip", by=user_of(reviewer))
    do(reviewer, thread.id, "note", text="Call back on Friday—urgently")
    assert shown(reviewer, q="tag:VIP") == ["tagged"]
    assert shown(reviewer, q="-tag:vip") == ["other"]
    assert shown(reviewer, q="umbrella -tag:vip") == ["other"]
    assert shown(reviewer, q="note:urgently") == ["tagged"]
    assert shown(reviewer, q='note:"call back" umbrella') == ["tagged"]
    assert shown(reviewer, q="friday") == ["tagged"]
    assert shown(reviewer, q="resource:user-17") == ["tagged"]
    assert shown(reviewer, q="user-17") == ["tagged"]
    assert shown(reviewer, q="umbrella after:2023") == ["tagged"]
    assert shown(reviewer, q="umbrella before:2023-01-01") == ["other"]
