"""Personal data is masked for people without the right to see it, on every page."""

import json
from base64 import b64decode, b64encode
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from mastra_memory.models import Message, ThreadChange
from mastra_memory.working_memory import save_for_resource
from tests.admin.conftest import SignIn
from tests.admin.pages import LIST, do, page_of, text_of
from tests.support.factories import a_message, make_record, make_thread, save

pytestmark = pytest.mark.django_db

SECRETS = ["anna@example.com", "+48 601 234 567", "4111 1111 1111 1111"]
ALL = " and ".join(SECRETS)


def save_conversation() -> str:
    """Save a conversation with secrets in every part, and return its id."""
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
        f"{LIST}{thread_id}/text/message/{sequence}/",
        f"{LIST}{thread_id}/print/",
        "/admin/mastra_memory/workingmemory/",
        "/admin/mastra_memory/observationalrecord/",
    ]


def test_pages__mask_for_those_without_the_right(sign_in: SignIn) -> None:
    client = sign_in(
        "ana", "view_thread", "review_thread", "export_thread", "view_workingmemory",
        "view_observationalrecord", "view_observationchunk",
    )  # fmt: skip
    thread_id = save_conversation()
    for address in pages(thread_id):
        response = client.get(address)
        assert response.status_code == 200, address
        for secret in SECRETS:
            assert secret not in response.content.decode(), (address, secret)
    assert "[email] and [phone] and [card]" in text_of(client.get(page_of(thread_id)))


def test_pages__show_all_to_those_with_the_right(admin: Client) -> None:
    thread_id = save_conversation()
    for address in pages(thread_id)[2:5]:
        assert "anna@example.com" in admin.get(address).content.decode(), address


def test_edit__masked_values_cannot_be_overwritten(sign_in: SignIn) -> None:
    client = sign_in("ed", "view_thread", "edit_transcript", "view_workingmemory")
    thread_id = save_conversation()
    for what in ("title", "metadata", "message/?message=m1"):
        address = f"{LIST}{thread_id}/edit/{what}".rstrip("/") + ("/" if "?" not in what else "")
        assert client.get(address).status_code == 403
        assert client.post(address, {"text": "x", "was": ""}).status_code == 403
    assert not ThreadChange.objects.exists()


def test_history__is_masked_too(admin: Client, sign_in: SignIn) -> None:
    thread_id = save_conversation()
    do(admin, thread_id, "drop", message="m1")
    reviewer = sign_in("ana", group=True)
    assert "anna@example.com" not in reviewer.get(page_of(thread_id)).content.decode()
    assert reviewer.get(f"{LIST}{thread_id}/history/").status_code == 403


def test_redact__the_host_adds_its_own_patterns(reviewer: Client, settings: Settings) -> None:
    settings.MASTRA_MEMORY = {"REDACT": [r"regex:F-\d{5}"]}
    thread = make_thread()
    save([a_message(thread, text="order F-20418, write to a@b.example")])
    page = text_of(reviewer.get(page_of(thread.id)))
    assert "order [hidden], write to a@b.example" in page


def test_delete__names_the_thread_masked(sign_in: SignIn) -> None:
    client = sign_in("del", "view_thread", "delete_thread")
    address = f"{LIST}{save_conversation()}/delete/"
    page = client.get(address)
    assert "[email]" in text_of(page) and "anna@example.com" not in page.content.decode()
    done = client.post(address, {"post": "yes"}, follow=True)
    assert "[email]" in text_of(done) and "anna@example.com" not in done.content.decode()
    bulk = {"action": "delete_selected", "_selected_action": [save_conversation()]}
    assert "anna@example.com" not in client.post(LIST, bulk).content.decode()


def test_edit__masked_text_cannot_be_edited(sign_in: SignIn) -> None:
    client = sign_in("ed", "view_thread", "edit_transcript")
    refused = client.get(f"{LIST}{save_conversation()}/edit/title/")
    assert refused.status_code == 403
    assert "contains personal data that is masked for you" in text_of(refused)
    assert not leaks_of(refused)


def leaks_of(response: Any) -> list[str]:
    return [secret for secret in SECRETS if secret in response.content.decode()]


def test_pages__mask_numbers_and_escapes(sign_in: SignIn) -> None:
    client = sign_in("ana", "view_thread", "view_workingmemory")
    thread = make_thread("alice", metadata={"card": 4111111111111111})
    call = {"state": "result", "toolName": SECRETS[0], "args": {"n": 4111111111111111}}
    parts = [{"type": "tool-invocation", "toolInvocation": call}, {"type": SECRETS[0]}]
    save([a_message(thread, "m1", content={"format": 2, "parts": parts})])
    save_for_resource("alice", '{"mail": "anna\\u0040example.com"}', source="agent")
    page = client.get(page_of(thread.id)).content.decode()
    for secret in ("4111111111111111", "anna@example.com", "anna\\u0040example.com"):
        assert secret not in page
    assert page.count("[card]") == 2 and page.count("[email]") >= 3


def test_list__previews_are_masked_before_they_are_cut(reviewer: Client) -> None:
    for number in range(186, 201):
        thread = make_thread(f"r{number}")
        save([a_message(thread, text="x" * number + " anna@example.com")])
    page = reviewer.get(f"{LIST}?all=1").content.decode()
    assert page.count("xxx") >= 15 and "anna" not in page


FILES = [
    ("text/plain", ALL.encode()),
    ("text/csv", f"\ufeffname;mail\nZoë;{ALL}".encode()),
    ("text/plain", f"Zoë {ALL}".encode("latin-1")),
    ("application/octet-stream", ALL.encode("utf-16")),
    ("application/json", b'{"mail": "anna\\u0040example.com", "card": 4111111111111111}'),
    ("image/png", ALL.encode()),
    ("image/svg+xml", f"<svg><text>{ALL}</text></svg>".encode()),
]


def save_file(mime_type: str, data: bytes) -> str:
    """Save a message with the file, and return the URL of the file in the admin."""
    thread = make_thread("alice", "files")
    uri = f"data:{mime_type};base64,{b64encode(data).decode()}"
    part = {"type": "file", "mimeType": mime_type, "data": uri, "filename": f"{SECRETS[0]}.txt"}
    [message] = save([a_message(thread, content={"format": 2, "parts": [part]})])
    return f"{LIST}{thread.id}/file/{message.sequence}/0/"


@pytest.mark.parametrize(("mime_type", "data"), FILES)
def test_file__a_text_is_masked(
    reviewer: Client, admin: Client, mime_type: str, data: bytes
) -> None:
    address = save_file(mime_type, data)
    assert admin.get(address).content == data
    response = reviewer.get(address)
    text = response.content.decode("utf-16" if response.content[:2] == b"\xff\xfe" else "latin-1")
    for secret in [*SECRETS, "4111111111111111", "u0040"]:
        assert secret not in text and secret not in str(response.headers)
    assert "[email]" in text and "[card]" in text
    assert response["Content-Type"] == "application/octet-stream"


@pytest.mark.parametrize("data", [b"%PDF-1.7 \xff\xfe\x00", ALL.encode("utf-16-le"), b"\x00\xff"])
def test_file__what_cannot_be_masked_is_refused(
    reviewer: Client, admin: Client, data: bytes
) -> None:
    address = save_file("application/pdf", data)
    assert admin.get(address).content == data
    assert reviewer.get(address).status_code == 403


@pytest.mark.parametrize(("mime_type", "data"), [*FILES, ("application/pdf", b"\xff\x00 a")])
def test_export__masks_files(sign_in: SignIn, mime_type: str, data: bytes) -> None:
    save_file(mime_type, data)
    client = sign_in("exporter", "view_thread", "export_thread")
    exported = client.post(f"{LIST}files/export/", {"format": "jsonl"}).content
    messages = [line for line in map(json.loads, exported.splitlines()) if "content" in line]
    [part] = messages[0]["content"]["parts"]
    if mime_type == "application/pdf":
        assert part["data"] == "[hidden]"
        return
    held = b64decode(part["data"].partition(",")[2])
    assert held != data and b"[email]" in held.replace(b"\0", b"")


PROBES = [
    "anna",
    "anna example",
    '"anna@example"',
    "anna or email",
    '"with and"',
    "601",
    "anna -nothing",
    "anna OR example",
    "anna@example.com",
    "4111 1111 1111 1111",
    "4111",
    "example.com",
    "anna zebra",
    "error:anna",
    "args:4111",
    "result:anna",
    "reasoning:4111",
    "tool:anna",
    "file:anna",
    "note:anna",
]
"""Queries that match only what is masked."""


@pytest.mark.parametrize("query", PROBES)
def test_search__does_not_reveal_masked_text(reviewer: Client, query: str) -> None:
    thread_id = save_searched_conversation(reviewer)
    page = text_of(reviewer.get(LIST, {"q": query}))
    assert "0 conversations" in page, page
    found = reviewer.get(page_of(thread_id, find=query)).context["timeline"].found
    assert found == 0
    assert "0 messages" in text_of(reviewer.get("/admin/mastra_memory/message/", {"q": query}))


def save_searched_conversation(reviewer: Client) -> str:
    """Save a conversation with secrets in all that is searched, and return its id."""
    thread = make_thread("alice", title=f"Talk with {ALL}")
    call = {"toolName": f"look {ALL}", "args": {"q": [ALL], ALL: 4111111111111111}}
    parts = [
        {"type": "text", "text": f"hello with {ALL}"},
        {"type": "reasoning", "reasoning": f"think {ALL}"},
        {
            "type": "tool-invocation",
            "toolInvocation": call
            | {"state": "output-error", "errorText": f"failure {ALL}", "toolCallId": "1"},
        },
        {
            "type": "tool-invocation",
            "toolInvocation": call | {"state": "result", "result": [ALL], "toolCallId": "2"},
        },
        {"type": "file", "data": "https://x.example/f", "filename": f"{SECRETS[0]} bill"},
    ]
    save([a_message(thread, content={"format": 2, "parts": parts})])
    do(reviewer, thread.id, "note", text=f"remark {ALL}")
    return thread.id


@pytest.mark.parametrize(
    "query",
    [
        "hello",
        "hello -nothing",
        "error:failure",
        "reasoning:think",
        "hello note:remark",
        "file:bill",
    ],
)
def test_search__an_excluded_word_does_not_reveal_masked_text(reviewer: Client, query: str) -> None:
    save_searched_conversation(reviewer)
    # The result is the same as for a word that does not occur.
    for excluded in ("-anna", "-zebra", "-4111", "-error:anna", "-args:4111", '-"anna example"'):
        page = text_of(reviewer.get(LIST, {"q": f"{query} {excluded}"}))
        assert "1 conversation" in page, excluded


def test_search__missing_words_do_not_reveal_masked_text(reviewer: Client, admin: Client) -> None:
    save_searched_conversation(reviewer)
    page = text_of(reviewer.get(LIST, {"q": "hello anna zebra"}))
    assert "1 conversation" in page and "does not" not in page
    assert "No conversation contains: anna zebra" in page
    assert "contains: zebra" in text_of(admin.get(LIST, {"q": "hello anna zebra"}))


def test_search__finds_words_next_to_masked_text(reviewer: Client, admin: Client) -> None:
    thread = make_thread("alice", title=f"Talk with {ALL}")
    save([a_message(thread, text=f"hello {ALL}")])
    for query in ("hello", "talk", "hello or anna"):
        assert "1 conversation" in text_of(reviewer.get(LIST, {"q": query})), query
    assert "1 conversation" in text_of(admin.get(LIST, {"q": "anna"}))


@pytest.mark.parametrize("query", [f"mail={SECRETS[0]}", "card=4111111111111111"])
def test_filter__does_not_reveal_masked_text(reviewer: Client, admin: Client, query: str) -> None:
    make_thread("alice", metadata={"mail": SECRETS[0], "card": 4111111111111111})
    page = text_of(reviewer.get(LIST, {"metadata": query}))
    assert "0 conversations" in page and "You cannot search for personal data" in page
    assert "1 conversation" in text_of(admin.get(LIST, {"metadata": query}))
