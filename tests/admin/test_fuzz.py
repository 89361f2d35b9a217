"""Hostile paths, parameters and forms on every address of the admin: none may end in a 500.

The cases are drawn from a fixed seed, so that a failure can be repeated. The environment variable
`ADMIN_FUZZ_CASES` sets how many there are.
"""

import os
import random
import re
import traceback
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from django.contrib.auth.models import User
from django.core.signals import got_request_exception
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, get_resolver
from pytest_django import Settings

from mastra_memory.admin.thread_filters import FilterForm
from mastra_memory.models import Message, WorkingMemory
from tests.admin.every_page import PAGES, addresses_of, make_everything, own_export
from tests.admin.pages import LIST, text_of

pytestmark = pytest.mark.django_db

CASES = int(os.environ.get("ADMIN_FUZZ_CASES", "300"))
SEED = 20261201
VALUES = [
    "", " ", "\x00", "a\x00b", "²", "٣", "½", "-1", "0", "1", "+1", "1.5", "1e5", "NaN", "1_0",
    "9" * 19, "9" * 20, "9" * 5_000, "-" + "9" * 30, "2147483648", "9223372036854775808",
    "x" * 20_000, "\ud800", "\udfff", "\ufffe", "\u202e", "'", '"', "\\", "%", "%%", "%s", "%00",
    "_5F", "_00", "_ZZ", "_", "__", "../..", "//", "{}", "[]", "null", "true", "[" * 3_000,
    "a=b", "a={", "=", ",", "a=²,b=\x00", "-(", "| & !", "secret", "m1", "me", "none", "yes", "no",
    "2026-02-30", "2026-12-01", "0000-00-00", "9999-12-31", "0001-01-01", "today", "last_month",
    "meaning", "jsonl", "csv", "pdf", "resolved", "flagged", "late", "delete_selected", "export",
    "assign", "tag", "status_new", "retry", "mastra_memory", "thread", "reviewnote", "-1.-2",
    "1.2.3.4", "p=1", "ø", "😀", "\r\n", "javascript:alert(1)", "http://[", "on",
]  # fmt: skip
NAMES = [
    *FilterForm.base_fields, "q", "o", "p", "e", "all", "part", "at", "after", "before", "from",
    "find", "free", "page", "version", "notes", "days", "message", "_to_field", "_popup",
    "_changelist_filters",
    "_facets", "is_facets", "term", "app_label", "model_name", "field_name", "next", "state",
    "scope__exact", "origin_type__exact", "purpose__exact", "created_at__gte", "created_at__lt",
    "kind__exact", "active__exact", "title__startswith", "id__in", "created_at__year", "pk",
]  # fmt: skip
FIELDS = [
    "text", "was", "preview", "status", "priority", "assignee", "then", "version", "tag", "note",
    "message", "resource", "format", "chosen", "action", "_selected_action", "select_across",
    "index", "post", "content", "restore", "job", "query", "view", "save", "delete", "shared",
    "default", "make_default", "name", "at", "score-1", "score-²", "score-" + "9" * 5_000, "kind",
    "minimum", "maximum", "choices", "position", "active", "help_text", "_save", "_continue",
]  # fmt: skip
SAFE_VERBS = ["review", "take", "tag", "untag", "note", "unnote", "score", "drop", "transfer"]


def list_patterns() -> Iterator[tuple[str, URLPattern]]:
    """Walk Django's resolver: every address below `/admin/` with its route."""

    def walk(patterns: Any, prefix: str) -> Iterator[tuple[str, URLPattern]]:
        for pattern in patterns:
            route = prefix + str(pattern.pattern)
            if isinstance(pattern, URLPattern):
                yield route, pattern
            else:
                yield from walk(pattern.url_patterns, route)

    return (found for found in walk(get_resolver().url_patterns, "/") if found[0][:7] == "/admin/")


ROUTES = sorted({route for route, _pattern in list_patterns()})
_PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>|\(\?P<(\w+)>[^)]*\)")


class Fuzzer:
    """Draws requests; the same seed draws the same ones."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        message, memory = Message.objects.get(pk="m1"), WorkingMemory.objects.get()
        self.known = {
            "object_id": ["secret", "1", str(memory.pk)],
            "verb": [*SAFE_VERBS, "undo", "clone"],
            "what": ["title", "metadata", "message", "memory", "observations"],
            "key": [str(message.sequence), str(memory.pk), "thread"],
            "sequence": [str(message.sequence)],
            "index": ["0", "3"],
            "pk": [str(memory.pk)],
        }

    def value(self) -> str:
        """Return a value, mostly a hostile one."""
        return self.random.choice(VALUES)

    def path(self, route: str) -> str:
        """Return the route with a value for each of its parameters."""

        def fill(match: re.Match[str]) -> str:
            name = match[1] or match[2]
            if name in self.known and self.random.random() < 0.7:
                return self.random.choice(self.known[name])
            value = self.value().encode("utf-8", "replace").decode()
            return quote(value, safe=self.random.choice(["", "%"]))

        path = _PARAMETER.sub(fill, route)
        return re.sub(r"[\^$\\?]", "", path) if "(?" in route else path

    def fields(self, names: list[str]) -> list[tuple[str, str]]:
        """Return up to six parameters; a name may come twice."""
        count = self.random.randrange(0, 7)
        drawn = [(self.random.choice(names), self.value()) for _ in range(count)]
        return [(n, v.encode("utf-8", "replace").decode()) for n, v in drawn]


def _place_of(error: str) -> str:
    """Return the last line of the app or of Django's admin in a traceback, and what was raised."""
    lines = [line for line in error.splitlines() if "mastra_memory" in line or "/admin/" in line]
    return f"{lines[-1] if lines else ''} {error.strip().splitlines()[-1:]}"


def send(client: Client, fuzzer: Fuzzer, route: str) -> tuple[str, int, str]:
    """Send one request; return what was sent, the status and the error if there was one."""
    errors: list[str] = []

    def note(sender: Any, **kwargs: Any) -> None:
        errors.append(traceback.format_exc())

    path, query = fuzzer.path(route), urlencode(fuzzer.fields(NAMES))
    address = f"{path}?{query}" if query else path
    body = urlencode(fuzzer.fields(FIELDS))
    is_post = fuzzer.random.random() < 0.5
    got_request_exception.connect(note)
    try:
        with transaction.atomic():
            if is_post:
                kind = "application/x-www-form-urlencoded"
                response = client.post(address, body, content_type=kind)
            else:
                response = client.get(address)
            transaction.set_rollback(True)
    finally:
        got_request_exception.disconnect(note)
    sent = f"POST {address[:300]} {body[:300]}" if is_post else f"GET {address[:600]}"
    return sent, response.status_code, errors[-1] if errors else ""


@pytest.fixture
def root(db: None) -> Client:
    """A superuser whose client reports a 500 instead of raising its exception."""
    client = Client(raise_request_exception=False)
    client.force_login(User.objects.create(username="root", is_staff=True, is_superuser=True))
    return client


@pytest.mark.parametrize("part", range(4))
def test_admin__no_request_ends_in_a_server_error(root: Client, part: int) -> None:
    make_everything()
    fuzzer = Fuzzer(SEED + part)
    failures: dict[str, str] = {}
    routes = [route for route in ROUTES if "logout" not in route]
    for number in range(CASES // 4):
        sent, status, error = send(root, fuzzer, routes[number % len(routes)])
        if status >= 500:
            failures.setdefault(_place_of(error), f"{sent}\n{error[-3000:]}")
    assert not failures, "\n\n".join(failures.values())
    assert root.get("/admin/").status_code == 200, "still signed in"


def test_fuzz__reaches_every_page_of_the_app() -> None:
    names = {pattern.name or "" for _route, pattern in list_patterns()}
    assert {f"mastra_memory_{name}" for name in PAGES} <= names
    assert len(ROUTES) > 80


HOSTILE_IDS = ["\x00", "a\x00", "²", "9" * 5_000, "x" * 20_000, "_00", "_ED_A0", "_5F", "_0A"]


@pytest.mark.parametrize("value", HOSTILE_IDS)
def test_paths__hostile_ids_end_in_no_server_error(root: Client, value: str) -> None:
    make_everything()
    for route in ROUTES:
        path = _PARAMETER.sub(quote(value, safe=""), route)
        if path != route and "(?" not in route:
            for response in (root.get(path), root.post(path, {"post": "yes"})):
                assert response.status_code < 500, path[:200]


def test_parameters__hostile_values_end_in_no_server_error(root: Client) -> None:
    make_everything()
    owner = User.objects.get(username="root")
    export = own_export(owner)
    fuzzer = Fuzzer(SEED)
    for name in PAGES:
        for address in addresses_of(name, export)[:1]:
            response = root.get(f"{address}?{urlencode(fuzzer.fields(NAMES))}")
            assert response.status_code < 500, address


def test_delete__an_empty_to_field_is_ignored(root: Client) -> None:
    make_everything()
    for name in PAGES:
        if name.endswith("_delete"):
            [address] = addresses_of(name)
            assert root.get(f"{address}?_to_field=").status_code in (200, 403), address


@pytest.mark.parametrize("zone", ["UTC", "Europe/Paris", "America/New_York"])
@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31", "9999-12-31T23:59:59-12:00"])
def test_dates__at_the_ends_of_the_calendar_are_refused(
    root: Client, settings: Settings, zone: str, day: str
) -> None:
    settings.TIME_ZONE = zone
    make_everything()
    for name in ("created_at__lt", "created_at__gte"):
        for values in ([day], [day, "2026-12-01"]):
            query = urlencode({name: values}, doseq=True)
            assert root.get(f"/admin/mastra_memory/modelusage/?{query}").status_code == 400
    for name in ("active_from", "active_to", "created_from", "created_to"):
        page = root.get(LIST, {name: day})
        assert page.status_code == 200 and "0 conversations" in text_of(page)
