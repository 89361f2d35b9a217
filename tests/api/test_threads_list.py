"""The thread list over HTTP: order, pages, filters."""

from collections.abc import Callable
from typing import Any

import pytest

from mastra_memory.models import Thread
from tests.support.api_client import Api, fields_of, ids
from tests.support.factories import a_message, api_time, make_thread, moment, save

NEWEST = {"orderBy": {"field": "updatedAt", "direction": "DESC"}}
HOSTILE_KEYS = ["a.b", "a' OR 1=1 --", "__proto__", "constructor", "prototype", "k" * 200, "", "é"]


def threads_made(count: int, **fields: Any) -> list[str]:
    """Threads `t0`, `t1`, … created a second apart."""
    names = [f"t{n}" for n in range(count)]
    for n, name in enumerate(names):
        make_thread("r", name, **fields)
        Thread.objects.filter(pk=name).update(created_at=moment(n), updated_at=moment(n))
    return names


def test_list__newest_first_with_the_total(api: Api) -> None:
    threads_made(3)
    body = api.get("threads").body
    assert [thread["id"] for thread in body.pop("threads")] == ["t2", "t1", "t0"]
    assert body == {"total": 3, "page": 0, "perPage": 100, "hasMore": False}


def test_list__pages_hold_each_thread_once(api: Api) -> None:
    threads_made(5)
    pages = [api.get("threads", {"perPage": 2, "page": page}) for page in range(4)]
    assert [ids(page) for page in pages] == [["t4", "t3"], ["t2", "t1"], ["t0"], []]
    assert [page.body["hasMore"] for page in pages] == [True, True, False, False]
    assert {page.body["total"] for page in pages} == {5}


def test_list__equal_times_are_ordered_by_id(api: Api) -> None:
    names = threads_made(6)
    Thread.objects.update(created_at=moment())
    pages = [ids(api.get("threads", {"perPage": 2, "page": page})) for page in range(3)]
    assert [name for page in pages for name in page] == names[::-1]
    ascending = {"orderBy": {"field": "createdAt", "direction": "ASC"}}
    assert ids(api.get("threads", ascending)) == names


def test_list__page_size_zero_keeps_the_total(api: Api) -> None:
    threads_made(2)
    body = api.get("threads", {"perPage": 0}).body
    assert body == {"threads": [], "total": 2, "page": 0, "perPage": 0, "hasMore": True}


@pytest.mark.parametrize(
    "order",
    [
        NEWEST,
        {"orderBy[field]": "updatedAt", "orderBy[direction]": "DESC"},
        {"orderBy": "updatedAt", "sortDirection": "DESC"},
    ],
)
def test_list__by_activity_in_every_form_of_the_parameter(api: Api, order: dict[str, Any]) -> None:
    make_thread("r", "a"), make_thread("r", "b")
    thread = api.get("threads/a").body
    assert ids(api.get("threads", order)) == ["b", "a"]
    save([a_message(make_thread("r", thread["id"]))])
    assert ids(api.get("threads", order)) == ["a", "b"]
    api.patch("threads/b", {"title": "B"})
    assert ids(api.get("threads", order)) == ["b", "a"]


def test_list__every_change_of_a_thread_is_activity(api: Api) -> None:
    first, second = make_thread("r", "a"), make_thread("r", "b")
    save([a_message(first, "m1"), a_message(second, "m2")])
    wm = {"memoryConfig": {"workingMemory": {"enabled": True, "scope": "thread"}}}
    changes: list[Callable[[], Any]] = [
        lambda: api.post("messages/delete", {"messageIds": ["m1"]}),
        lambda: api.patch("threads/b", {"metadata": {}}),
        lambda: api.post("threads/a/working-memory", {"workingMemory": "x", **wm}),
        lambda: api.post("threads/b/transfer", {"resourceId": "s"}),
    ]
    for change, moved in zip(changes, "abab", strict=True):
        assert change().status == 200
        assert ids(api.get("threads", NEWEST))[0] == moved


@pytest.mark.parametrize(
    ("value", "found"), [(1.5, "number"), ("1.5", "text"), (None, "null"), (True, "yes")]
)
def test_list__a_metadata_value_matches_its_own_type(api: Api, value: Any, found: str) -> None:
    values = {"number": 1.5, "text": "1.5", "null": None, "yes": True}
    for name, stored in values.items():
        make_thread("r", name, metadata={"n": stored})
    make_thread("r", "empty", metadata={}), make_thread("r", "none")
    assert ids(api.get("threads", {"metadata": {"n": value}})) == [found]


def test_list__metadata_keys_are_joined_by_and(api: Api) -> None:
    make_thread("r", "both", metadata={"a": 1, "b": {"c": 2, "d": 3}})
    make_thread("r", "one", metadata={"a": 1})
    assert ids(api.get("threads", {"metadata": {"a": 1, "b": {"c": 2}}})) == ["both"]
    assert len(ids(api.get("threads", {"metadata": {"a": 1}}))) == 2
    assert len(ids(api.get("threads", {"metadata": {}}))) == 2


def test_list__brackets_filter_by_text(api: Api) -> None:
    make_thread("r", "number", metadata={"n": 3})
    make_thread("r", "text", metadata={"n": "3"})
    assert ids(api.get("threads", {"metadata[n]": "3"})) == ["text"]
    assert api.get("threads", {"metadata[a][b]": "1"}).body["total"] == 2
    for name in ("metadata[n]", "orderBy[direction]"):
        assert fields_of(api.get("threads", {name: ("3", "4")})) == [name]


@pytest.mark.parametrize("key", HOSTILE_KEYS)
def test_list__a_hostile_metadata_key_is_400_and_named(api: Api, key: str) -> None:
    make_thread("r")
    assert fields_of(api.get("threads", {"metadata": {key: 1}})) == [f"metadata.{key}"]
    assert fields_of(api.get("threads", {f"metadata[{key}]": "1"})) == [f"metadata.{key}"]


def test_list__the_longest_key_that_is_allowed(api: Api) -> None:
    make_thread("r", "a", metadata={"k" * 128: 1})
    assert ids(api.get("threads", {"metadata": {"k" * 128: 1}})) == ["a"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"metadata": "{bad"}, "metadata"),
        ({"metadata": []}, "metadata"),
        ({"metadata": ""}, "metadata"),
        ({"metadata": "null"}, "metadata"),
        ({"orderBy": {"field": "title"}}, "orderBy.field"),
        ({"orderBy[field]": "title"}, "orderBy.field"),
        ({"orderBy": {"direction": "sideways"}}, "orderBy.direction"),
        ({"orderBy[direction]": "asc"}, "orderBy.direction"),
        ({"orderBy": "updatedAt", "sortDirection": "up"}, "orderBy.direction"),
        ({"orderBy": "title"}, "orderBy.field"),
        ({"orderBy": "-createdAt"}, "orderBy.field"),
        ({"orderBy": "UpdatedAt", "sortDirection": "ASC"}, "orderBy.field"),
        ({"page": "\u0661"}, "page"),
        ({"resourceId": ("a", "b")}, "resourceId"),
        ({"createdAfter": "yesterday"}, "createdAfter"),
        ({"createdAfter": "0001-01-01T00:00:00+01:00"}, "createdAfter"),
        ({"updatedBefore": "2024-02-30"}, "updatedBefore"),
    ],
)
def test_list__bad_parameters_are_400_and_named(
    api: Api, query: dict[str, Any], field: str
) -> None:
    assert fields_of(api.get("threads", query)) == [field]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"createdAfter": api_time(2)}, ["t3", "t2"]),
        ({"createdBefore": api_time(1)}, ["t1", "t0"]),
        ({"createdAfter": "0860-01-24T05:38:10.4+22:54"}, ["t3", "t2", "t1", "t0"]),
        ({"updatedAfter": api_time(1), "updatedBefore": api_time(2)}, ["t2", "t1"]),
        ({"title": "RIP"}, ["t3", "t2", "t1", "t0"]),
        ({"title": "%"}, []),
        ({"title": "trip", "createdBefore": api_time(0)}, ["t0"]),
    ],
)
def test_list__filters_of_our_own(api: Api, query: dict[str, Any], found: list[str]) -> None:
    threads_made(4, title="Trip")
    answer = api.get("threads", query)
    assert ids(answer) == found
    assert answer.body["total"] == len(found)


def test_list__words_of_a_message_find_its_thread(api: Api) -> None:
    thread, other = make_thread("r", "a"), make_thread("r", "b")
    save([a_message(thread, text="A café in Lisbon"), a_message(other, text="Nothing")])
    assert ids(api.get("threads", {"text": "CAFE lisbon"})) == ["a"]
    assert ids(api.get("threads", {"text": "cafe nothing"})) == []


@pytest.mark.parametrize("words", ["coffee", "tea coffee", "tea/coffee", "灯塔", '"on the list"'])
def test_list__text_splits_words_as_the_index_does(api: Api, words: str) -> None:
    save([a_message(make_thread("r", "a"), text="Is tea/coffee on the list? 海边的灯塔")])
    save([a_message(make_thread("r", "b"), text="Teapots and toffee")])
    assert ids(api.get("threads", {"text": words})) == ["a"]


def test_list__one_resource_or_everybodys(api: Api) -> None:
    make_thread("r", "a"), make_thread("s", "b")
    assert ids(api.get("threads", {"resourceId": "s"})) == ["b"]
    assert ids(api.get("threads", {"resourceId": "missing"})) == []
    assert len(ids(api.get("threads"))) == 2
