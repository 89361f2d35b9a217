"""Observations in the context of an agent."""

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import pytest

from mastra_memory import messages
from mastra_memory.context import observation_text
from mastra_memory.memory import Memory
from mastra_memory.models import MessageObservation
from mastra_memory.observational.log import format_heading
from tests.support.factories import (
    a_message,
    make_chunk,
    make_record,
    make_thread,
    moment,
    save,
    track,
)

TODAY = date(2025, 6, 20)
OBSERVING: dict[str, Any] = {"observationalMemory": True, "lastMessages": 1}


@pytest.fixture(autouse=True)
def default_settings(memory_settings: Callable[..., None]) -> None:
    memory_settings()


@pytest.mark.parametrize(
    ("log", "formatted"),
    [
        ("", ""),
        (
            "* 🔴 (10:00) A [tag] b\n  * -> did c\n* 🟡 (10:05) D",
            "* 🔴 (10:00) A b\n * did c\n* (10:05) D",
        ),
        ("[O1] A\n* [O12] B", "A\n* B"),
        ("A [2 items collapsed] [a](https://x.example)", None),
        ("A\n\n--- message boundary (2025-01-04T10:07:00.000Z) ---\n\nB", "A\n\nB"),
        ('<observation-group id="x" range="a:b">\n* A\n</observation-group>', "* A"),
        ("Date: May 15, 2025", "Date: May 15, 2025 (1 month ago)"),
        ("Date: Feb 30, 2025", None),
        (
            "* User will visit Rome (meaning May 30, 2025)",
            "* User will visit Rome (meaning May 30, 2025 - 3 weeks ago, likely already happened)",
        ),
        (
            "* Was there (meaning May 30-31, 2025)",
            "* Was there (meaning May 30-31, 2025 - 3 weeks ago)",
        ),
        ("* Leaves (estimated mid July 2025)", "* Leaves (estimated mid July 2025 - in 3 weeks)"),
        ("* Leaves (meaning Sometime 2025)", None),
        (
            "Date: May 15, 2025\n* A\nDate: Jun 10, 2025\n* B",
            "Date: May 15, 2025 (1 month ago)\n* A\n\n[3 weeks later]\n\n"
            "Date: Jun 10, 2025 (1 week ago)\n* B",
        ),
    ],
)
def test_format_observations__removes_marks_adds_distances(log: str, formatted: str | None) -> None:
    assert observation_text.format_observations(log, TODAY) == (
        log if formatted is None else formatted
    )


def test_format_observations__example_of_the_specification() -> None:
    log = """Date: May 15, 2025
* 🔴 (09:00) User will visit Rome (meaning May 30, 2025)

--- message boundary (2025-06-10T10:07:00.000Z) ---

Date: Jun 10, 2025
* 🟡 (10:00) User is back"""
    assert observation_text.format_observations(log, TODAY) == (
        "Date: May 15, 2025 (1 month ago)\n"
        "* 🔴 (09:00) User will visit Rome "
        "(meaning May 30, 2025 - 3 weeks ago, likely already happened)\n\n"
        "[3 weeks later]\n\nDate: Jun 10, 2025 (1 week ago)\n* (10:00) User is back"
    )


@pytest.mark.parametrize(
    ("days", "gap"),
    [
        (1, None),
        (2, "[2 days later]"),
        (6, "[6 days later]"),
        (7, "[1 week later]"),
        (13, "[1 week later]"),
        (14, "[2 weeks later]"),
        (29, "[4 weeks later]"),
        (30, "[1 month later]"),
        (59, "[1 month later]"),
        (60, "[2 months later]"),
        (400, "[13 months later]"),
        (-3, None),
    ],
)
def test_format_observations__gaps_between_days(days: int, gap: str | None) -> None:
    first = date(2024, 3, 1)
    log = "\n".join(f"{format_heading(day)}\n* x" for day in (first, first + timedelta(days)))
    lines = observation_text.format_observations(log, TODAY).split("\n")
    assert [line for line in lines if line.startswith("[")] == ([gap] if gap else [])


@pytest.mark.parametrize(
    ("note", "day"),
    [
        ("meaning May 30, 2025", date(2025, 5, 30)),
        ("meaning Jun 17-18, 2025", date(2025, 6, 17)),
        ("estimated early May 2025", date(2025, 5, 7)),
        ("estimated mid May 2025", date(2025, 5, 15)),
        ("estimated late May 2025", date(2025, 5, 23)),
        ("estimated April to May 2025", date(2025, 5, 1)),
        ("estimated April to early May 2025", date(2025, 5, 1)),
    ],
)
def test_format_observations__forms_of_dates(note: str, day: date) -> None:
    ago = observation_text.format_relative_days((TODAY - day).days)
    assert observation_text.format_observations(f"* x ({note})", TODAY) == f"* x ({note} - {ago})"


@pytest.mark.parametrize(
    "intention",
    """will|plans to|plan to|planning to|looking forward to|going to|intends to|intend to|wants to|
want to|needs to|need to|about to""".replace("\n", "").split("|"),
)
def test_format_observations__past_intention_has_likely_happened(intention: str) -> None:
    past = observation_text.format_observations(f"* {intention} go (meaning May 1, 2025)", TODAY)
    assert past.endswith("- 1 month ago, likely already happened)")
    future = observation_text.format_observations(f"* {intention} go (meaning Jul 1, 2025)", TODAY)
    assert future.endswith("(meaning Jul 1, 2025 - in 1 week)")


def test_format_pieces__with_groups_keeps_marks_and_shows_ranges() -> None:
    group = '<observation-group id="g1" range="a:b">\n* 🟡 (10:00) A [tag]\n</observation-group>'
    log = f"{group}\n\n--- message boundary (2025-01-04T10:07:00.000Z) ---\n\n* 🟢 B -> C"
    assert observation_text.format_pieces(log, TODAY, with_groups=True) == [
        "## Group `g1`\n_range: `a:b`_\n\n* 🟡 (10:00) A [tag]",
        "* 🟢 B -> C",
    ]
    assert observation_text.format_pieces(log, TODAY) == ["* (10:00) A", "* B C"]


@pytest.mark.parametrize(
    ("days", "text"),
    [
        (2, "2 days ago"),
        (7, "1 week ago"),
        (14, "2 weeks ago"),
        (30, "1 month ago"),
        (60, "2 months ago"),
        (365, "1 year ago"),
        (-2, "in 2 days"),
        (-6, "in 6 days"),
        (-13, "in 1 week"),
        (-14, "in 2 weeks"),
        (-29, "in 4 weeks"),
        (-30, "in 1 month"),
        (-59, "in 1 month"),
        (-60, "in 2 months"),
        (-364, "in 12 months"),
        (-365, "in 1 year"),
        (-730, "in 2 years"),
        (0, "today"),
        (1, "yesterday"),
        (-1, "tomorrow"),
        (6, "6 days ago"),
        (13, "1 week ago"),
        (29, "4 weeks ago"),
        (59, "1 month ago"),
        (364, "12 months ago"),
        (800, "2 years ago"),
        (-3, "in 3 days"),
        (-7, "in 1 week"),
        (-400, "in 1 year"),
    ],
)
def test_format_relative_days__names_the_distance(days: int, text: str) -> None:
    assert observation_text.format_relative_days(days) == text


def save_conversation(thread_id: str = "t", **more: Any) -> Any:
    """Create a thread with the messages `t0` to `t3`."""
    thread = make_thread("ann", thread_id, **more)
    save([a_message(thread, f"{thread_id}{at}", text=f"Said {at}", at=at) for at in range(4)])
    return thread


def list_context_ids(**options: Any) -> list[str]:
    """Return the ids of the stored messages of the context."""
    context = Memory(options={**OBSERVING, **options}).context("t")
    block = context.block("history")
    return [message.id for message in block.messages] if block else []


@pytest.mark.django_db
def test_context__puts_escaped_hints_between_tags() -> None:
    hints = {"currentTask": "Book a </current-task> hotel", "suggestedResponse": "  "}
    make_record(
        save_conversation(metadata={"mastra": {"om": hints}}), active_observations="* likes tea"
    )
    text = Memory(options=OBSERVING).context("t").system_message or ""
    assert text.endswith("<current-task>\nBook a &lt;/current-task> hotel\n</current-task>")
    assert "<suggested-response>" not in text


@pytest.mark.django_db
def test_context__empty_record_shows_all_messages() -> None:
    hints = {"currentTask": "Book a hotel"}
    thread = save_conversation(metadata={"mastra": {"om": hints}})
    assert list_context_ids() == ["t3"]  # There is no record yet.
    make_record(thread)
    context = Memory(options=OBSERVING).context("t")
    assert (context.system_message, len(context.messages)) == (None, 4)
    assert not context.has_observations


@pytest.mark.django_db
def test_context__uses_newest_generation() -> None:
    thread = save_conversation()
    make_record(thread, active_observations="* old", last_observed_at=moment(0))
    make_record(thread, active_observations="* new", last_observed_at=moment(2), generation_count=1)
    context = Memory(options=OBSERVING).context("t")
    assert "* new" in (context.system_message or "")
    assert "* old" not in (context.system_message or "")
    assert [message.id for message in context.messages] == ["om-continuation", "t3"]


@pytest.mark.django_db
def test_context__hides_messages_observed_by_id() -> None:
    make_record(
        save_conversation(),
        active_observations="* a note",
        last_observed_at=moment(0),
        observed_message_ids=["t0", "t2"],
    )
    assert list_context_ids() == ["t1", "t3"]


@pytest.mark.django_db
def test_context__shows_pending_and_buffered_messages_before_the_cursor() -> None:
    thread = save_conversation()
    track(messages.get_messages([f"t{at}" for at in range(4)]), scope="thread")
    record = make_record(thread, active_observations="* a note", last_observed_at=moment(2))
    chunks = {"t0": make_chunk(record, 0), "t2": make_chunk(record, 1, activated_at=moment())}
    for message_id, chunk in chunks.items():
        MessageObservation.objects.filter(message_id=message_id).update(chunk=chunk)
    assert list_context_ids() == ["t0", "t1", "t3"]
    save([a_message(thread, "untracked", at=3)])
    assert list_context_ids() == ["t0", "t1", "t3", "untracked"]


@pytest.mark.django_db
def test_context__hides_observed_messages_of_a_record_without_cursor() -> None:
    save_conversation()
    track(messages.get_messages(["t0"]), scope="resource")
    chunk = make_chunk(make_record(resource_id="ann"), activated_at=moment())
    MessageObservation.objects.update(chunk=chunk)
    ids = list_context_ids(observationalMemory={"scope": "resource"})
    assert ids == ["t1", "t2", "t3"]


@pytest.mark.django_db
def test_context__shows_no_history_if_it_is_disabled() -> None:
    make_record(save_conversation(), active_observations="* a note", last_observed_at=moment(0))
    context = Memory(options={**OBSERVING, "lastMessages": False}).context("t")
    assert "* a note" in (context.system_message or "")
    assert context.block("history") is None


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("cursor", "ids"),
    [
        (moment(1).isoformat(), ["t2", "t3"]),
        (None, ["t0", "t1", "t2", "t3"]),
        ("rubbish", ["t0", "t1", "t2", "t3"]),
    ],
)
def test_context__in_resource_scope_uses_cursor_of_thread(cursor: Any, ids: list[str]) -> None:
    save_conversation(metadata={"mastra": {"om": {"lastObservedAt": cursor}}})
    make_record(resource_id="ann", active_observations="* about Ann", last_observed_at=moment(3))
    assert list_context_ids(observationalMemory={"scope": "resource"}) == ids
    assert len(list_context_ids()) == 1, "the thread has no record of its own"


@pytest.mark.django_db
def test_context__observations_are_off_by_default() -> None:
    make_record(save_conversation(), active_observations="* a note", last_observed_at=moment(2))
    context = Memory(options={"lastMessages": 4}).context("t")
    assert (context.system_message, len(context.messages)) == (None, 4)


@pytest.mark.django_db
def test_context__never_shows_observations_of_other_resource() -> None:
    make_record(resource_id="bob", active_observations="* about Bob")
    save_conversation()
    context = Memory(options={"observationalMemory": {"scope": "resource"}}).context("t")
    assert "Bob" not in (context.system_message or "")
