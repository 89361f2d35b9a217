"""Who may see and do what: by rights, by the host's hook, and by typing addresses."""

from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.test import Client
from pytest_django import Settings

from mastra_memory.embedding import indexing
from mastra_memory.memory import Memory
from mastra_memory.models import (
    Criterion,
    Review,
    ReviewNote,
    Score,
    Tag,
    Thread,
    ThreadTag,
    WorkingMemory,
)
from mastra_memory.working_memory import save_for_resource, save_for_thread
from tests.admin.conftest import SignIn
from tests.admin.pages import LIST, do, page_of, text_of, user_of
from tests.support.factories import a_message, make_record, make_thread, save

pytestmark = pytest.mark.django_db


def only_alice(request: Any, threads: Any) -> Any:
    """What a host would write: this member of staff looks after one resource."""
    return threads.filter(resource_id="alice")


@pytest.fixture
def hooked(settings: Settings) -> None:
    settings.MASTRA_MEMORY = {"ADMIN_THREADS": "tests.admin.test_access.only_alice"}


def addresses(thread_id: str) -> list[str]:
    """Every page that shows something of a thread."""
    base = f"{LIST}{quote(thread_id)}"
    sequence = Thread.objects.get(pk=thread_id).messages.first().sequence  # type: ignore[union-attr]
    return [
        f"{base}/change/",
        f"{base}/change/?part=1",
        f"{base}/here/",
        f"{base}/print/",
        f"{base}/history/",
        f"{base}/delete/",
        f"{base}/edit/title/",
        f"{base}/edit/metadata/",
        f"{base}/edit/message/?message=m1",
        f"{base}/file/{sequence}/0/",
        f"{base}/text/message/{sequence}/",
    ]


def save_conversation(resource_id: str = "bob", thread_id: str = "secret") -> str:
    thread = make_thread(resource_id, thread_id, title=f"Talk of {resource_id}")
    save([a_message(thread, f"{thread_id}-m", text="the password is tulip")])
    return thread.id


def test_pages__staff_without_the_right_see_nothing(sign_in: SignIn) -> None:
    client = sign_in("nobody")
    save_conversation()
    for address in [LIST, f"{LIST}team/", f"{LIST}next/", *addresses("secret")]:
        response = client.get(address)
        assert response.status_code == 403, address
        assert b"tulip" not in response.content


def test_pages__visitors_are_sent_to_the_sign_in(client: Client) -> None:
    save_conversation()
    for address in [LIST, f"{LIST}team/", *addresses("secret")]:
        response = client.get(address)
        assert response.status_code == 302, address
        assert "/login/" in response["Location"]


def test_reviewer__reads_and_reviews(reviewer: Client) -> None:
    thread_id = save_conversation()
    assert "the password is tulip" in text_of(reviewer.get(page_of(thread_id)))
    do(reviewer, thread_id, "review", status="resolved", version="0")
    do(reviewer, thread_id, "note", text="Well done")
    do(reviewer, thread_id, "tag", tag="good")
    assert Review.objects.get().status == "resolved"
    assert ReviewNote.objects.get().text == "Well done"


@pytest.mark.parametrize("verb", ["drop", "transfer", "undo", "clone"])
def test_reviewer__edits_nothing(reviewer: Client, verb: str) -> None:
    thread_id = save_conversation()
    fields = {"message": "secret-m", "resource": "mallory"}
    assert do(reviewer, thread_id, verb, **fields).status_code == 403
    thread = Thread.objects.get()
    assert (thread.resource_id, thread.messages.count()) == ("bob", 1)


@pytest.mark.parametrize("page", ["edit/title", "edit/metadata", "delete", "print", "history"])
def test_reviewer__has_no_page_for_what_is_not_allowed(reviewer: Client, page: str) -> None:
    save_conversation()
    assert reviewer.get(f"{LIST}secret/{page}/").status_code == 403
    assert reviewer.post(f"{LIST}secret/{page}/", {"text": "x", "post": "yes"}).status_code == 403
    assert Thread.objects.get().title == "Talk of bob"


def test_reviewer__sees_no_button_for_what_is_not_allowed(reviewer: Client) -> None:
    page = text_of(reviewer.get(page_of(save_conversation())))
    for word in ("Edit text", "Delete message", "Clone", "Transfer", "Delete this conversation"):
        assert word not in page.replace("Clones", "").replace("a clone nor cloned", "")


def test_rights__are_apart(sign_in: SignIn) -> None:
    thread_id = save_conversation()
    viewer = sign_in("viewer", "view_thread")
    assert do(viewer, thread_id, "review", status="resolved").status_code == 403
    assert do(viewer, thread_id, "note", text="x").status_code == 403
    assert viewer.get(f"{LIST}{thread_id}/print/").status_code == 403
    exporter = sign_in("exporter", "view_thread", "export_thread")
    assert exporter.get(f"{LIST}{thread_id}/print/").status_code == 200
    assert do(exporter, thread_id, "drop", message="secret-m").status_code == 403
    editor = sign_in("editor", "view_thread", "edit_transcript")
    assert do(editor, thread_id, "review", status="resolved").status_code == 403
    assert editor.get(f"{LIST}{thread_id}/delete/").status_code == 403
    assert do(editor, thread_id, "drop", message="secret-m").status_code == 200
    assert Thread.objects.get().messages.count() == 0


def test_rights__editing_alone_shows_nothing(sign_in: SignIn) -> None:
    client = sign_in("editor", "edit_transcript", "delete_thread")
    for address in addresses(save_conversation()):
        assert client.get(address).status_code == 403, address


@pytest.mark.usefixtures("hooked")
class TestHook:
    """A host narrows what a member of staff may see."""

    def test_list__shows_counts_and_finds_only_what_is_visible(self, reviewer: Client) -> None:
        save_conversation("bob")
        save_conversation("alice", "mine")
        page = text_of(reviewer.get(f"{LIST}?all=1"))
        assert "Talk of alice" in page and "bob" not in page and "1 conversation" in page
        for query in ("q=tulip", "q=secret", "q=secret-m", "q=Talk", "resource=bob"):
            page = text_of(reviewer.get(f"{LIST}?{query}"))
            assert "Talk of bob" not in page, query

    def test_search__by_meaning_stays_within(self, reviewer: Client) -> None:
        for resource in ("bob", "alice"):
            thread = make_thread(resource, title=f"Talk of {resource}")
            memory = Memory(options={"semanticRecall": True})
            memory.save_messages([a_message(thread, text="please refund my money")])
        indexing.embed_pending(seconds=20)
        page = text_of(reviewer.get(LIST, {"q": "refund", "by": "meaning"}))
        assert "Talk of alice" in page and "Talk of bob" not in page

    def test_pages__of_others_do_not_exist(self, admin: Client) -> None:
        save_conversation("bob")
        save_conversation("alice", "mine")
        there = [admin.get(address) for address in addresses("secret")]
        nowhere = [
            admin.get(address.replace("secret", "nowhere")) for address in addresses("secret")
        ]
        assert [r.status_code for r in there] == [r.status_code for r in nowhere]
        assert all(b"tulip" not in response.content for response in there)
        assert do(admin, "secret", "drop", message="secret-m").status_code == 404
        assert admin.get(page_of("mine")).status_code == 200

    def test_bulk__touches_only_what_is_visible(self, admin: Client) -> None:
        save_conversation("bob")
        save_conversation("alice", "mine")
        fields = {"action": "status_resolved", "_selected_action": ["secret", "mine"]}
        admin.post(LIST, fields)
        assert list(Review.objects.values_list("thread_id", flat=True)) == ["mine"]
        fields = {"action": "delete_selected", "_selected_action": ["secret"], "post": "yes"}
        admin.post(LIST, fields)
        assert Thread.objects.filter(pk="secret").exists()

    def test_related_rows__of_others_are_hidden(self, admin: Client) -> None:
        bob = make_thread("bob", "secret")
        save_for_thread("secret", "bob", "thread memory of bob", source="api")
        save_for_resource("bob", "resource memory of bob", source="api")
        make_record(bob, active_observations="observed bob")
        for model in ("workingmemory", "observationalrecord"):
            page = admin.get(f"/admin/mastra_memory/{model}/")
            assert b"bob" not in page.content
        for row in WorkingMemory.objects.all():
            address = f"/admin/mastra_memory/workingmemory/{row.pk}/change/"
            assert admin.get(address).status_code == 302
            assert admin.post(address, {"content": "x", "version": row.version}).status_code == 302
        assert set(WorkingMemory.objects.values_list("version", flat=True)) == {1}

    def test_tree__does_not_name_what_is_hidden(self, admin: Client) -> None:
        make_thread("bob", "secret", title="Talk of bob")
        make_thread("alice", "mine")
        Thread.objects.filter(pk="mine").update(clone_source_id="secret")
        page = text_of(admin.get(page_of("mine")))
        assert "Talk of bob" not in page and "deleted" in page

    def test_queue__leads_only_to_what_is_visible(self, admin: Client) -> None:
        save_conversation("bob")
        response = admin.get(f"{LIST}next/?free=1", follow=True)
        assert "Talk of bob" not in text_of(response)

    def test_team__counts_only_what_is_visible(self, admin: Client) -> None:
        save_conversation("bob")
        Review.objects.create(thread_id="secret", status="resolved")
        assert "0 conversations started" in text_of(admin.get(f"{LIST}team/"))

    @pytest.mark.parametrize("model", [Tag, Criterion])
    def test_delete__names_no_related_thread(self, admin: Client, model: Any) -> None:
        thread_id = save_conversation("bob")
        tag, criterion = Tag.objects.create(name="late"), Criterion.objects.create(name="Tone")
        ThreadTag.objects.create(thread_id=thread_id, tag=tag)
        user = user_of(admin)
        Score.objects.create(
            thread_id=thread_id, criterion=criterion, author_id=str(user.pk), answer="yes", share=1
        )
        row = model.objects.get()
        base = f"/admin/mastra_memory/{model._meta.model_name}/"
        bulk = {"action": "delete_selected", "_selected_action": [row.pk]}
        for response in (admin.get(f"{base}{row.pk}/delete/"), admin.post(base, bulk)):
            page = text_of(response)
            assert "secret" not in page and "Talk of bob" not in page
            assert f"{row}" in page and ": 1" in page, "the related row is counted"
        admin.post(f"{base}{row.pk}/delete/", {"post": "yes"})
        assert not model.objects.exists()
