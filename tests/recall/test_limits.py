"""Options beyond `MAX_RECALLED_MESSAGES` are lowered where messages are read, whoever asks."""

from collections.abc import Callable
from typing import Any

import pytest

from mastra_memory import setting_checks
from mastra_memory.memory import Memory
from mastra_memory.options import SemanticRecallOptions
from mastra_memory.recall import limits, recent
from tests.support.factories import a_message, make_thread

HUGE = 2**53 - 1


@pytest.fixture(autouse=True)
def thread(db: None, memory_settings: Callable[..., None]) -> None:
    memory_settings(OPTIONS={"semanticRecall": True}, MAX_RECALLED_MESSAGES=6)
    thread = make_thread("r", "t")
    batch = [a_message(thread, f"m{n}", text=f"Tennis, set {n}", at=n) for n in range(40)]
    Memory().save_messages(batch)


@pytest.mark.parametrize(
    ("top_k", "before", "after", "expected"),
    [
        (2, 1, 1, (2, 1, 1)),
        (HUGE, HUGE, HUGE, (6, 0, 0)),
        (1, HUGE, 0, (1, 2, 0)),
        (2, 5, 5, (2, 1, 1)),
        (0, HUGE, HUGE, (0, HUGE, HUGE)),
    ],
)
def test_limit_matches__top_k_first_then_windows(
    top_k: int, before: int, after: int, expected: tuple[int, int, int]
) -> None:
    chosen = SemanticRecallOptions(top_k=top_k, before=before, after=after)
    lowered = limits.limit_matches(chosen)
    assert (lowered.top_k, lowered.before, lowered.after) == expected


@pytest.mark.parametrize("scope", ["thread", "resource"])
@pytest.mark.parametrize(
    "options",
    [
        {"lastMessages": HUGE},
        {"lastMessages": 0, "semanticRecall": {"topK": HUGE, "messageRange": HUGE}},
        {"lastMessages": 0, "semanticRecall": {"topK": 1, "messageRange": HUGE}},
        {"messageHistory": {"maxTokens": HUGE, "atMaxRemoveTokens": 0}, "semanticRecall": False},
    ],
)
def test_recall__and_context_read_no_more(options: dict[str, Any], scope: str) -> None:
    if isinstance(options.get("semanticRecall"), dict):
        options = options | {"semanticRecall": options["semanticRecall"] | {"scope": scope}}
    recall = options.get("semanticRecall") is not None and options["semanticRecall"] is not False
    query = "tennis" if recall else None
    page = Memory().recall("t", resource_id="r", vector_search_string=query, options=options)
    assert 0 < len(page.messages) <= 6
    context = Memory().context("t", resource_id="r", new_messages=["tennis"], options=options)
    assert len(context.messages) <= 6 + 6 + 1  # history, matches, and what is new


def test_search__reads_no_more() -> None:
    options = {"lastMessages": HUGE, "semanticRecall": {"topK": HUGE, "messageRange": HUGE}}
    found = Memory().search("tennis", resource_id="r", limit=1000, options=options)
    assert len(found.results) <= 12
    shown = [hit.context for hit in found.results if hit.context is not None]
    assert shown and max(len(c.before) + len(c.after) for c in shown) <= 4


def test_iterate_newest__is_not_cut_by_a_small_limit() -> None:
    assert len(list(recent.iterate_newest("t"))) == 40


@pytest.mark.parametrize("wrong", [0, -1, True, "5", 2.5])
def test_checks__name_a_wrong_limit(memory_settings: Callable[..., None], wrong: object) -> None:
    memory_settings(MAX_RECALLED_MESSAGES=wrong)
    assert [found.id for found in setting_checks.check_limits()] == ["mastra_memory.E020"]
    memory_settings()
    assert setting_checks.check_limits() == []
