import pytest

from mastra_memory.content import tokens
from mastra_memory.llm.extractive_reflector import SHARES, condense, reflect

FACTS = "\n".join(
    f"* {'🔴🟡🟢'[n % 3]} (10:{n:02}) User: I bought item{n} in city{n} for {n}00 dollars."
    for n in range(60)
)
LOG = (
    f"Date: Jan 1, 2025\n{FACTS}\n\n"
    "--- message boundary (2025-01-02T10:00:00.000Z) ---\n\n"
    "Date: Jan 2, 2025\n* 🔴 (09:00) User: I sold everything in the big house at Lyon."
)


@pytest.mark.parametrize("level", range(5))
def test_condense__respects_the_share_of_the_level(level: int) -> None:
    counter = tokens.get_token_counter()
    condensed = condense(LOG, level=level)
    assert 0.5 * SHARES[level] < counter.text(condensed) / counter.text(LOG) <= SHARES[level]
    assert condensed.endswith(LOG.partition("---\n\n")[2])
    assert "message boundary" not in condensed


def test_condense__high_importance_stays_longest() -> None:
    condensed = condense(LOG, level=3)
    assert condensed.count("🔴") > condensed.count("🟡") >= condensed.count("🟢")


def test_condense__pinned_items_stay() -> None:
    pinned = "User: I bought item2 in city2 for 200 dollars."
    assert pinned in condense(LOG, level=4, target_tokens=10, pinned={pinned})


def test_condense__the_newest_of_two_repetitions_stays() -> None:
    log = (
        "Date: Jan 1, 2025\n* 🔴 (10:00) User: My cat Tom is ill.\n* 🔴 (11:00) User: I like tea.\n"
        "Date: Jan 2, 2025\n* 🔴 (12:00) User: My cat Tom is ill."
    )
    assert condense(log) == (
        "Date: Jan 1, 2025\n* 🔴 (11:00) User: I like tea.\n"
        "Date: Jan 2, 2025\n* 🔴 (12:00) User: My cat Tom is ill."
    )


def test_condense__threads_and_nested_lines() -> None:
    log = (
        '<thread id="a">\nDate: Jan 1, 2025\n* 🟡 (10:00) Assistant called find\n'
        "  * -> 3 hits in Rome\n</thread>\n"
        '<thread id="b">\nDate: Jan 1, 2025\n* 🔴 (10:00) User: I like tea.\n</thread>'
    )
    assert condense(log) == log


@pytest.mark.parametrize("log", ["* x", "free text of another model", "* " + "long words " * 500])
def test_condense__never_empty(log: str) -> None:
    assert condense(log, level=4, target_tokens=1)


def test_condense__empty_log() -> None:
    assert condense("") == ""


def test_reflect__reads_the_tags_of_the_prompt() -> None:
    answer = reflect(
        f"<observation-log>\n{LOG}\n</observation-log>\n\n<pinned-observations>\n"
        "* User: I bought item2 in city2 for 200 dollars.\n</pinned-observations>\n\n"
        "<guidance>\nBe brief.\n</guidance>",
        level=4,
        target_tokens=200,
    )
    assert answer.startswith("<observations>\nDate: Jan 1, 2025\n")
    assert answer.endswith("\n</observations>")
    assert "item2 " in answer
    assert tokens.get_token_counter().text(answer) < 230
