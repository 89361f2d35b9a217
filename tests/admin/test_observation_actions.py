"""Who may correct observations or ask for work, and what that does."""

from typing import Any

import pytest
from celery import current_app
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoCaptureOnCommitCallbacks, Settings

from mastra_memory.models import (
    ObservationEvent,
    ThreadChange,
)
from mastra_memory.observational import log
from tests.admin.conftest import SignIn
from tests.admin.observed import ON, VIEW, do, line_of, live, observed_thread, record_page
from tests.admin.pages import page_of, text_of
from tests.support.factories import (
    a_message,
    held_lease,
    make_record,
    make_thread,
    save,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def editor(sign_in: SignIn) -> Client:
    return sign_in("eva", *VIEW, "edit_transcript", "view_personal_data")


def test_edit__opens_a_generation_with_the_person_and_a_line_in_the_history(editor: Client) -> None:
    thread, record = observed_thread()
    text = "Likes black tea"
    page = text_of(do(editor, record, "edit", line=line_of(record, "green"), text=text))
    assert "The observation was changed." in page and "Likes black tea" in page
    new = live()
    assert new.generation_count == 1 and new.created_by_name == "eva"
    assert "* 🔴 (10:00) Likes black tea" in new.active_observations
    entry = LogEntry.objects.get(object_id=new.pk)
    assert entry.user.get_username() == "eva" and entry.change_message == "edit 0.1"
    change = ThreadChange.objects.get(thread_id=thread.id, kind="observations")
    assert change.before == {"action": "edit", "text": "Likes green tea"}
    assert change.after == {"action": "edit", "text": text}
    timeline = text_of(editor.get(record_page(new, view="events")))
    assert "Likes green tea → Likes black tea" in timeline


def test_edit__in_the_log_of_a_resource_with_a_difficult_id(editor: Client) -> None:
    make_thread("alice", "a/b_2F")
    section = log.wrap_in_thread("a/b_2F", "* 🔴 (10:00) Likes green tea")
    record = make_record(id="r/1_2F ?", resource_id="alice", active_observations=section)
    page = editor.get(record_page(record)).content.decode()
    action = page.split('<form class="mm-do-body"')[1].split('action="')[1].split('"')[0]
    fields = {"seen": 0, "line": 1, "text": "Likes black tea"}
    assert "The observation was changed." in text_of(editor.post(action, fields, follow=True))
    assert live().active_observations == section.replace("green", "black")
    assert ThreadChange.objects.get().thread_id == "a/b_2F"


def test_pin__and_unpin(editor: Client) -> None:
    _thread, record = observed_thread()
    line = line_of(record, "Acme")
    assert "pinned" in text_of(do(editor, record, "pin", line=line))
    assert live().pinned == ["Works at Acme"]
    do(editor, live(), "unpin", line=line)
    assert live().pinned == [] and live().generation_count == 2


def test_delete__takes_nested_observations_along_and_restore_brings_them_back(
    editor: Client,
) -> None:
    _thread, record = observed_thread()
    do(editor, record, "delete", line=line_of(record, "Kraków"))
    assert "address" not in live().active_observations
    page = text_of(do(editor, live(), "restore", generation=0))
    assert "The observations of generation 0 were restored" in page
    assert live().active_observations == record.active_observations
    assert live().generation_count == 2


@pytest.mark.parametrize("verb", ["edit", "pin", "delete", "restore"])
def test_corrections__are_refused_if_the_log_has_changed(editor: Client, verb: str) -> None:
    thread, record = observed_thread()
    make_record(thread, generation_count=1, active_observations="* 🔴 other")
    fields = {"line": line_of(record, "green"), "text": "my words", "generation": 0}
    response = do(editor, record, verb, **fields)
    assert response.status_code == 409
    page = text_of(response)
    assert "The observations were changed after you opened the page" in page
    assert ("my words" in page) is (verb == "edit")
    assert live().generation_count == 1 and not ThreadChange.objects.exists()


@pytest.mark.parametrize(
    "fields",
    [{"line": 99, "text": "x"}, {"line": 0, "text": "x"}, {"line": 1, "text": " "}, {"text": "x"}],
)
def test_edit__of_something_invalid_changes_nothing(editor: Client, fields: Any) -> None:
    _thread, record = observed_thread()
    assert do(editor, record, "edit", **fields).status_code == 200
    assert live().generation_count == 0 and not LogEntry.objects.exists()


def test_edit__of_masked_text_is_refused(sign_in: SignIn) -> None:
    client = sign_in("mia", *VIEW, "edit_transcript")
    thread = make_thread()
    record = make_record(thread, active_observations="* 🔴 (10:00) Mail zoe@example.com")
    assert b"<textarea" not in client.get(record_page(record)).content
    assert do(client, record, "edit", line=0, text="Mail [email]").status_code == 403
    assert do(client, record, "pin", line=0).status_code == 200
    assert live().pinned == ["Mail zoe@example.com"]


VERBS = ["observe", "reflect", "pin", "unpin", "edit", "delete", "restore"]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    "rights", [("view_thread", "edit_transcript"), VIEW, (*VIEW, "review_thread", "export_thread")]
)
def test_actions__need_both_permissions(sign_in: SignIn, verb: str, rights: Any) -> None:
    _thread, record = observed_thread()
    client = sign_in("nosy", *rights)
    assert do(client, record, verb, line=1, text="x", generation=0).status_code == 403
    assert live().generation_count == 0 and not LogEntry.objects.exists()


@pytest.mark.parametrize("verb", VERBS)
def test_actions__take_only_forms_and_only_of_visible_records(
    editor: Client, settings: Settings, verb: str
) -> None:
    _thread, record = observed_thread()
    address = reverse("admin:mastra_memory_observationalrecord_do", args=[record.pk, verb])
    assert editor.get(address).status_code == 404
    assert editor.post(address.replace(verb, "burn")).status_code == 404
    settings.MASTRA_MEMORY = {"ADMIN_THREADS": "tests.admin.test_observations.only_open"}
    assert do(editor, record, verb, line=1, text="x", generation=0).status_code == 404
    assert live().generation_count == 0


# Working


@pytest.fixture
def worker(
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings.MASTRA_MEMORY = ON
    monkeypatch.setitem(current_app.conf, "task_always_eager", True)


@pytest.mark.usefixtures("worker")
def test_observe_now__observes_what_is_below_the_threshold(
    editor: Client, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    thread = make_thread()
    save([a_message(thread, "m1", text="My name is Zoe and I live in Kraków.", at=0)])
    record = make_record(thread)
    with django_capture_on_commit_callbacks(execute=True):
        page = text_of(do(editor, record, "observe"))
    assert "Observation was requested" in page
    assert "Kraków" in live().active_observations
    event = ObservationEvent.objects.get(operation="observation")
    assert event.user_name == "eva" and event.state == "done"
    assert LogEntry.objects.get().change_message == "Asked for observation."
    assert b"mm-observed-observed" in editor.get(page_of(thread.id)).content


@pytest.mark.usefixtures("worker")
def test_reflect_now__condenses_the_log(
    editor: Client, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    _thread, record = observed_thread()
    with django_capture_on_commit_callbacks(execute=True):
        page = text_of(do(editor, record, "reflect"))
    assert "Reflection was requested" in page
    assert ObservationEvent.objects.get(operation="reflection").user_name == "eva"


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("verb, operation", [("observe", "buffering"), ("reflect", "reflecting")])
def test_requests__are_refused_while_a_worker_does_the_same(
    editor: Client, verb: str, operation: str
) -> None:
    _thread, record = observed_thread(**held_lease(operation))
    response = do(editor, record, verb)
    assert response.status_code == 409 and "A worker is at work" in text_of(response)


def test_requests__need_an_agent_that_observes(editor: Client, settings: Settings) -> None:
    settings.MASTRA_MEMORY = {}
    _thread, record = observed_thread()
    assert "does not use observational memory" in text_of(do(editor, record, "observe"))
    assert "Observe now" not in text_of(editor.get(record_page(record)))
