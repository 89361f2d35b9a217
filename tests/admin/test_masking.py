"""Personal data is masked for people without the right to see it, on every page."""

from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from mastra_memory.models import Message, ThreadChange
from mastra_memory.working_memory import save_for_resource
from tests.admin.conftest import SignIn
from tests.admin.pages import LIST, do, page_of, text_of
from tests.factories import a_message, make_record, make_thread, save

pytestmark = pytest.mark.django_db

SECRETS = ["anna@example.com", "+48 601 234 567", "4111 1111 1111 1111"]
ALL = " and ".join(SECRETS)


def a_talk() -> str:
    thread = make_thread("alice", title=f"Talk with {ALL}", metadata={"mail": ALL, ALL: 1})
    call = {"state": "result", "toolName": "look", "args": {"q": ALL}, "result": {"r": [ALL]}}
    parts = [
        {"type": "text", "text": ALL},
        {"type": "reasoning", "reasoning": ALL},
        {"type": "tool-invocation", "toolInvocation": call},
        {"type": "file", "data": f"https://x.example/{ALL}", "filename": ALL},
        {"type": "odd", "value": ALL},
    ]
    save([a_message(thread, "m1", content={"format": 2, "parts": parts})])
    save([a_message(thread, "m2", text="x" * 30_000 + ALL)])
    save_for_resource("alice", ALL, source="agent")
    make_record(thread, active_observations=ALL)
    return thread.id


def pages(thread_id: str) -> list[str]:
    sequence = Message.objects.get(pk="m2").sequence
    return [
        LIST,
        f"{LIST}?q=example.com",
        page_of(thread_id),
        f"{LIST}{thread_id}/text/{sequence}/0/",
        f"{LIST}{thread_id}/print/",
        "/admin/mastra_memory/workingmemory/",
        "/admin/mastra_memory/observationalrecord/",
    ]


def test_pages__mask_for_those_without_the_right(sign_in: SignIn) -> None:
    client = sign_in(
        "ana", "view_thread", "review_thread", "export_thread", "view_workingmemory",
        "view_observationalrecord", "view_observationchunk",
    )  # fmt: skip
    thread_id = a_talk()
    for address in pages(thread_id):
        response = client.get(address)
        assert response.status_code == 200, address
        for secret in SECRETS:
            assert secret not in response.content.decode(), (address, secret)
    assert "[email] and [phone] and [card]" in text_of(client.get(page_of(thread_id)))


def test_pages__show_all_to_those_with_the_right(admin: Client) -> None:
    thread_id = a_talk()
    for address in pages(thread_id)[2:5]:
        assert "anna@example.com" in admin.get(address).content.decode(), address


def test_edit__what_is_masked_cannot_be_saved_over(sign_in: SignIn) -> None:
    client = sign_in("ed", "view_thread", "edit_transcript", "view_workingmemory")
    thread_id = a_talk()
    for what in ("title", "metadata", "message/?message=m1"):
        address = f"{LIST}{thread_id}/edit/{what}".rstrip("/") + ("/" if "?" not in what else "")
        assert client.get(address).status_code == 403
        assert client.post(address, {"text": "x", "was": ""}).status_code == 403
    assert not ThreadChange.objects.exists()


def test_history__is_masked_too(admin: Client, sign_in: SignIn) -> None:
    thread_id = a_talk()
    do(admin, thread_id, "drop", message="m1")
    reviewer = sign_in("ana", group=True)
    assert "anna@example.com" not in reviewer.get(page_of(thread_id)).content.decode()
    assert reviewer.get(f"{LIST}{thread_id}/history/").status_code == 403


def test_redact__the_host_adds_its_own_patterns(reviewer: Client, settings: Settings) -> None:
    settings.MASTRA_MEMORY = {"REDACT": [r"F-\d{5}"]}
    thread = make_thread()
    save([a_message(thread, text="order F-20418, write to a@b.example")])
    page = text_of(reviewer.get(page_of(thread.id)))
    assert "order [hidden], write to a@b.example" in page


def test_delete__names_the_thread_masked(sign_in: SignIn) -> None:
    client = sign_in("del", "view_thread", "delete_thread")
    address = f"{LIST}{a_talk()}/delete/"
    page = client.get(address)
    assert "[email]" in text_of(page) and "anna@example.com" not in page.content.decode()
    done = client.post(address, {"post": "yes"}, follow=True)
    assert "[email]" in text_of(done) and "anna@example.com" not in done.content.decode()
    bulk = {"action": "delete_selected", "_selected_action": [a_talk()]}
    assert "anna@example.com" not in client.post(LIST, bulk).content.decode()


def test_edit__what_is_masked_says_why_it_cannot_be_edited(sign_in: SignIn) -> None:
    client = sign_in("ed", "view_thread", "edit_transcript")
    refused = client.get(f"{LIST}{a_talk()}/edit/title/")
    assert refused.status_code == 403
    assert "holds personal data that is masked for you" in text_of(refused)
    assert not leaks_of(refused)


def leaks_of(response: Any) -> list[str]:
    return [secret for secret in SECRETS if secret in response.content.decode()]
