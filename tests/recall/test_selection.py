"""Recall: what an agent reads before its next turn, and the lists that people read."""

from typing import Any

import pytest

from mastra_memory.exceptions import AccessDenied, InvalidInput, ThreadNotFound
from mastra_memory.options import MemoryOptions
from mastra_memory.recall import selection
from mastra_memory.types import Include, MessageFilter, MessagePage, StoredThread
from tests.support.factories import (
    a_message,
    make_thread,
    moment,
    save,
    some_messages,
    text_content,
)

pytestmark = pytest.mark.django_db
THREE = MemoryOptions.parse({"lastMessages": 3})


@pytest.fixture
def thread(db: None) -> StoredThread:
    """A thread `t` of m0 … m7, a second apart."""
    made = make_thread("r", "t")
    save(some_messages(made, 8))
    return made


def numbers(page: MessagePage) -> str:
    """`12` of m1 and m2."""
    return "".join(message.id[1:] for message in page.messages)


@pytest.mark.parametrize(
    ("choices", "found", "total", "per_page", "has_more"),
    [
        ({}, "567", 8, 3, True),
        ({"per_page": 2}, "67", 8, 2, True),
        ({"per_page": 2, "page": 1}, "45", 8, 2, True),
        ({"per_page": 2, "direction": "ASC"}, "01", 8, 2, True),
        ({"per_page": 2, "direction": "DESC"}, "67", 8, 2, True),
        ({"per_page": False}, "01234567", 8, False, False),
        ({"per_page": 0}, "", 0, 0, False),
        ({"per_page": 3, "page": 3}, "", 8, 3, False),
        ({"per_page": False, "start": 1, "end": 3}, "123", 3, False, False),
        ({"per_page": False, "start": 1, "end": 3, "exclusive": True}, "2", 1, False, False),
        ({"per_page": 2, "include_total": False}, "67", 2, 2, True),
        ({"per_page": 8, "include_total": False}, "01234567", 8, 8, False),
    ],
)
def test_recall__pages(
    thread: StoredThread, choices: Any, found: str, total: int, per_page: Any, has_more: bool
) -> None:
    if "start" in choices:
        exclusive = choices.pop("exclusive", False)
        choices["message_filter"] = MessageFilter(
            start=moment(choices.pop("start")),
            end=moment(choices.pop("end")),
            start_exclusive=exclusive,
            end_exclusive=exclusive,
        )
    page = selection.recall(THREE, "t", **choices)
    assert numbers(page) == found
    assert (page.total, page.per_page, page.has_more) == (total, per_page, has_more)


@pytest.mark.parametrize("off", [{"lastMessages": 0}, {"lastMessages": False}])
def test_recall__history_off_is_empty_unless_a_page_is_asked_for(
    thread: StoredThread, off: dict[str, Any]
) -> None:
    options = MemoryOptions.parse(off)
    assert selection.recall(options, "t") == selection.EMPTY_PAGE
    assert numbers(selection.recall(options, "t", per_page=2)) == "67"


def test_recall__include_is_honoured_and_everything_ascends(thread: StoredThread) -> None:
    windows = [Include(id="m1", before=1, after=1)]
    assert numbers(selection.recall(THREE, "t", include=windows)) == "012567"
    page = selection.recall(THREE, "t", include=windows, per_page=0)
    assert numbers(page) == "012"
    backwards = selection.recall(THREE, "t", include=windows, per_page=1, direction="DESC")
    assert numbers(backwards) == "0127"


def test_recall__what_total_does_not_count_ends_no_paging(thread: StoredThread) -> None:
    save(some_messages(make_thread("r", "other"), 9, prefix="o"))
    page = selection.recall(THREE, "t", include=[Include(id="o4", before=4, after=4)])
    assert (len(page.messages), page.total, page.has_more) == (12, 8, True)
    late = MessageFilter(start=moment(6))
    windows = [Include(id="m1", before=1, after=1)]
    page = selection.recall(THREE, "t", per_page=1, message_filter=late, include=windows)
    assert (numbers(page), page.total, page.has_more) == ("0127", 2, True)
    everything = [Include(id="m1", before=9, after=9)]
    assert selection.recall(THREE, "t", include=everything).has_more is False


def test_recall__refuses_strangers_and_unknown_threads(thread: StoredThread) -> None:
    for per_page in (None, 0, 2):
        with pytest.raises(AccessDenied):
            selection.recall(THREE, "t", resource_id="s", per_page=per_page)
        with pytest.raises(ThreadNotFound):
            selection.recall(THREE, "nobody", resource_id="r", per_page=per_page)


@pytest.mark.parametrize("include", [[], [Include(id="m1")]])
@pytest.mark.parametrize(("per_page", "returned"), [(None, 3), (0, 0), (2, 2), (False, False)])
def test_recall__missing_thread_without_resource_is_empty(
    thread: StoredThread, per_page: int | None, returned: int, include: list[Include]
) -> None:
    page = selection.recall(THREE, "nobody", per_page=per_page, include=include)
    assert page == MessagePage([], 0, 0, returned, False)


def test_recall__another_owners_message_as_anchor_is_left_out(thread: StoredThread) -> None:
    save([a_message(make_thread("s", "theirs"), "x9", text="secret")])
    page = selection.recall(THREE, "t", resource_id="r", include=[Include(id="x9", before=5)])
    assert numbers(page) == "567"


@pytest.mark.parametrize(
    "choices",
    [
        {"page": -1},
        {"page": True},
        {"per_page": -1},
        {"per_page": 1.5},
        {"per_page": True},
        {"per_page": False, "page": 1},
        {"message_filter": MessageFilter(metadata={"a.b": 1})},
        {"message_filter": MessageFilter(metadata={"a": [1]})},
    ],
)
def test_list_messages__refuses_what_cannot_be(thread: StoredThread, choices: Any) -> None:
    with pytest.raises(InvalidInput):
        selection.list_messages("t", **choices)


SIGNALS = {
    "said": ("user", {}),
    "reminder": ("user", {"systemReminder": {}}),
    "reactive": ("signal", {"signal": {"type": "reactive"}}),
    "state": ("signal", {"signal": {"type": "state"}}),
    "unknown": ("signal", {"signal": {"type": "other"}}),
}


@pytest.mark.parametrize(
    ("choices", "hidden"),
    [
        ({}, {"reminder", "reactive"}),
        ({"include_system_reminders": True}, set()),
        ({"hide_signals": False}, set()),
        ({"hide_signals": True}, {"reminder", "reactive", "state"}),
        ({"hide_signals": ["state"]}, {"state"}),
        ({"hide_signals": []}, set()),
        (
            {"hide_signals": True, "include_system_reminders": True},
            {"reminder", "reactive", "state"},
        ),
    ],
)
def test_list_messages__signals_are_hidden_after_paging(choices: Any, hidden: set[str]) -> None:
    thread = make_thread()
    save(
        [
            a_message(thread, name, role=role, content=text_content("x", metadata=metadata))
            for name, (role, metadata) in SIGNALS.items()
        ]
    )
    page = selection.list_messages(thread.id, **choices)
    assert {message.id for message in page.messages} == SIGNALS.keys() - hidden
    assert page.total == len(SIGNALS)


def test_list_messages__the_newest_page_or_the_oldest(thread: StoredThread) -> None:
    assert numbers(selection.list_messages("t", per_page=3)) == "012"
    assert numbers(selection.list_messages("t", per_page=3, newest_page=True)) == "567"
    descending = selection.list_messages("t", per_page=3, newest_page=True, direction="DESC")
    assert numbers(descending) == "765"
    assert selection.list_messages("t", per_page=8).has_more is False
