"""The pages of an observational record: reading, and who may correct what."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from mastra_memory.memory import Memory
from mastra_memory.models import (
    ObservationalRecord,
    ObservationEvent,
)
from mastra_memory.observational import log
from tests.admin.conftest import SignIn
from tests.admin.observed import (
    FIRST,
    ON,
    SECOND,
    VIEW,
    do,
    live,
    observed_thread,
    record_page,
)
from tests.admin.pages import page_of, text_of
from tests.support.factories import (
    held_lease,
    make_chunk,
    make_record,
    make_thread,
    moment,
    save,
    some_messages,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def editor(sign_in: SignIn) -> Client:
    return sign_in("eva", *VIEW, "edit_transcript", "view_personal_data")


@pytest.fixture
def reader(sign_in: SignIn) -> Client:
    return sign_in("rita", *VIEW)


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
