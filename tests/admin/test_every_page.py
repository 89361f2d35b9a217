"""Access to every page of the admin. New pages are included automatically."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from pytest_django import Settings

from mastra_memory.models import Message, Thread
from tests.admin.conftest import SignIn
from tests.admin.every_page import (
    PAGES,
    SECRETS,
    WORDS,
    address_of,
    addresses_of,
    make_everything,
    own_export,
)
from tests.admin.pages import LIST, user_of

pytestmark = pytest.mark.django_db

NO_PAGES = {
    "thread_do",
    "thread_memory",
    "thread_export_one",
    "thread_views",
    "observationalrecord_do",
}
"""Addresses that take forms and show nothing."""
LEADS_ON = {"message_change", "message_history"}
"""Addresses that redirect to a conversation."""


@pytest.fixture(autouse=True)
def everything(db: None) -> None:
    make_everything()


def read_response(response: Any) -> str:
    """Return the whole response as text, with headers and messages."""
    body = b"".join(response) if response.streaming else response.content
    return f"{dict(response.headers)} {body.decode(errors='replace')}"


def leaks(response: Any, *words: str) -> list[str]:
    text = read_response(response)
    return [word for word in words if word in text]


def everybody(*without: str) -> list[str]:
    """All rights of our app but these."""
    rights = Permission.objects.filter(content_type__app_label="mastra_memory")
    return [name for name in rights.values_list("codename", flat=True) if name not in without]


def every_address(client: Client | None = None) -> Iterator[tuple[str, str]]:
    """Every page in every way it can be asked for; exports are those of the person who asks."""
    export = own_export(user_of(client)) if client else None
    return ((name, address) for name in PAGES for address in addresses_of(name, export))


def refuses(response: Any) -> bool:
    """Return True for a refusal, or for the redirect of Django when a row does not exist."""
    away = ("/admin/", "/admin/mastra_memory/workingmemory/")
    return response.status_code == 403 or response.headers.get("Location") in away


def test_pages__are_closed_to_visitors(client: Client) -> None:
    for _name, address in every_address():
        for response in (client.get(address), client.post(address)):
            assert response.status_code == 302 and "/login/" in response["Location"], address


def test_pages__show_nothing_to_staff_without_permissions(sign_in: SignIn) -> None:
    client = sign_in("nobody")
    for _name, address in every_address():
        for response in (client.get(address), client.post(address, {"post": "yes", "text": "x"})):
            assert refuses(response), address
            assert leaks(response, *SECRETS, "Reach") == [], address
    assert Thread.objects.get().title == f"About {WORDS}"


def test_pages__of_conversations_outside_one_s_own_show_nothing(
    sign_in: SignIn, settings: Settings
) -> None:
    settings.MASTRA_MEMORY = {"ADMIN_THREADS": "tests.admin.test_access.only_alice"}
    client = sign_in("ana", *everybody())
    for name, address in every_address(client):
        response = client.get(address)
        assert leaks(response, *SECRETS, "Reach", "About") == [], address
        if name.startswith("thread_") and "secret" in address:
            assert response.status_code == 404 or refuses(response), address
            changed = client.post(address, {"post": "yes", "text": "x"})
            assert changed.status_code == 404 or refuses(changed), address
    assert Thread.objects.get().title == f"About {WORDS}"
    assert Message.objects.count() == 3


def test_pages__mask_for_those_who_may_all_but_that(sign_in: SignIn) -> None:
    client = sign_in("ana", *everybody("view_personal_data"))
    shown = 0
    for name, address in every_address(client):
        if name == "thread_file":
            continue  # a picture's bytes
        response = client.get(address, follow="next" in name)
        assert leaks(response, *SECRETS) == [], address
        shown += response.status_code == 200
    assert shown > 25


def test_pages__have_a_strict_policy(admin: Client) -> None:
    for name, address in every_address(admin):
        response = admin.get(address, follow="next" in name or name in LEADS_ON)
        if name not in NO_PAGES and not name.endswith(("_add", "_delete")):
            assert response.status_code == 200, address
        if response.status_code == 200:
            policy = response["Content-Security-Policy"]
            assert "default-src 'none'" in policy and "unsafe" not in policy, address
            page = read_response(response)
            scripts = re.findall(r"<script\b(?![^>]*\bsrc=)[^>]*>", page)
            assert all('type="application/json"' in script for script in scripts), address
            assert "<style" not in page and not re.search(r"<[^>]+\sstyle=", page), address


def autocomplete(client: Client, term: str) -> Any:
    """Return the response of Django's autocompletion of threads."""
    field = {"app_label": "mastra_memory", "model_name": "reviewnote", "field_name": "thread"}
    return client.get(f"/admin/autocomplete/?{urlencode({**field, 'term': term})}")


@pytest.mark.parametrize("term", ["", "reach", "secret"])
def test_autocomplete__honours_rights_the_hook_and_the_mask(
    sign_in: SignIn, settings: Settings, term: str
) -> None:
    whole = sign_in("root", *everybody())
    assert leaks(autocomplete(whole, term), *SECRETS) == SECRETS
    masked = sign_in("ana", "view_thread")
    found = autocomplete(masked, term)
    assert leaks(found, *SECRETS) == [] and "[email]" in read_response(found)
    assert autocomplete(sign_in("nobody"), term).status_code == 403
    settings.MASTRA_MEMORY = {"ADMIN_THREADS": "tests.admin.test_access.only_alice"}
    assert autocomplete(whole, term).json()["results"] == []


def test_pages__every_one_has_an_address() -> None:
    assert len(PAGES) > 40
    for name in PAGES:
        assert address_of(name).startswith("/admin/mastra_memory/"), name
    assert address_of("thread_changelist") == LIST
