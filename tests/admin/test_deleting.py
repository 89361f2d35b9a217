"""Deleting a conversation leaves no row of ours that quotes it."""

import pytest
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.test import Client

from mastra_memory.db import sql
from mastra_memory.models import ThreadChange
from mastra_memory.review import exports
from tests.admin.every_page import SECRETS, make_everything, own_export
from tests.admin.pages import LIST, do, user_of

pytestmark = pytest.mark.django_db


def quoting(words: str) -> dict[str, int]:
    """Rows of our tables that hold these words, files of exports unpacked."""
    found = {}
    for model in apps.get_app_config("mastra_memory").get_models():
        table = model._meta.db_table
        [(count,)] = sql.fetch_all(
            f"SELECT count(*) FROM {table} AS row WHERE row::text LIKE %s", [f"%{words}%"]
        )
        found[table.removeprefix("mastra_memory_")] = count
    return {name: count for name, count in found.items() if count}


def test_delete__leaves_nothing_that_quotes_the_conversation(admin: Client) -> None:
    make_everything()
    do(admin, "secret", "drop", message="m2")
    do(admin, "secret", "note", text=f"call {SECRETS[1]}")
    job = own_export(user_of(admin))
    assert SECRETS[0] in exports.get_file(job)[0].decode()
    before = quoting(SECRETS[1])
    assert {"thread", "message", "reviewnote", "threadchange", "workingmemory"} <= before.keys()
    assert {"workingmemoryrevision", "observationalrecord", "observationchunk"} <= before.keys()
    assert ThreadChange.objects.count() == 2
    admin.post(f"{LIST}secret/delete/", {"post": "yes"})
    assert admin.get(f"{LIST}exports/{job.pk}/").status_code == 302
    exports.delete_expired_jobs()
    assert quoting(SECRETS[1]) == {} and quoting("secret") == {}


def test_delete__the_log_stays_but_is_not_shown(admin: Client) -> None:
    make_everything()
    do(admin, "secret", "drop", message="m2")
    admin.post(f"{LIST}secret/delete/", {"post": "yes"}, follow=True)
    kept = LogEntry.objects.filter(object_id="secret")
    assert [entry.action_flag for entry in kept.order_by("pk")] == [2, 3]
    assert not any(secret in entry.object_repr for entry in kept for secret in SECRETS)
    assert admin.get(f"{LIST}secret/history/").status_code == 404
    page = admin.get("/admin/").content.decode()
    assert not [secret for secret in SECRETS if secret in page]
