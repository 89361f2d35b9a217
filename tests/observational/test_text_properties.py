"""Properties of logs and answers, for any text."""

from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mastra_memory.content import tokens, transcript
from mastra_memory.context import observation_text
from mastra_memory.db import json_text
from mastra_memory.observational import attachments, groups, log, parsing
from mastra_memory.options import ContinuationHints
from mastra_memory.types import StoredMessage

START = datetime(2025, 1, 1, tzinfo=UTC)
FRAGMENTS = [
    "<observations>",
    "</observations>",
    "<current-task>",
    "</current-task>",
    "<thread-title>",
    '<thread id="t1">',
    "</thread>",
    '<observation-group id="a" range="m1:m2">',
    "</observation-group>",
    "--- message boundary (2025-01-04T10:07:00.000Z) ---",
    "Date: Jan 4, 2025",
    "* 🔴 (10:00) User has a dog",
    "  * -> called Rex",
    "- plain",
    "text",
    "\n",
    "\r\n",
    " ",
    "```",
]
ANSWERS = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=8), max_size=25).map("".join)
BATCHES = st.lists(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), max_size=12),
             min_size=1, max_size=4),
    min_size=1, max_size=5,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(ANSWERS, st.booleans())
def test_parse_answer__never_returns_what_only_we_write(answer: str, keep_whole: bool) -> None:
    parsed = parsing.parse_answer(answer, hints=ContinuationHints(), keep_whole=keep_whole)
    assert not log.BOUNDARY_LINE.search(parsed.observations)
    assert not groups.parse_groups(parsed.observations)
    assert all(item.thread_id is None for item in log.get_items(parsed.observations))
    assert parsed.thread_title is None


@settings(max_examples=100, deadline=None)
@given(ANSWERS)
def test_parse_thread_answers__one_for_each_thread(answer: str) -> None:
    parsed = parsing.parse_thread_answers(answer, ["t1", "t2"], hints=ContinuationHints())
    assert list(parsed) == ["t1", "t2"] and parsed["t2"].observations == ""


@settings(max_examples=100, deadline=None)
@given(BATCHES)
def test_append_observations__every_batch_is_found_again(batches: list[list[str]]) -> None:
    text, expected = "", []
    for number, lines in enumerate(batches):
        batch = "\n".join(f"* {line}" for line in lines)
        moment = START + timedelta(days=number)
        text = log.append_observations(text, batch, moment)
        expected.append((None if number == 0 else moment, batch.strip()))
    pieces = log.split_at_boundaries(text)
    assert [(piece.observed_at, piece.text) for piece in pieces] == expected
    as_of = log.observations_as_of(text, START + timedelta(days=len(batches)))
    assert as_of == "\n\n".join(batch for _, batch in expected)


@settings(max_examples=100, deadline=None)
@given(ANSWERS, ANSWERS)
def test_replace_prefix__loses_nothing_that_was_appended(read: str, added: str) -> None:
    replaced = log.replace_prefix(read + added, read, "* short")
    assert replaced is not None and replaced.startswith("* short")
    assert replaced.endswith(added.strip())


@settings(max_examples=100, deadline=None)
@given(ANSWERS, st.integers(1, 40))
def test_find_cut__lines_before_and_after_make_the_log(text: str, count: int) -> None:
    cut = log.find_cut(text, count)
    assert 1 <= cut <= len(text.split("\n"))
    first, rest = log.take_lines(text, cut), text.split("\n")[cut:]
    assert "\n".join([first, *rest]) == text


@settings(max_examples=100, deadline=None)
@example("--- message boundary (2025-01-04T10:07:00.000Z) ---\r\n")
@example("\u2003--- message boundary (x) --- \n* tea")
@given(ANSWERS)
def test_format_pieces__any_text(text: str) -> None:
    for with_groups in (False, True):
        pieces = observation_text.format_pieces(text, START.date(), with_groups=with_groups)
        assert not any(log.BOUNDARY_LINE.search(piece) for piece in pieces)
        assert not any(groups.parse_groups(piece) for piece in pieces)


@pytest.mark.parametrize(
    "unit",
    [
        '<thread id="a">',
        "<observations>\n",
        "<current-task>",
        '<observation-group id="x" range="a:b">\n* a\n',
        "[ (meaning ",
        "--- message boundary (",
        "* -> [O1] ",
        "Date: Jan 1, 2025\n",
        " \t",
        "\n",
    ],
)
def test_long_answers_take_linear_time(unit: str) -> None:
    text = unit * (400_000 // len(unit))
    started = monotonic()
    parsing.parse_answer(text, hints=ContinuationHints(), with_title=True, slugs=["mood"])
    parsing.parse_thread_answers(text, ["a"], hints=ContinuationHints())
    parsing.is_degenerate(text)
    log.get_items(text)
    observation_text.format_pieces(text, START.date())
    observation_text.format_pieces(text, START.date(), with_groups=True)
    assert monotonic() - started < 20


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)
PART_KEYS = ("text", "reasoning", "details", "data", "image", "url", "mimeType", "filename",
             "source", "createdAt", "providerMetadata")  # fmt: skip
CALL_KEYS = ("toolName", "toolCallId", "args", "rawInput", "result", "errorText", "isError",
             "approval")  # fmt: skip
STATES = ("call", "result", "output-error", "output-denied", "approval-responded")
CALLS = st.fixed_dictionaries(
    {"state": st.sampled_from(STATES) | JSON}, optional=dict.fromkeys(CALL_KEYS, JSON)
)
PARTS = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            ["text", "reasoning", "tool-invocation", "file", "image", "source", "data-x"]
        ),
        "toolInvocation": CALLS | JSON,
    },
    optional=dict.fromkeys(PART_KEYS, JSON),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(PARTS, max_size=3), st.sampled_from(["user", "assistant", "signal"]), JSON)
def test_transcript_and_token_count__any_content(parts: Any, role: str, metadata: Any) -> None:
    content = {"format": 2, "parts": parts, "metadata": metadata}
    message = StoredMessage(
        "m", "t", "r", role, "v2", json_text.dumps(content), "2024-01-01T00:00:00.000Z", 1
    )
    stored = message.content
    assert isinstance(tokens.get_token_counter().message(role, stored), int)
    assert isinstance(transcript.format_for_observer([message]), str)
    assert isinstance(attachments.collect_attachments([message], ["*/*"]), tuple)
    assert groups.format_range([message]) == "m:m"
