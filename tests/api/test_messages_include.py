"""`include` on the message list: messages named by id, with their neighbours."""

from collections.abc import Callable
from typing import Any

import pytest

from mastra_memory.types import StoredThread
from tests.conftest import Person
from tests.support.api_client import Api, fields_of, ids
from tests.support.factories import a_message, make_thread, save, some_messages

LIST = "threads/t/messages"


@pytest.fixture
def thread(db: None) -> StoredThread:
    """A thread `t` of i0 … i8, a second apart."""
    made = make_thread("r", "t")
    save(some_messages(made, 9, prefix="i"))
    return made


def around(message_id: str, before: Any = 0, after: Any = 0) -> dict[str, Any]:
    """One entry of `include`."""
    return {"id": message_id, "withPreviousMessages": before, "withNextMessages": after}


@pytest.mark.parametrize(
    ("include", "found"),
    [
        ([around("i3", 1, 1)], ["i2", "i3", "i4", "i8"]),
        ([around("i3")], ["i3", "i8"]),
        ([{"id": "i3"}], ["i3", "i8"]),
        ([around("i0", 5, 1)], ["i0", "i1", "i8"]),
        ([around("i8", 1, 5)], ["i7", "i8"]),
        ([around("i3", 1, 1), around("i4", 1, 1), around("i3")], ["i2", "i3", "i4", "i5", "i8"]),
        ([around("i3", -1, -5)], ["i3", "i8"]),
        ([around("i3", None, 0)], ["i3", "i8"]),
        ([around("i3", 1.0, 2.0)], ["i2", "i3", "i4", "i5", "i8"]),
        ([around("missing", 1, 1)], ["i8"]),
        ([around("i4", 2**53 - 1, 2**53 - 1)], [f"i{n}" for n in range(9)]),
        ([], ["i8"]),
    ],
)
def test_include__windows_are_merged_with_the_page(
    api: Api, thread: StoredThread, include: Any, found: list[str]
) -> None:
    answer = api.get(LIST, {"perPage": 1, "include": include})
    assert ids(answer) == found
    assert answer.body["total"] == 9 and answer.body["hasMore"] is (len(found) < 9)


def test_include__follows_the_order_asked_for(api: Api, thread: StoredThread) -> None:
    query = {"perPage": 1, "include": [around("i3", 1, 1)], "orderBy": {"direction": "DESC"}}
    assert ids(api.get(LIST, query)) == ["i8", "i4", "i3", "i2"]
    assert ids(api.get(LIST, query | {"perPage": 0})) == ["i4", "i3", "i2"]


def test_include__neighbours_with_equal_times_keep_their_order(api: Api) -> None:
    thread = make_thread("r", "t")
    save([a_message(thread, f"m{n}", at=0) for n in range(5)])
    found = ids(api.get(LIST, {"perPage": 0, "include": [around("m2", 1, 1)]}))
    assert found == ["m1", "m2", "m3"]


def test_include__reaches_other_threads_of_the_resource_only(
    api: Api, thread: StoredThread
) -> None:
    save(some_messages(make_thread("r", "other"), 3, prefix="o"))
    save(some_messages(make_thread("s", "foreign"), 3, prefix="f"))
    include = [around("o1", 0, 1), around("f1", 1, 1)]
    answer = api.get(LIST, {"perPage": 1, "include": include})
    assert set(ids(answer)) == {"o1", "o2", "i8"}
    assert "foreign" not in str(answer.body)


def test_include__what_total_does_not_count_ends_no_paging(api: Api) -> None:
    thread = make_thread("r", "t")
    save(some_messages(thread, 3))
    save(some_messages(make_thread("r", "other"), 5, prefix="o"))
    query = {"perPage": 1, "include": [around("o2", 5, 5)]}
    assert api.get(LIST, query).body["hasMore"] is True
    filtered = {"perPage": 1, "include": [around("m1")], "filter": {"roles": ["user"]}}
    answer = api.get(LIST, filtered)
    assert (ids(answer), answer.body["total"]) == (["m1", "m2"], 2)
    assert answer.body["hasMore"] is True
    assert ids(api.get(LIST, filtered | {"page": 1})) == ["m0", "m1"]


def test_include__a_scoped_caller_gets_nothing_of_others(alice: Person, bob: Person) -> None:
    mine, his = make_thread(alice.resource_id, "t"), make_thread(bob.resource_id)
    save([a_message(mine, "mine"), a_message(his, "his", text="secret")])
    answer = alice.api.get(LIST, {"include": [around("his", 1, 1)]})
    assert ids(answer) == ["mine"] and "secret" not in str(answer.body)


@pytest.mark.parametrize(
    ("include", "field"),
    [
        ("{bad", "include"),
        ("", "include"),
        ({}, "include"),
        (5, "include"),
        ([1], "include.0"),
        (["i1"], "include.0"),
        ([{}], "include.0.id"),
        ([{"id": 5}], "include.0.id"),
        ([around("i1"), around("i1", "1")], "include.1.withPreviousMessages"),
        ([{"id": "i1", "withNextMessages": 1.5}], "include.0.withNextMessages"),
        ([{"id": "i1", "withNextMessages": True}], "include.0.withNextMessages"),
        ([{"id": "i1", "withNextMessages": 2**70}], "include.0.withNextMessages"),
        ([{"id": "i1", "withNextMessages": -(2**70)}], "include.0.withNextMessages"),
        ([{"id": "i1", "withNextMessages": [2]}], "include.0.withNextMessages"),
        ([around("i1")] * 1001, "include"),
    ],
)
def test_include__bad_entries_are_400_and_named(
    api: Api, thread: StoredThread, include: Any, field: str
) -> None:
    assert fields_of(api.get(LIST, {"include": include})) == [field]


def test_include__windows_of_a_scoped_caller_have_the_limit_of_pages(
    alice: Person, memory_settings: Callable[..., None]
) -> None:
    memory_settings(MAX_PER_PAGE=2)
    thread = make_thread(alice.resource_id, "t")
    save(some_messages(thread, 9, prefix="i"))
    include = [around("i4", 2**53 - 1, 2**53 - 1)]
    found = ids(alice.api.get(LIST, {"perPage": 0, "include": include}))
    assert found == ["i2", "i3", "i4", "i5", "i6"]
