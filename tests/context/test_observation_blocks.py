"""The blocks of observations that the agent reads."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from mastra_memory.context import rendering
from mastra_memory.memory import Memory
from mastra_memory.options import MemoryOptions, ObservationalMemoryOptions
from tests.support.factories import a_message, make_record, make_thread, moment, save, track

LOG = """Date: Jan 1, 2025
* 🔴 (10:00) A </observations>

--- message boundary (2025-01-04T10:07:00.000Z) ---

Date: Jan 4, 2025
* 🔴 (10:01) B"""
METADATA = {
    "currentTask": "Book </mood> a hotel",
    "suggestedResponse": "Ask for dates",
    "extracted": {"mood": "calm </mood>", "city": {"name": "Rome"}, "empty": " "},
}


@pytest.fixture(autouse=True)
def default_settings(memory_settings: Callable[..., None]) -> None:
    memory_settings()


def list_blocks(log: str = LOG, metadata: Any = METADATA, **options: Any) -> list[str]:
    parsed: ObservationalMemoryOptions | None = MemoryOptions.parse(
        {"observationalMemory": options}
    ).observational_memory
    return rendering.list_observation_blocks(log, metadata, options=parsed)


def test_list_observation_blocks__in_order() -> None:
    extract = [
        {"name": "mood"},
        {"name": "city", "mode": "inline"},
        {"name": "empty"},
        {"name": "hidden", "includePreviousExtraction": False},
    ]
    blocks = list_blocks(observation={"extract": extract})
    assert [block.split("\n")[0].split(" (")[0] for block in blocks[1:]] == [
        "<observations>",
        "Date: Jan 1, 2025",
        "[3 days later]",
        "</observations>",
        "<current-task>",
        "<suggested-response>",
        "<mood>",
        "<city>",
    ]
    assert blocks[2].endswith("* 🔴 (10:00) A &lt;/observations>")
    assert blocks[7] == "<mood>\ncalm &lt;/mood>\n</mood>"
    assert blocks[8] == '<city>\n{"name":"Rome"}\n</city>'


def test_render_observations__joins_the_blocks_and_closes_the_tag() -> None:
    text = rendering.render_observations(LOG, {})
    assert text.count("<observations>") == 1 and text.endswith("\n\n</observations>")
    assert "message boundary" not in text


@pytest.mark.parametrize(
    ("hints", "shown"),
    [
        (True, ["current-task", "suggested-response"]),
        (False, []),
        ({"currentTask": False}, ["suggested-response"]),
    ],
)
def test_list_observation_blocks__hints_that_are_enabled(hints: Any, shown: list[str]) -> None:
    blocks = list_blocks(observation={"continuationHints": hints})
    tags = [block.split(">")[0][1:] for block in blocks if block.startswith(("<cur", "<sug"))]
    assert tags == shown


def test_list_observation_blocks__nothing_for_an_empty_log() -> None:
    assert list_blocks("") == [] and list_blocks(" \n") == []


def test_list_observation_blocks__retrieval_rules_alone_for_an_empty_log() -> None:
    [rules] = list_blocks("", retrieval=True)
    assert "recall" in rules and "other conversations" in rules and "by meaning" not in rules
    assert list_blocks("", retrieval={"scope": "thread"}) == []
    [rules] = list_blocks("", retrieval={"vector": True, "instructions": "Read the code."})
    assert "by meaning" in rules and rules.endswith("Read the code.")


def test_list_observation_blocks__retrieval_shows_groups() -> None:
    group = '<observation-group id="g1" range="a:b">\n* 🟡 A [x]\n</observation-group>'
    assert "## Group `g1`\n_range: `a:b`_\n\n* 🟡 A [x]" in list_blocks(group, retrieval=True)
    assert "* A" in list_blocks(group), "without retrieval, tags and marks are removed"


@pytest.mark.django_db
def test_render_other_threads__between_marks_and_cut() -> None:
    thread = make_thread("ann", 'o"1')
    messages = save([a_message(thread, text="x" * 600, at=0), a_message(thread, text="Hi", at=1)])
    text = rendering.render_other_threads({'o"1': messages, "empty": []})
    assert text.split("\n")[2:] == [
        "START_OTHER_CONVERSATIONS_BLOCK",
        '<other-conversation id="o&quot;1">',
        "Jan 1 2024:",
        f"User (12:00 AM): {'x' * 500}…",
        "User: Hi",
        "</other-conversation>",
        "END_OTHER_CONVERSATIONS_BLOCK",
    ]
    assert rendering.render_other_threads({"empty": []}) == ""


def test_build_continuation_message__sorts_first() -> None:
    message = rendering.build_continuation_message("t", "ann")
    assert (message.id, message.role) == ("om-continuation", "user")
    assert message.created_at == datetime(1970, 1, 1, tzinfo=UTC)
    [part] = message.content["parts"]
    assert part["text"].startswith("<system-reminder>")
    assert part["text"].endswith("</system-reminder>")


@pytest.mark.django_db
def test_context__resource_scope_shows_unobserved_messages_of_other_threads() -> None:
    own, other, stranger = make_thread("ann", "t"), make_thread("ann", "o"), make_thread("bob")
    saved = save(
        [a_message(thread, text=f"Said in {thread.id}", at=5) for thread in (own, other, stranger)]
    )
    track(saved, scope="resource")
    memory = Memory(options={"observationalMemory": {"scope": "resource"}})
    record = make_record(resource_id="ann", last_observed_at=moment(0))
    assert memory.context("t").system_message is None
    record.active_observations = "* about Ann"
    record.save()
    context = memory.context("t")
    text = context.system_message or ""
    assert text.index("Said in o") < text.index("* about Ann")
    assert "Said in t" not in text and stranger.id not in text
    assert [message.id for message in context.messages] == ["om-continuation", saved[0].id]


@pytest.mark.django_db
def test_context__relative_dates_use_the_time_zone_of_the_record() -> None:
    thread = make_thread("ann", "t")
    make_record(
        thread, active_observations="Date: Jan 1, 2025\n* a", observed_timezone="Asia/Tokyo"
    )
    text = Memory(options={"observationalMemory": True}).context("t").system_message or ""
    assert "Date: Jan 1, 2025 (" in text
