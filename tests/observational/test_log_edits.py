"""Changing single observations in the text of a log."""

import pytest

from mastra_memory.exceptions import InvalidInput, StaleData
from mastra_memory.observational import log_edits
from mastra_memory.observational.log_edits import Address

LOG = """\
Date: Jan 1, 2025
* 🔴 (10:00) Lives in Rome
* 🟡 (10:01) Agent looked up trains
  * -> read the timetable
  * ✅ booked the 9:15

--- message boundary (2025-01-04T10:07:00.000Z) ---

Date: Jan 4, 2025
* 🔴 (10:01) B"""


def test_address__is_generation_and_line() -> None:
    assert Address.parse("3.12") == Address(3, 12) and str(Address(3, 12)) == "3.12"


@pytest.mark.parametrize(
    "text", ["", "3", "3.", ".1", "a.b", "3.1.2", "-1.2", "٣.١", "1234567890.1"]
)
def test_address__other_texts_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="id of an observation"):
        Address.parse(text)


def test_edit_item__changes_one_line() -> None:
    changed = log_edits.edit_item(LOG, 1, "* 🔴 (10:00) Lives in\nParis")
    assert changed == LOG.replace("Lives in Rome", "Lives in Paris")
    nested = log_edits.edit_item(LOG, 4, "✅ booked the 9:45")
    assert nested == LOG.replace("9:15", "9:45")


def test_edit_item__keeps_mark_and_time_unless_the_text_has_its_own() -> None:
    assert "\n* 🔴 (10:00) Lives in Paris\n" in log_edits.edit_item(LOG, 1, "Lives in Paris")
    assert "\n  * -> read a book\n" in log_edits.edit_item(LOG, 3, "read a book")
    assert "\n* 🟡 Lives in Paris\n" in log_edits.edit_item(LOG, 1, "🟡 Lives in Paris")


@pytest.mark.parametrize(
    "text",
    [" ", "* ", "x" * 10_001, "Date: Jan 1, 2025", "--- message boundary (x) ---",
     "</observation-group>", "<thread id='x'>"],
)  # fmt: skip
def test_edit_item__refuses_text_that_would_break_the_log(text: str) -> None:
    with pytest.raises(InvalidInput, match="text must"):
        log_edits.edit_item(LOG, 1, text)


@pytest.mark.parametrize("line", [0, 5, 6, 99])
def test_items__other_lines_are_no_observations(line: int) -> None:
    for act in (log_edits.delete_item, log_edits.get_item):
        with pytest.raises(StaleData):
            act(LOG, line)


def test_delete_item__takes_nested_items_along() -> None:
    without = log_edits.delete_item(LOG, 2)
    assert without == LOG.replace(
        "* 🟡 (10:01) Agent looked up trains\n  * -> read the timetable\n  * ✅ booked the 9:15\n",
        "",
    )
    assert log_edits.delete_item(LOG, 3) == LOG.replace("  * -> read the timetable\n", "")
    assert log_edits.delete_item(LOG, 9) == LOG.removesuffix("\n* 🔴 (10:01) B")
