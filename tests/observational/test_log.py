"""The text of a log."""

from datetime import UTC, date, datetime

import pytest

from mastra_memory.observational import log
from mastra_memory.observational.log import LogPiece

LOG = """Date: Jan 1, 2025
* 🔴 (10:00) A

--- message boundary (2025-01-04T10:07:00.000Z) ---

Date: Jan 4, 2025
* 🔴 (10:01) B"""
MOMENT = datetime(2025, 1, 4, 10, 7, tzinfo=UTC)


def test_append_observations__puts_boundary_before_new_batch() -> None:
    first = log.append_observations("", "Date: Jan 1, 2025\n* 🔴 (10:00) A\n", MOMENT)
    assert first == "Date: Jan 1, 2025\n* 🔴 (10:00) A"
    assert log.append_observations(first, "Date: Jan 4, 2025\n* 🔴 (10:01) B", MOMENT) == LOG


@pytest.mark.parametrize("text", ["", " \n"])
def test_append_observations__nothing_new_changes_nothing(text: str) -> None:
    assert log.append_observations(LOG, text, MOMENT) == LOG
    assert log.append_observations("", text, MOMENT) == ""


def test_split_at_boundaries__with_times() -> None:
    assert log.split_at_boundaries(LOG) == [
        LogPiece(None, "Date: Jan 1, 2025\n* 🔴 (10:00) A"),
        LogPiece(MOMENT, "Date: Jan 4, 2025\n* 🔴 (10:01) B"),
    ]
    assert log.split_at_boundaries(" ") == []
    assert log.split_at_boundaries("a\n\n--- message boundary (soon) ---\n\nb")[1].text == "b"


def test_observations_as_of__leaves_out_later_pieces() -> None:
    text = "A"
    for day, letter in ((2, "B"), (5, "C")):
        text = log.append_observations(text, letter, datetime(2025, 1, day, tzinfo=UTC))
    assert log.observations_as_of(text, datetime(2025, 1, 3, tzinfo=UTC)) == "A\n\nB"
    assert log.observations_as_of(text, datetime(2025, 1, 5, tzinfo=UTC)) == "A\n\nB\n\nC"
    assert log.observations_as_of(text, datetime(2020, 1, 1, tzinfo=UTC)) == "A"
    assert log.observations_as_of("", datetime(2025, 1, 3, tzinfo=UTC)) == ""


def test_replace_prefix__keeps_what_was_appended_meanwhile() -> None:
    grown = log.append_observations("* old", "* new", MOMENT)
    replaced = log.replace_prefix(grown, "* old", "* short\n")
    assert replaced == "* short\n\n--- message boundary (2025-01-04T10:07:00.000Z) ---\n\n* new"
    assert log.replace_prefix("* old", "* old", "* short") == "* short"
    assert log.replace_prefix("* edited", "* old", "* short") is None


def test_replace_lines__keeps_the_lines_after_the_reflected_ones() -> None:
    assert log.take_lines("a\nb\n\nc", 2) == "a\nb"
    assert log.replace_lines("a\nb\n\nc", 2, "ab") == "ab\n\nc"
    assert log.replace_lines("a\nb", 2, "ab") == "ab"


@pytest.mark.parametrize(
    ("line", "day"),
    [
        ("Date: Dec 4, 2025", date(2025, 12, 4)),
        ("Date: December 4, 2025", date(2025, 12, 4)),
        ("Date: Feb 30, 2025", None),
        ("Date: Foo 3, 2025", None),
        ("* Date: Dec 4, 2025", None),
    ],
)
def test_parse_heading__only_whole_lines(line: str, day: date | None) -> None:
    assert log.parse_heading(line) == day


def test_format_heading__is_not_padded() -> None:
    assert log.format_heading(date(2025, 12, 4)) == "Date: Dec 4, 2025"


def test_get_items__with_their_place_in_the_log() -> None:
    text = f"""<thread id="t&quot;1">
Date: Jan 1, 2025
* 🔴 (10:00) User has a dog
  * -> called Rex
  * ✅ fed it
- plain
</thread>

{log.format_boundary(MOMENT)}

<observation-group id="g1" range="a:b">
Date: Jan 4, 2025
* 🟡 (10:01) B
</observation-group>"""
    items = log.get_items(text)
    assert [(item.text, item.priority, item.time, item.depth) for item in items] == [
        ("User has a dog", "high", "10:00", 0),
        ("called Rex", "", "", 2),
        ("fed it", "done", "", 2),
        ("plain", "", "", 0),
        ("B", "medium", "10:01", 0),
    ]
    assert [item.index for item in items] == [0, 1, 2, 3, 4]
    assert (items[0].line, items[0].end, items[0].raw) == (2, 5, "* 🔴 (10:00) User has a dog")
    assert {item.thread_id for item in items[:4]} == {'t"1'} and items[4].thread_id is None
    assert (items[4].group_id, items[0].group_id) == ("g1", None)
    assert (items[0].day, items[4].day) == (date(2025, 1, 1), date(2025, 1, 4))
    assert (items[0].observed_at, items[4].observed_at) == (None, MOMENT)


def test_get_items__none_in_empty_log() -> None:
    assert log.get_items("") == []


def test_take_tail__newest_lines_with_their_heading() -> None:
    lines = [f"* 🔴 (10:{n:02}) observation number {n}" for n in range(30)]
    text = "\n".join(["Date: Jan 1, 2025", *lines])
    tail = log.take_tail(text, 60).split("\n")
    assert tail[1] == "Date: Jan 1, 2025" and tail[-1] == lines[-1]
    assert tail[0] == f"[{30 - len(tail) + 2} observations truncated here]"
    assert log.take_tail(text, 10_000) == text
    assert log.take_tail(text, 0) == "" and log.take_tail("", 100) == ""


def test_wrap_in_thread__not_for_nothing() -> None:
    assert log.wrap_in_thread("t1", "* a\n") == '<thread id="t1">\n* a\n</thread>'
    assert log.wrap_in_thread("t1", " ") == ""
    tag = log.format_thread_tag('a"<b>&')
    assert tag == '<thread id="a&quot;&lt;b&gt;&amp;">'
    assert log.read_thread_id(tag[12:-2]) == 'a"<b>&'


GROUPED = """<observation-group id="a" range="m1:m2">
* 1
* 2
</observation-group>

--- message boundary (2025-01-04T10:07:00.000Z) ---

<observation-group id="b" range="m3:m4">
* 3
</observation-group>"""


@pytest.mark.parametrize(
    ("count", "cut"), [(1, 4), (3, 4), (4, 4), (5, 5), (7, 7), (8, 7), (9, 7), (10, 10), (99, 10)]
)
def test_find_cut__never_splits_a_group(count: int, cut: int) -> None:
    assert log.find_cut(GROUPED, count) == cut


def test_find_cut__any_line_without_groups() -> None:
    assert [log.find_cut("a\nb\nc", count) for count in (1, 2, 3)] == [1, 2, 3]
    assert log.find_cut('<thread id="t">\n* a', 1) == 2, "a section that is never closed"
