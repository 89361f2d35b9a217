"""Messages over HTTP: the pages of a thread."""

import itertools
from typing import Any

import pytest

from tests.support.api_client import Api, Query, fields_of, ids
from tests.support.factories import (
    a_message,
    api_time,
    make_thread,
    save,
    some_messages,
    text_content,
)

LIST = "threads/t/messages"
ASC, DESC = ({"orderBy[direction]": direction} for direction in ("ASC", "DESC"))


def thread_of(count: int, **fields: Any) -> None:
    """A thread `t` of messages `m0`, `m1`, … a second apart."""
    save(some_messages(make_thread("r", "t"), count, **fields))


def names(numbers: str) -> list[str]:
    """`m1 m2` of `12`."""
    return [f"m{number}" for number in numbers]


def test_list__the_whole_answer(api: Api) -> None:
    thread_of(1)
    assert api.get(LIST).body == {
        "messages": [
            {
                "id": "m0",
                "content": text_content("Message 0"),
                "role": "user",
                "createdAt": api_time(0),
                "threadId": "t",
                "resourceId": "r",
            }
        ],
        "total": 1,
        "page": 0,
        "perPage": 40,
        "hasMore": False,
        "uiMessages": None,
    }


SHUFFLED = names("305142")


def thread_of_one_moment() -> None:
    """A thread `t` of messages with one time, saved in another order than that of their ids."""
    thread = make_thread("r", "t")
    save([a_message(thread, name, at=0) for name in SHUFFLED])


def test_list__messages_of_one_moment_keep_the_order_of_the_array(api: Api) -> None:
    thread_of_one_moment()
    assert ids(api.get(LIST)) == SHUFFLED
    pages = [ids(api.get(LIST, {"perPage": 2, "page": page})) for page in range(3)]
    assert pages == [SHUFFLED[4:], SHUFFLED[2:4], SHUFFLED[:2]]


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("order", [{}, ASC, DESC])
def test_list__equal_times_page_without_a_gap_or_a_double(
    api: Api, order: dict[str, str], size: int
) -> None:
    thread_of_one_moment()
    for reader in (api, api.through(None)):
        pages = [
            ids(reader.get(LIST, {**order, "perPage": size, "page": page})) for page in range(6)
        ]
        assert sorted(itertools.chain(*pages)) == sorted(SHUFFLED)
        if order:
            backwards = order is DESC
            assert list(itertools.chain(*pages)) == SHUFFLED[:: -1 if backwards else 1]


def test_list__fifty_without_a_time_keep_the_order_of_the_array(api: Api) -> None:
    thread = make_thread("r", "t")
    batch = [a_message(thread, f"m{n}") for n in range(50)]
    assert ids(api.post("save-messages", {"messages": batch})) == [f"m{n}" for n in range(50)]
    listed = api.get(LIST, {"perPage": 100})
    assert ids(listed) == [f"m{n}" for n in range(50)]
    stamps = [message["createdAt"] for message in listed.body["messages"]]
    assert stamps == sorted(stamps)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"perPage": 3}, "789"),
        ({"perPage": 3, "page": 1}, "456"),
        ({"perPage": 3, "page": 3}, "0"),
        ({"perPage": 3, "page": 9}, ""),
        ({"perPage": 3} | ASC, "012"),
        ({"perPage": 3} | DESC, "987"),
        ({"perPage": 3, "page": 1} | DESC, "654"),
        ({"perPage": 3, "page": 3} | ASC, "9"),
        ({"perPage": 3, "page": 10**15}, ""),
    ],
)
def test_list__which_page_and_in_which_order(api: Api, query: Query, found: str) -> None:
    thread_of(10)
    answer = api.get(LIST, query)
    assert ids(answer) == names(found)
    page, size = int(query.get("page", 0)), int(query["perPage"])
    assert answer.body["total"] == 10
    assert (answer.body["page"], answer.body["perPage"]) == (page, size)
    assert answer.body["hasMore"] is ((page + 1) * size < 10)


def test_list__without_an_agent_the_oldest_page_comes_first(api: Api) -> None:
    thread_of(10)
    storage = api.through(None)
    assert ids(storage.get(LIST, {"perPage": 3})) == names("012")
    assert ids(storage.get(LIST, {"perPage": 3} | DESC)) == names("987")


def test_list__deep_pages_are_the_same_as_shallow_ones(api: Api) -> None:
    thread_of(450)
    numbers = list(range(450))
    for page in (0, 3, 4, 5, 8):
        ascending = ids(api.get(LIST, {"perPage": 50, "page": page} | ASC))
        assert ascending == [f"m{n}" for n in numbers[page * 50 : page * 50 + 50]]
        newest = ids(api.get(LIST, {"perPage": 50, "page": page}))
        last = len(numbers) - page * 50
        assert newest == [f"m{n}" for n in numbers[last - 50 : last]]


def test_list__paging_counts_what_the_filter_keeps(api: Api) -> None:
    thread_of(12)
    kept = {"filter": {"dateRange": {"start": api_time(7)}}, "perPage": 2}
    answers = [api.get(LIST, kept | {"page": page}) for page in range(4)]
    assert {answer.body["total"] for answer in answers} == {5}
    assert [answer.body["hasMore"] for answer in answers] == [True, True, False, False]
    assert [len(ids(answer)) for answer in answers] == [2, 2, 1, 0]
    none = api.get(LIST, kept | {"perPage": 0})
    assert ids(none) == [] and none.body["total"] == 5


@pytest.mark.parametrize("name", ["page", "perPage"])
@pytest.mark.parametrize(
    "value", ["-1", "2.5", "x", "10" + "0" * 29, "1e400", "nan", "inf", "false", "1_0", ("1", "2")]
)
@pytest.mark.parametrize("path", [LIST, "threads"])
def test_paging__bad_numbers_are_400_and_named(api: Api, path: str, name: str, value: Any) -> None:
    thread_of(1)
    assert fields_of(api.get(path, {name: value})) == [name]
    assert fields_of(api.through(None).get(path, {name: value})) == [name]


@pytest.mark.parametrize("path", [LIST, "threads"])
def test_paging__the_largest_numbers_are_an_empty_page(api: Api, path: str) -> None:
    thread_of(1)
    largest = 2**53 - 1
    assert ids(api.get(path, {"page": largest, "perPage": largest})) == []
    assert ids(api.get(path, {"page": 1, "perPage": largest})) == []
    assert len(ids(api.get(path, {"page": 0, "perPage": largest}))) == 1


@pytest.mark.parametrize(
    ("filtered", "found"),
    [
        ({}, "01234"),
        ({"dateRange": {"start": api_time(3)}}, "34"),
        ({"dateRange": {"end": api_time(1)}}, "01"),
        ({"dateRange": {"start": api_time(1), "end": api_time(3)}}, "123"),
        (
            {
                "dateRange": {
                    "start": api_time(1),
                    "end": api_time(3),
                    "startExclusive": True,
                    "endExclusive": True,
                }
            },
            "2",
        ),
        ({"dateRange": {"start": 1704067203000}}, "34"),
        ({"roles": ["assistant"]}, "13"),
        ({"roles": ["user", "assistant"]}, "01234"),
        ({"roles": ["system"]}, ""),
        ({"roles": []}, ""),
        ({"roles": ["user"], "dateRange": {"start": api_time(1)}}, "24"),
    ],
)
def test_list__filters_narrow_and_are_counted(api: Api, filtered: Any, found: str) -> None:
    thread_of(5)
    for reader in (api, api.through(None)):
        answer = reader.get(LIST, {"filter": filtered})
        assert ids(answer) == names(found)
        assert answer.body["total"] == len(found)


@pytest.mark.parametrize(
    ("metadata", "found"),
    [
        ({"k": "v"}, ["text"]),
        ({"k": 1}, ["number"]),
        ({"k": "1"}, ["one"]),
        ({"k": None}, ["null"]),
        ({"k": True}, ["yes"]),
        ({"k": "v", "more": 2}, ["text"]),
        ({"k": "v", "more": 3}, []),
        ({"missing": None}, []),
        ({}, ["text", "number", "one", "null", "yes", "none"]),
    ],
)
def test_list__metadata_matches_type_and_value(
    api: Api, metadata: dict[str, Any], found: list[str]
) -> None:
    thread = make_thread("r", "t")
    values = {"text": "v", "number": 1, "one": "1", "null": None, "yes": True}
    batch = [
        a_message(thread, name, content=text_content("x", metadata={"k": value, "more": 2}))
        for name, value in values.items()
    ]
    save([*batch, a_message(thread, "none")])
    assert ids(api.get(LIST, {"filter": {"metadata": metadata}})) == found


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"filter": "{bad"}, "filter"),
        ({"filter": []}, "filter"),
        ({"filter": ""}, "filter"),
        ({"filter": ("{}", "{}")}, "filter"),
        ({"filter[roles]": "user"}, "filter"),
        ({"filter[roles][]": "user"}, "filter"),
        ({"filter[dateRange][start]": "2024-01-01"}, "filter"),
        ({"filter": "{}", "filter[metadata][k]": "v"}, "filter"),
        ({"include[0][id]": "m1"}, "include"),
        ({"filter": {"dateRange": 5}}, "filter.dateRange"),
        ({"filter": {"dateRange": {"start": "nonsense"}}}, "filter.dateRange.start"),
        ({"filter": {"dateRange": {"end": True}}}, "filter.dateRange.end"),
        ({"filter": {"dateRange": {"startExclusive": 1}}}, "filter.dateRange.startExclusive"),
        ({"filter": {"dateRange": {"endExclusive": "true"}}}, "filter.dateRange.endExclusive"),
        ({"filter": {"roles": "user"}}, "filter.roles"),
        ({"filter": {"roles": [1]}}, "filter.roles"),
        ({"filter": {"metadata": "x"}}, "filter.metadata"),
        ({"filter": {"metadata": {"k": {"a": 1}}}}, "filter.metadata.k"),
        ({"filter": {"metadata": {"k": ["v"]}}}, "filter.metadata.k"),
        ({"filter": {"metadata": {"a.b": 1}}}, "filter.metadata.a.b"),
        ({"filter": {"metadata": {"a' OR 1=1 --": 1}}}, "filter.metadata.a' OR 1=1 --"),
        ({"filter": {"metadata": {"__proto__": 1}}}, "filter.metadata.__proto__"),
        ({"filter": {"metadata": {"k" * 200: 1}}}, f"filter.metadata.{'k' * 200}"),
        ({"orderBy": {"field": "updatedAt"}}, "orderBy.field"),
        ({"orderBy": {"direction": "down"}}, "orderBy.direction"),
        ({"includeSystemReminders": "maybe"}, "includeSystemReminders"),
        ({"agentId": ("a", "b")}, "agentId"),
    ],
)
def test_list__bad_parameters_are_400_and_named(api: Api, query: Query, field: str) -> None:
    thread_of(1)
    assert fields_of(api.get(LIST, query)) == [field]


def test_list__an_unknown_thread_is_404_and_another_owner_403(api: Api) -> None:
    thread_of(1)
    assert api.get("threads/missing/messages").status == 404
    assert api.through(None).get("threads/missing/messages").status == 404
    refused = api.get(LIST, {"resourceId": "other"})
    assert refused.status == 403 and "Message" not in str(refused.body)
    assert ids(api.get(LIST, {"resourceId": "r"})) == ["m0"]


def test_list__system_reminders_are_hidden_from_agents_unless_asked_for(api: Api) -> None:
    thread = make_thread("r", "t")
    reminder = text_content("x", metadata={"systemReminder": {}})
    save([a_message(thread, "question"), a_message(thread, "reminder", content=reminder)])
    assert ids(api.get(LIST)) == ["question"]
    assert api.get(LIST).body["total"] == 2
    assert ids(api.get(LIST, {"includeSystemReminders": True})) == ["question", "reminder"]
    assert ids(api.through(None).get(LIST)) == ["question", "reminder"]
