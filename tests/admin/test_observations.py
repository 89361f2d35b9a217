"""The pages of an observational record: reading, and who may correct what."""

from datetime import timedelta
from typing import Any

import pytest
from celery import current_app
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoCaptureOnCommitCallbacks, Settings

from mastra_memory.memory import Memory
from mastra_memory.models import (
    MessageObservation,
    ObservationalRecord,
    ObservationEvent,
    ThreadChange,
)
from mastra_memory.observational import log
from mastra_memory.types import StoredThread
from tests.admin.conftest import SignIn
from tests.admin.pages import page_of, text_of
from tests.support.factories import (
    a_message,
    held_lease,
    make_chunk,
    make_record,
    make_thread,
    moment,
    save,
    some_messages,
)

pytestmark = pytest.mark.django_db

ON = {"OPTIONS": {"observationalMemory": {"observation": {"messageTokens": 1_000}}}}
FIRST = "Date: Jan 1, 2024\n* 🔴 (10:00) Likes green tea\n* 🟡 (10:05) Works at Acme"
SECOND = "Date: Jan 2, 2024\n* 🔴 (09:00) Moved to Kraków\n  * -> asked for a new address"
VIEW = ("view_thread", "view_observationalrecord")


def record_page(record: ObservationalRecord, **query: Any) -> str:
    address = reverse("admin:mastra_memory_observationalrecord_change", args=[quote(record.pk)])
    return f"{address}?{'&'.join(f'{name}={value}' for name, value in query.items())}"


def do(client: Client, record: ObservationalRecord, verb: str, **fields: Any) -> Any:
    address = reverse("admin:mastra_memory_observationalrecord_do", args=[quote(record.pk), verb])
    return client.post(address, {"seen": record.generation_count, **fields}, follow=True)


def live() -> ObservationalRecord:
    return ObservationalRecord.objects.live().get()


def observed_thread(**fields: Any) -> tuple[StoredThread, ObservationalRecord]:
    """Six messages: two observed, two observed in another batch, one buffered, one raw."""
    thread = make_thread("alice", "talk", title="Tea and moving")
    save(some_messages(thread, 6))
    text = log.append_observations(FIRST, SECOND, moment(3))
    record = make_record(thread, active_observations=text, observation_token_count=40, **fields)
    for position, (observations, numbers) in enumerate(
        ((FIRST, (0, 1)), (SECOND, (2, 3)), ("* 🟢 (11:00) Said goodbye", (4,)))
    ):
        chunk = make_chunk(
            record,
            position,
            observations=observations,
            message_ids=[f"m{number}" for number in numbers],
            last_observed_at=moment(numbers[-1]),
            activated_at=moment(10 + position) if position < 2 else None,
            token_count=20,
            message_tokens=90,
        )
        for number in numbers:
            track(thread, f"m{number}", chunk=chunk)
    track(thread, "m5")
    return thread, record


def track(thread: StoredThread, message_id: str, **fields: Any) -> None:
    MessageObservation.objects.create(
        message_id=message_id,
        scope="thread",
        thread_id=thread.id,
        resource_id=thread.resource_id,
        token_count=45,
        **fields,
    )


@pytest.fixture
def editor(sign_in: SignIn) -> Client:
    return sign_in("eva", *VIEW, "edit_transcript", "view_personal_data")


@pytest.fixture
def reader(sign_in: SignIn) -> Client:
    return sign_in("rita", *VIEW)


# Reading


def test_log__shows_days_and_priorities_and_leads_to_messages(reader: Client) -> None:
    thread, record = observed_thread()
    response = reader.get(record_page(record))
    page, html = text_of(response), response.content.decode()
    assert page.index("Jan. 1, 2024") < page.index("Likes green tea") < page.index("Jan. 2, 2024")
    assert "high priority: 10:00 Likes green tea" in page
    assert "5 observations" not in page and "4 observations, oldest first" in page
    assert page.count("from 2 messages") == 2
    assert f'href="{page_of(thread.id, at="m0")}"' in html
    assert f'href="{page_of(thread.id, at="m2")}"' in html
    assert "view=batches&amp;message=m2" in html
    assert "Correct" not in page and "Observe now" not in page


def test_log__is_shown_page_by_page_and_finds_a_line(reader: Client) -> None:
    lines = "\n".join(f"* 🟢 (10:00) observation {number}." for number in range(400))
    record = make_record(make_thread(), active_observations=lines)
    newest = text_of(reader.get(record_page(record)))
    assert "page 3 of 3" in newest and "observation 399." in newest
    assert "observation 299." not in newest
    assert "observation 0." in text_of(reader.get(record_page(record, page=1)))
    found = reader.get(record_page(record, line=160)).content.decode()
    assert "page 2 of 3" in found and 'mm-target" id="o160"' in found


def test_batches__show_the_messages_that_they_were_made_of(reader: Client) -> None:
    thread, record = observed_thread()
    page = text_of(reader.get(record_page(record, view="batches")))
    assert page.index("Said goodbye") < page.index("Moved to Kraków") < page.index("Likes green")
    assert "90 tokens of messages became 20 (4.5 : 1)" in page
    response = reader.get(record_page(record, view="batches", message="m3"))
    one, html = text_of(response), response.content.decode()
    assert "Moved to Kraków" in one and "Likes green tea" not in one
    assert "Message 2" in one and "Message 3" in one and "Message 4" not in one
    assert f'href="{page_of(thread.id, at="m3")}"' in html
    Memory().delete_messages(["m3"])
    assert "1 message was deleted" in text_of(reader.get(record_page(record, view="batches")))


def test_conversation__marks_observed_buffered_and_raw_messages(reader: Client) -> None:
    thread, record = observed_thread()
    html = reader.get(page_of(thread.id)).content.decode()
    for state, count in (("observed", 4), ("buffered", 1), ("raw", 1)):
        assert html.count(f"mm-observed-{state}") == count, state
    assert (
        f'href="{record_page(record, view="batches", message="m4")}"'.replace("&", "&amp;") in html
    )


def test_conversation__marks_lead_nowhere_without_the_right(
    reviewer: Client, sign_in: SignIn
) -> None:
    thread, _record = observed_thread()
    client = sign_in("vera", "view_thread")
    html = client.get(page_of(thread.id)).content.decode()
    assert html.count("mm-observed-observed") == 4 and "view=batches" not in html


def test_conversation__messages_up_to_the_cursor_of_an_import_are_observed(reader: Client) -> None:
    thread = make_thread()
    save(some_messages(thread, 3))
    make_record(thread, last_observed_at=moment(1))
    html = reader.get(page_of(thread.id)).content.decode()
    assert html.count("mm-observed-observed") == 2 and html.count("mm-observed-raw") == 1


def test_conversation__without_records_has_no_marks(reader: Client) -> None:
    thread = make_thread()
    save(some_messages(thread, 3))
    assert b"mm-observed" not in reader.get(page_of(thread.id)).content


def test_state__shows_tokens_against_thresholds_and_running_work(
    reader: Client, settings: Settings
) -> None:
    settings.MASTRA_MEMORY = ON
    _thread, record = observed_thread(
        **held_lease("observing"), error="the model is overloaded", attempts=2
    )
    page = text_of(reader.get(record_page(record)))
    assert "of 1,000 tokens" in page and "2 messages," in page
    assert "40 of 40,000 tokens" in page
    assert "Observing" in page
    assert "2 attempts in a row failed: the model is overloaded" in page


def test_state__says_that_the_agent_does_not_observe(reader: Client, settings: Settings) -> None:
    settings.MASTRA_MEMORY = {}
    _thread, record = observed_thread(agent_id="gone")
    assert "does not use observational memory" in text_of(reader.get(record_page(record)))


def test_chart__is_drawn_from_batches_and_generations(reader: Client) -> None:
    thread, record = observed_thread()
    make_record(thread, generation_count=1, origin_type="reflection", observation_token_count=12)
    html = reader.get(record_page(record)).content.decode()
    assert "The log has 12 tokens now and had at most 40. Batches: 2. Generations: 2." in html
    assert "mm-origin-reflection" in html and 'd="M' in html


def test_events__show_what_failed_and_what_it_cost(reader: Client) -> None:
    _thread, record = observed_thread()
    facts = {"record": record, "thread_id": "talk", "started_at": moment(0)}
    ObservationEvent.objects.create(
        **facts, operation="observation", state="failed", finished_at=moment(3),
        error="503: overloaded", tokens_in=900, cost="0.0125",
    )  # fmt: skip
    ObservationEvent.objects.create(**facts, operation="reflection", user_name="eva")
    page = text_of(reader.get(record_page(record, view="events")))
    assert "503: overloaded" in page and "3.0 s" in page and "$0.0125" in page
    assert "Reflection running" in page and "eva" in page
    assert "2 events" in page and "1 failed" in page


def test_generations__are_compared_side_by_side(reader: Client) -> None:
    thread, _record = observed_thread()
    later = make_record(
        thread, generation_count=1, active_observations=f"{FIRST}\n* 🟢 new", origin_type="edit",
        created_by_name="eva",
    )  # fmt: skip
    page = text_of(reader.get(record_page(later, view="generations")))
    assert "Generation 0 beside generation 1" in page and "edited by a person · eva" in page
    beside = page.split("beside")[1]
    assert "− * 🔴 (09:00) Moved to Kraków" in beside and "+ * 🟢 new" in beside
    assert "Lines only on the left: 4. Lines only on the right: 1." in beside
    assert "Restore" not in page
    missing = reader.get(record_page(later, view="generations", **{"from": 7, "to": 9}))
    assert missing.status_code == 200 and "beside" not in text_of(missing)


def test_generation__that_was_replaced_leads_to_the_current_one(editor: Client) -> None:
    thread, record = observed_thread()
    later = make_record(thread, generation_count=1)
    page = editor.get(record_page(record)).content.decode()
    assert record_page(later, view="log").replace("&", "&amp;") in page
    assert "Correct" not in text_of(editor.get(record_page(record)))


# Masking and visibility


@pytest.mark.parametrize("view", ["log", "batches", "generations", "events"])
def test_pages__mask_personal_data(reader: Client, view: str) -> None:
    thread, record = observed_thread(created_by_name="zoe@example.com")
    ObservationalRecord.objects.update(
        active_observations="* 🔴 (10:00) Mail zoe@example.com\nzoe@example.com",
        buffered_reflection="* zoe@example.com",
    )
    make_record(thread, generation_count=1, active_observations="* now zoe@example.com")
    html = reader.get(record_page(record, view=view)).content.decode()
    assert "zoe@example" not in html


def test_log__shows_no_section_of_a_hidden_conversation(
    sign_in: SignIn, settings: Settings
) -> None:
    settings.MASTRA_MEMORY = {"ADMIN_THREADS": "tests.admin.test_observations.only_open"}
    make_thread("alice", "open-talk")
    make_thread("alice", "closed-talk")
    sections = [
        log.wrap_in_thread("open-talk", "* 🔴 (10:00) seen by all"),
        log.wrap_in_thread("closed-talk", "* 🔴 (10:00) tulip"),
    ]
    text = "\n\n".join(sections)
    record = make_record(resource_id="alice", active_observations=text)
    make_record(resource_id="alice", generation_count=1, active_observations=f"{text}\n* 🟢 more")
    for position, name in enumerate(("open-talk", "closed-talk")):
        make_chunk(record, position, thread_id=name, observations=sections[position])
    client = sign_in("eva", *VIEW, "edit_transcript", "view_personal_data")
    for record in ObservationalRecord.objects.all():
        for query in ({}, {"view": "batches"}, {"view": "generations"}, {"view": "events"}):
            html = client.get(record_page(record, **query)).content.decode()
            assert "tulip" not in html and "closed-talk" not in html, query
        assert b"tulip" not in client.get(record_page(record).replace("change", "text")).content
    assert b"tulip" not in client.get(page_of("open-talk")).content
    hidden_line = text.split("\n").index("* 🔴 (10:00) tulip")
    do(client, live(), "delete", line=hidden_line)
    assert "tulip" in live().active_observations


def only_open(request: Any, threads: Any) -> Any:
    return threads.filter(pk="open-talk")


# Correcting


def line_of(record: ObservationalRecord, words: str) -> int:
    return next(
        item.line for item in log.get_items(record.active_observations) if words in item.text
    )


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


def test_page__speaks_french(editor: Client, settings: Settings) -> None:
    settings.LANGUAGE_CODE = "fr"
    settings.MASTRA_MEMORY = ON
    _thread, record = observed_thread()
    page = text_of(editor.get(record_page(record)))
    for words in ("Observer maintenant", "priorité haute", "d’après 2 messages", "Épingler"):
        assert words in page, words


# Cost


def test_page__costs_a_fixed_number_of_statements(editor: Client, statements: Any) -> None:
    thread, _record = observed_thread()
    counts: dict[str, int] = {}
    for round_ in range(2):
        for view in ("log", "batches", "generations", "events"):
            with statements() as listed:
                editor.get(record_page(live(), view=view))
            assert counts.setdefault(view, len(listed)) == len(listed), (view, listed)
        if round_ == 0:
            for number in range(1, 6):
                make_record(thread, generation_count=number, active_observations=SECOND * 20)
                make_chunk(live(), number, activated_at=moment(number) + timedelta(days=1))
    assert max(counts.values()) <= 16, counts
