"""Exports: at once or in the background, masked, and only of what one may see."""

import json
from datetime import timedelta
from typing import Any

import pytest
from celery import current_app
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks, Settings

from mastra_memory.exporters import spreadsheet
from mastra_memory.memory import Memory
from mastra_memory.models import ExportJob, Thread
from mastra_memory.review import exports
from tests.admin.conftest import SignIn
from tests.admin.pages import LIST, text_of, user_of
from tests.support.factories import a_message, fill, make_thread, save

pytestmark = pytest.mark.django_db


def export(client: Client, ids: list[str], chosen: str) -> Any:
    """Export these threads from the list."""
    fields = {"action": "export", "_selected_action": ids, "chosen": chosen}
    return client.post(LIST, fields)


def save_conversation(resource_id: str = "alice", text: str = "write to anna@example.com") -> str:
    thread = make_thread(resource_id, title=f"Talk of {resource_id}")
    save([a_message(thread, text=text)])
    return thread.id


@pytest.mark.parametrize("chosen", ExportJob.Format.values)
def test_export__a_small_one_comes_at_once(admin: Client, chosen: str) -> None:
    response = export(admin, [save_conversation(), save_conversation("bob")], chosen)
    body = response.content.decode()
    assert "attachment" in response["Content-Disposition"]
    assert body.count("anna@example.com") >= 2 and "Talk of bob" in body
    assert body.startswith("\ufeff") == (chosen == "csv")


@pytest.mark.parametrize("chosen", ExportJob.Format.values)
def test_export__is_masked_for_those_without_the_right(sign_in: SignIn, chosen: str) -> None:
    client = sign_in("ex", "view_thread", "export_thread")
    number = 4111111111111111
    thread = make_thread(metadata={"mail": "anna@example.com", "card": number})
    save([a_message(thread, text=f"anna@example.com {number}")])
    body = export(client, [thread.id], chosen).content.decode()
    assert "[email]" in body and "anna@example" not in body and f" {number}" not in body
    if chosen == "jsonl":
        assert [json.loads(line) for line in body.splitlines()]


def test_export__of_one_conversation(admin: Client) -> None:
    thread_id = save_conversation()
    response = admin.post(f"{LIST}{thread_id}/export/", {"format": "markdown"})
    assert "# Talk of alice" in response.content.decode()
    assert admin.post(f"{LIST}{thread_id}/export/", {"format": "exe"}).status_code == 404


def test_export__batches_have_one_heading(admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exports, "THREADS_PER_BATCH", 1)
    ids = [save_conversation(), save_conversation(), save_conversation()]
    assert export(admin, ids, "csv").content.decode().count("thread_title") == 1
    lines = [json.loads(line) for line in export(admin, ids, "jsonl").content.splitlines()]
    assert [line["kind"] for line in lines].count("export") == 1


def test_export__a_large_one_is_made_in_the_background(
    admin: Client,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    monkeypatch.setattr(exports, "MAX_IMMEDIATE_MESSAGES", 10)
    monkeypatch.setitem(current_app.conf, "task_always_eager", True)
    thread = make_thread(title="Long")
    fill(thread, 50)
    response = export(admin, [thread.id], "markdown")
    assert response["Location"] == f"{LIST}exports/"
    job = ExportJob.objects.get()
    assert job.state == "waiting" and exports.list_unfinished_jobs() == [job.pk]
    assert "waiting 0/1" in text_of(admin.get(f"{LIST}exports/"))
    with django_capture_on_commit_callbacks(execute=True):
        admin.post(f"{LIST}exports/", {"job": job.pk})
    assert "Download" in text_of(admin.get(f"{LIST}exports/"))
    assert admin.get(f"{LIST}exports/{job.pk}/").content.decode().count("## ") == 50
    assert exports.list_unfinished_jobs() == []


def test_export__belongs_to_who_asked(admin: Client, sign_in: SignIn, settings: Settings) -> None:
    export(admin, [save_conversation("bob")], "csv")
    job = ExportJob.objects.get()
    other = sign_in("ex", "view_thread", "export_thread")
    assert other.get(f"{LIST}exports/{job.pk}/").status_code == 404
    assert admin.get(f"{LIST}exports/{job.pk}/").status_code == 200
    settings.MASTRA_MEMORY = {"ADMIN_THREADS": "tests.admin.test_access.only_alice"}
    assert admin.get(f"{LIST}exports/{job.pk}/").status_code == 403


def test_export__takes_only_what_is_visible(admin: Client, settings: Settings) -> None:
    ids = [save_conversation("bob"), save_conversation("alice")]
    settings.MASTRA_MEMORY = {"ADMIN_THREADS": "tests.admin.test_access.only_alice"}
    assert "Talk of bob" not in export(admin, ids, "markdown").content.decode()
    assert admin.post(f"{LIST}{ids[0]}/export/", {"format": "csv"}).status_code == 404


def test_export__needs_the_right(reviewer: Client) -> None:
    thread_id = save_conversation()
    assert reviewer.get(f"{LIST}exports/").status_code == 403
    assert reviewer.post(f"{LIST}{thread_id}/export/", {"format": "csv"}).status_code == 403
    export(reviewer, [thread_id], "csv")
    assert not ExportJob.objects.exists() and Thread.objects.exists()


def test_download__after_a_week_there_is_nothing(admin: Client) -> None:
    export(admin, [save_conversation()], "csv")
    job = ExportJob.objects.get()
    ExportJob.objects.update(
        created_at=timezone.now() - exports.FILE_LIFETIME - timedelta(minutes=1)
    )
    assert admin.get(f"{LIST}exports/{job.pk}/").status_code == 404
    assert "No exports yet" in text_of(admin.get(f"{LIST}exports/"))
    assert exports.delete_expired_jobs() == 1
    assert not ExportJob.objects.exists()


def test_download__of_a_conversation_that_was_deleted_is_refused(admin: Client) -> None:
    gone, other = save_conversation(), save_conversation("bob")
    export(admin, [gone, other], "csv")
    job = ExportJob.objects.get()
    admin.post(f"{LIST}{gone}/delete/", {"post": "yes"})
    page = text_of(admin.get(f"{LIST}exports/{job.pk}/", follow=True))
    assert "A conversation of this export was deleted" in page
    assert not ExportJob.objects.exists()


def test_remove_expired__takes_what_holds_deleted_conversations(admin: Client) -> None:
    gone, other = save_conversation(), save_conversation("bob")
    export(admin, [gone], "csv")
    export(admin, [other], "csv")
    Memory().delete_thread(gone)
    assert exports.delete_expired_jobs() == 1
    assert ExportJob.objects.get().thread_ids == [other]


def test_run__leaves_out_what_is_gone_and_keeps_the_rest(admin: Client) -> None:
    job = ExportJob.objects.create(
        owner_id=str(user_of(admin).pk), format="markdown", thread_ids=[save_conversation(), "gone"]
    )
    assert exports.run_export(job.pk)
    assert not exports.run_export(job.pk), "what is done stays"
    job.refresh_from_db()
    assert (job.state, job.done, len(job.thread_ids)) == ("done", 1, 1)
    assert exports.delete_expired_jobs() == 0


def test_give_up__what_broke_off_for_hours_has_failed(admin: Client) -> None:
    job = ExportJob.objects.create(owner_id=str(user_of(admin).pk), format="csv", state="running")
    assert exports.list_unfinished_jobs() == [job.pk]
    ExportJob.objects.update(
        created_at=timezone.now() - exports.RETRY_PERIOD - timedelta(minutes=1)
    )
    assert exports.list_unfinished_jobs() == []
    exports.delete_expired_jobs()
    assert "was interrupted" in text_of(admin.get(f"{LIST}exports/"))


def test_export__a_failure_shows_the_reason(admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any) -> None:
        raise RuntimeError("no space left")

    job = ExportJob.objects.create(
        owner_id=str(user_of(admin).pk), format="csv", thread_ids=[save_conversation()]
    )
    with monkeypatch.context() as patch:
        patch.setattr(spreadsheet, "export", broken)
        with pytest.raises(RuntimeError):
            exports.run_export(job.pk)
    assert "no space left" in text_of(admin.get(f"{LIST}exports/"))
    assert exports.run_export(job.pk)
