"""Who may open which page of the admin, by table. A page without a line here fails a test."""

from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from tests.admin.conftest import SignIn
from tests.admin.every_page import PAGES, SECRETS, addresses_of, make_everything, own_export
from tests.admin.pages import LIST, user_of
from tests.admin.test_every_page import everybody, leaks, refuses
from tests.admin.test_fuzz import list_patterns

pytestmark = pytest.mark.django_db

ROLES: dict[str, set[str]] = {
    "nobody": set(),
    "viewer": {"view_thread"},
    "exporter": {"view_thread", "export_thread"},
    "editor": {"view_thread", "edit_transcript"},
    "deleter": {"view_thread", "delete_thread"},
    "memory": {"view_thread", "view_workingmemory"},
    "tags": {"view_tag"},
}
"""The permissions of each role, all without `view_personal_data`. `root` has every permission."""

VIEW = {"view_thread"}
NEEDS: dict[str, set[str] | None] = {
    **dict.fromkeys(["thread_changelist", "thread_change", "thread_presence", "thread_next"], VIEW),
    **dict.fromkeys(["thread_team", "thread_file", "thread_text"], VIEW),
    **dict.fromkeys(["thread_print"], VIEW | {"export_thread"}),
    "thread_exports": {"export_thread"},
    "thread_export": {"export_thread"},
    "thread_edit": VIEW | {"edit_transcript", "view_personal_data"},
    "thread_delete": VIEW | {"delete_thread"},
    "thread_history": VIEW | {"view_personal_data"},
    # Threads cannot be added. The next five take forms: 404 for GET (403 without permission).
    "thread_add": None,
    **dict.fromkeys(["thread_do", "thread_memory", "thread_export_one", "thread_views"], None),
    "observationalrecord_do": None,
    **{f"tag_{page}": {"view_tag"} for page in ("changelist", "change", "history")},
    "tag_add": {"add_tag"},
    "tag_delete": {"delete_tag"},
    **{f"criterion_{page}": {"view_criterion"} for page in ("changelist", "change", "history")},
    "criterion_add": {"add_criterion"},
    "criterion_delete": {"delete_criterion"},
    **{
        f"{model}_{page}": {f"view_{model}", "view_thread"}
        for model in ("workingmemory", "observationalrecord", "modelusage", "embeddingrequest")
        for page in ("change", "history")
    },
    **{
        f"{model}_text": {f"view_{model}", "view_thread"}
        for model in ("workingmemory", "observationalrecord")
    },
    # Messages have the rights of the conversation page, to which their own pages lead.
    **{f"message_{page}": VIEW for page in ("changelist", "change", "history")},
    "message_add": None,
    "message_delete": None,
    # The list of a model opens with its own permission; its rows need `view_thread`.
    **{
        f"{model}_changelist": {f"view_{model}"}
        for model in ("workingmemory", "observationalrecord", "modelusage", "embeddingrequest")
    },
    **{
        f"{model}_{page}": None
        for model in ("workingmemory", "observationalrecord", "modelusage", "embeddingrequest")
        for page in ("add", "delete")
    },
}
"""The permissions that a page needs; None for an address that no role may open with GET."""


def _opens(response: Any) -> bool:
    """Return True if the page was shown, or led to a conversation."""
    if response.status_code == 302:
        return not refuses(response) and "/login/" not in response["Location"]
    return bool(response.status_code == 200)


def test_table__names_every_page_of_the_resolver() -> None:
    found = {
        pattern.name.removeprefix("mastra_memory_")
        for _route, pattern in list_patterns()
        if pattern.name and pattern.name.startswith("mastra_memory_")
    }
    assert found == set(PAGES) == set(NEEDS)


@pytest.mark.parametrize("role", [*ROLES, "root"])
def test_table__decides_who_opens_what(sign_in: SignIn, role: str) -> None:
    make_everything()
    rights = set(everybody()) if role == "root" else ROLES[role]
    client = sign_in(role, *rights)
    export = own_export(user_of(client))
    for name in PAGES:
        needed = NEEDS[name]
        for address in addresses_of(name, export):
            response = client.get(address)
            allowed = needed is not None and needed <= rights
            assert _opens(response) is allowed, (address, response.status_code)
            if name != "thread_file" and "view_personal_data" not in rights:
                assert leaks(response, *SECRETS) == [], address


def test_table__visitors_open_nothing(client: Client) -> None:
    make_everything()
    for name in PAGES:
        for address in addresses_of(name):
            assert "/login/" in client.get(address)["Location"], address


@pytest.mark.parametrize("role", ["viewer", "root"])
def test_table__no_page_names_a_thread_outside_the_queryset(
    sign_in: SignIn, settings: Settings, role: str
) -> None:
    make_everything()
    settings.MASTRA_MEMORY = {"ADMIN_THREADS": "tests.admin.test_access.only_alice"}
    client = sign_in(role, *(everybody() if role == "root" else ROLES[role]))
    export = own_export(user_of(client))
    for name in PAGES:
        for address in addresses_of(name, export):
            response = client.get(address, follow=True)
            shown = response.content.decode(errors="replace").replace(address, "")
            assert "About" not in shown and "Reach" not in shown, address
            if "secret" not in address:
                assert "secret" not in shown, address
    rows = {"action": "delete_selected", "_selected_action": ["secret"]}
    assert "About" not in client.post(LIST, rows, follow=True).content.decode()
