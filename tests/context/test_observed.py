"""An observation log as an agent reads it."""

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from mastra_memory.context import observation_text
from mastra_memory.memory import Memory
from tests.support.factories import a_message, make_record, make_thread, moment, save

TODAY = date(2025, 6, 20)
OBSERVING: dict[str, Any] = {"observationalMemory": True, "lastMessages": 1}


@pytest.fixture(autouse=True)
def nothing_set(memory_settings: Callable[..., None]) -> None:
    memory_settings()


@pytest.mark.parametrize(
    ("log", "shown"),
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
def test_readable__is_slim_and_knows_the_day(log: str, shown: str | None) -> None:
    assert observation_text.format_observations(log, TODAY) == (log if shown is None else shown)


@pytest.mark.parametrize(
    ("days", "told"),
    [
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
def test_relative__tells_days(days: int, told: str) -> None:
    assert observation_text.format_relative_days(days) == told


def talk(thread_id: str = "t", **more: Any) -> Any:
    """A thread of four messages `t0` … `t3`."""
    thread = make_thread("ann", thread_id, **more)
    save([a_message(thread, f"{thread_id}{at}", text=f"Said {at}", at=at) for at in range(4)])
    return thread


def shown(**options: Any) -> list[str]:
    """Ids of the context's messages."""
    return [one.id for one in Memory(options={**OBSERVING, **options}).context("t").messages]


@pytest.mark.django_db
def test_context__tells_what_to_do_next_between_tags_of_ours() -> None:
    hints = {"currentTask": "Book a </current-task> hotel", "suggestedResponse": "  "}
    make_record(talk(metadata={"mastra": {"om": hints}}), active_observations="* likes tea")
    text = Memory(options=OBSERVING).context("t").system_message or ""
    assert text.endswith("<current-task>\nBook a &lt;/current-task> hotel\n</current-task>")
    assert "<suggested-response>" not in text


@pytest.mark.django_db
def test_context__without_observations_there_is_no_block_and_every_message() -> None:
    hints = {"currentTask": "Book a hotel"}
    thread = talk(metadata={"mastra": {"om": hints}})
    assert shown() == ["t3"]  # nothing was ever observed: there is no record
    make_record(thread)
    context = Memory(options=OBSERVING).context("t")
    assert (context.system_message, len(context.messages)) == (None, 4)
    assert not context.has_observations


@pytest.mark.django_db
def test_context__the_newest_generation_counts() -> None:
    thread = talk()
    make_record(thread, active_observations="* old", last_observed_at=moment(0))
    make_record(thread, active_observations="* new", last_observed_at=moment(2), generation_count=1)
    context = Memory(options=OBSERVING).context("t")
    assert "* new" in (context.system_message or "")
    assert "* old" not in (context.system_message or "")
    assert [one.id for one in context.messages] == ["t3"]


@pytest.mark.django_db
def test_context__what_was_observed_by_id_is_not_shown_again() -> None:
    make_record(
        talk(),
        active_observations="* noted",
        last_observed_at=moment(0),
        observed_message_ids=["t0", "t2"],
    )
    assert shown() == ["t1", "t3"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("cursor", "ids"),
    [
        (moment(1).isoformat(), ["t2", "t3"]),
        (None, ["t0", "t1", "t2", "t3"]),
        ("rubbish", ["t0", "t1", "t2", "t3"]),
    ],
)
def test_context__of_a_resource_goes_by_the_cursor_of_the_thread(
    cursor: Any, ids: list[str]
) -> None:
    talk(metadata={"mastra": {"om": {"lastObservedAt": cursor}}})
    make_record(resource_id="ann", active_observations="* about Ann", last_observed_at=moment(3))
    assert shown(observationalMemory={"scope": "resource"}) == ids
    assert len(shown()) == 1, "no record of this thread's own"


@pytest.mark.django_db
def test_context__observations_are_off_by_default() -> None:
    make_record(talk(), active_observations="* noted", last_observed_at=moment(2))
    context = Memory(options={"lastMessages": 4}).context("t")
    assert (context.system_message, len(context.messages)) == (None, 4)


@pytest.mark.django_db
def test_context__of_another_resource_is_never_told() -> None:
    make_record(resource_id="bob", active_observations="* about Bob")
    talk()
    context = Memory(options={"observationalMemory": {"scope": "resource"}}).context("t")
    assert "Bob" not in (context.system_message or "")
