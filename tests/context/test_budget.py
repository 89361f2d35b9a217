"""The option `maxContextTokens`: what a context of limited size contains."""

import json
from collections.abc import Callable
from datetime import UTC
from typing import Any

import pytest

from mastra_memory.content import tokens
from mastra_memory.context import budget, rendering
from mastra_memory.context.budget import ContextParts
from mastra_memory.context.log_selection import LogQuery, select_observations
from mastra_memory.memory import Memory
from mastra_memory.search.types import ScoredMessage
from mastra_memory.types import StoredMessage
from tests.support.factories import a_message, make_record, make_thread, moment

DAYS = "\n".join(
    f"Date: Mar {day}, 2023\n"
    + "\n".join(f"* 🔴 ({hour:02}:00) User: I bought item{day}x{hour}." for hour in range(20))
    for day in range(1, 11)
)
QUERY = LogQuery(text="Where is item7x3?", timezone=UTC)


@pytest.fixture(autouse=True)
def default_settings(memory_settings: Callable[..., None]) -> None:
    memory_settings()


def render(log: str) -> str:
    return rendering.render_observations(log, {})


def select(log: str = DAYS, max_tokens: int = 500, query: LogQuery = QUERY) -> str:
    """Return the chosen observations, after checking that they fit."""
    selected = select_observations(log, max_tokens, query, render=render)
    if selected:
        assert tokens.get_token_counter().text(render(selected)) <= max_tokens
    return selected


@pytest.mark.parametrize("max_tokens", [200, 500, 1_000, 2_000])
def test_select_observations__the_best_match_with_its_day(max_tokens: int) -> None:
    selected = select(max_tokens=max_tokens)
    day = selected.partition("Date: Mar 7, 2023\n")[2].partition("Date:")[0]
    assert "(03:00) User: I bought item7x3." in day
    assert selected.splitlines() == [line for line in DAYS.splitlines() if line in selected]
    used = tokens.get_token_counter().text(render(selected))
    assert used > 0.7 * max_tokens, "most of the tokens are used"


def test_select_observations__newest_without_a_query() -> None:
    selected = select(query=LogQuery(timezone=UTC))
    assert selected.endswith("* 🔴 (19:00) User: I bought item10x19.")
    assert "Mar 1, 2023" not in selected


def test_select_observations__nothing_fits() -> None:
    assert select(max_tokens=5) == ""


def test_select_observations__keeps_groups_threads_and_nested_items() -> None:
    section = (
        '<observation-group id="g7" range="a:b">\n<thread id="t">\nDate: Mar 20, 2023\n'
        "* 🟡 (10:00) Assistant called findItem\n  * -> zebra\n</thread>\n</observation-group>"
    )
    log = f"{DAYS}\n\n{section}"
    selected = select(log, query=LogQuery(text="the zebra", timezone=UTC))
    assert section in selected


def make_message(text: str, at: str, **fields: Any) -> StoredMessage:
    """Return a message that is not stored. `fields` replace its other values."""
    values: dict[str, Any] = {
        "id": "m",
        "thread_id": "t",
        "resource_id": "ann",
        "role": "user",
        "type": "v2",
        "content_json": json.dumps({"format": 2, "parts": [{"type": "text", "text": text}]}),
        "created": at,
        "sequence": 1,
        "signal": "",
    }
    return StoredMessage(**{**values, **fields})


def test_select_observations__leaves_out_what_the_context_has() -> None:
    included = [make_message("I bought item7x3.", "2023-03-07T03:00:20.000Z")]
    query = LogQuery(text="item7x3", included=included, timezone=UTC)
    assert "item7x3" not in select(query=query)
    elsewhere = [make_message("I bought item7x3.", "2023-03-07T04:00:20.000Z")]
    query = LogQuery(text="item7x3", included=elsewhere, timezone=UTC)
    assert "item7x3." in select(query=query)


def test_log_query__scores_matches_by_minute() -> None:
    times = [moment(seconds).timestamp() for seconds in (0, 30, 60)]
    scored = [ScoredMessage(str(n), time, n, 3.0 - n) for n, time in enumerate(times)]
    assert LogQuery(scored=scored, timezone=UTC).score_minutes() == {
        (moment().date(), "00:00"): 1.0,
        (moment().date(), "00:01"): 0.0,
    }


RECALL = {"semanticRecall": {"scope": "resource", "topK": 20, "messageRange": 0, "mode": "hybrid"}}
OBSERVING = {"observationalMemory": True}


def save_conversation() -> None:
    """Save 100 observed and 20 raw messages in one thread, and 20 messages in another one."""
    memory = Memory(options=RECALL)
    thread, other = make_thread("ann", "t"), make_thread("ann", "u")
    rows = [a_message(thread, f"t{n}", text=f"I bought thing{n} today", at=n) for n in range(120)]
    rows += [a_message(other, f"u{n}", text=f"I sold thing{n} later", at=n) for n in range(20)]
    memory.save_messages(rows)
    make_record(thread, active_observations=DAYS, last_observed_at=moment(99))


@pytest.mark.django_db
@pytest.mark.parametrize("options", [{}, RECALL, OBSERVING, {**RECALL, **OBSERVING}])
@pytest.mark.parametrize("max_tokens", [600, 1_000, 3_000])
def test_context__has_at_most_these_tokens(options: dict[str, Any], max_tokens: int) -> None:
    save_conversation()
    memory = Memory(options={"lastMessages": 500, "maxContextTokens": max_tokens, **options})
    context = memory.context("t", new_messages="What about thing42 and item7x3?")
    assert 0.6 * min(max_tokens, 1_500) < context.tokens <= max_tokens
    ids = [message.id for message in context.messages]
    assert "t119" in ids, "the newest message is there"
    assert len(ids) == len(set(ids))
    if "semanticRecall" in options:
        assert "t42" in ids
    if "observationalMemory" in options:
        assert "item7x3" in (context.system_message or "")


@pytest.mark.django_db
def test_context__everything_that_fits_is_the_same_as_without_a_limit() -> None:
    save_conversation()
    question = "What about thing42?"
    options = {"semanticRecall": {**RECALL["semanticRecall"], "topK": 1}, **OBSERVING}
    full = Memory(options=options).context("t", new_messages=question)
    limited = Memory(options={**options, "maxContextTokens": 50_000})
    context = limited.context("t", new_messages=question)
    assert [b.kind for b in context.blocks] == [b.kind for b in full.blocks]
    assert [b.text for b in context.blocks] == [b.text for b in full.blocks]
    assert [m.id for m in context.messages][:-1] == [m.id for m in full.messages][:-1]


@pytest.mark.django_db
def test_context__new_messages_are_always_included() -> None:
    save_conversation()
    memory = Memory(options={**RECALL, **OBSERVING, "maxContextTokens": 0})
    context = memory.context("t", new_messages="Hello")
    assert [block.kind for block in context.blocks] == ["new"]


def make_tool_message(message_id: str, sequence: int, role: str, state: str) -> StoredMessage:
    """Return a message with one part: a call of a tool, or the result of the call."""
    invocation = {"toolCallId": "c1", "toolName": "find", "args": {}, "state": state}
    if state == "result":
        invocation["result"] = "a zebra"
    part = {"type": "tool-invocation", "toolInvocation": invocation}
    return make_message(
        "",
        f"2024-01-01T00:00:0{sequence}.000Z",
        id=message_id,
        role=role,
        content_json=json.dumps({"format": 2, "parts": [part]}),
        sequence=sequence,
    )


@pytest.mark.parametrize("max_tokens", [1, 8, 12, 20, 40, 1_000])
def test_fit_parts__a_call_and_its_result_stay_together(max_tokens: int) -> None:
    call = make_tool_message("call", 1, "assistant", "call")
    result = make_tool_message("result", 2, "tool", "result")
    newest = make_message("Hello", "2024-01-01T00:00:05.000Z", id="new", sequence=5)
    for parts in (
        ContextParts(thread_id="t", recalled=[result, call], history=[newest]),
        ContextParts(thread_id="t", history=[call, result, newest]),
    ):
        fitted = budget.fit_parts(
            parts, max_tokens, render=render, query=lambda _: LogQuery(timezone=UTC)
        )
        ids = {message.id for message in (*fitted.recalled, *fitted.history)}
        assert ("call" in ids) == ("result" in ids)
        assert max_tokens < 1_000 or len(ids) == 3
