"""Mastra's filter language on live metadata."""

from typing import Any

import pytest

from mastra_memory import threads
from mastra_memory.db import sql
from mastra_memory.exceptions import InvalidInput
from mastra_memory.search import metadata_filters
from tests.support.factories import a_message, make_thread, save

pytestmark = pytest.mark.django_db

METADATA: dict[str, dict[str, Any] | None] = {
    "a": {"category": "travel", "n": 2, "tags": ["x", "y"], "deep": {"er": "down"}},
    "b": {
        "category": "food",
        "n": "2",
        "flag": True,
        "items": [{"sku": "a", "count": 1}, {"sku": "b", "count": 3, "sizes": [38, 42]}],
    },
    "c": {"category": None, "n": 10},
    "d": None,
}


@pytest.fixture(autouse=True)
def messages(db: None) -> None:
    """A thread with one message for each metadata, called the same."""
    for name, metadata in METADATA.items():
        thread = make_thread("alice", name, metadata=metadata)
        role = "assistant" if name == "b" else "user"
        save([a_message(thread, name, text=f"text {name}", role=role, at=1)])


def matching(given: dict[str, Any]) -> str:
    """Names of the messages that fit, in order."""
    where = metadata_filters.build_condition(given)
    found = sql.fetch_all(
        f"""SELECT m.id FROM mastra_memory_message m
        JOIN mastra_memory_thread t ON t.id = m.thread_id WHERE {where} ORDER BY m.id""",
        where.params,
    )
    return "".join(message_id for (message_id,) in found)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, "abcd"),
        ({"category": "travel"}, "a"),
        ({"category": {"$eq": "travel"}}, "a"),
        ({"n": 2}, "a"),
        ({"n": "2"}, "b"),
        ({"n": 2.0}, "a"),
        ({"flag": True}, "b"),
        ({"flag": 1}, ""),
        ({"category": None}, "cd"),
        ({"category": {"$ne": "travel"}}, "bcd"),
        ({"n": {"$gt": 2}}, "c"),
        ({"n": {"$gte": 2}}, "ac"),
        ({"n": {"$lt": 10}}, "a"),
        ({"n": {"$lte": 10}}, "ac"),
        ({"n": {"$gte": 2, "$lt": 10}}, "a"),
        ({"category": {"$gte": "g"}}, "a"),
        ({"n": {"$in": [2, 10]}}, "ac"),
        ({"n": {"$nin": [2, 10]}}, "bd"),
        ({"n": {"$in": []}}, ""),
        ({"category": "travel", "n": {"$gte": 2}}, "a"),
        ({"$or": [{"category": "food"}, {"n": {"$in": [10, 11]}}]}, "bc"),
        ({"$or": [{"category": "travel", "n": 99}, {"category": "food"}]}, "b"),
        ({"$and": [{"category": "travel"}, {"n": 2}]}, "a"),
        ({"$nor": [{"category": "travel"}, {"category": "food"}]}, "cd"),
        ({"$not": {"category": "travel"}}, "bcd"),
        ({"n": {"$not": {"$gte": 2}}}, "bd"),
        ({"flag": {"$exists": True}}, "b"),
        ({"flag": {"$exists": False}}, "acd"),
        ({"tags": {"$contains": "x"}}, "a"),
        ({"tags": {"$all": ["y", "x"]}}, "a"),
        ({"tags": {"$all": []}}, ""),
        ({"tags": ["x", "y"]}, "a"),
        ({"tags": {"$contains": ["y"]}}, "a"),
        ({"tags": {"$contains": ["y", "z"]}}, ""),
        ({"n": {"$contains": 10}}, "c"),
        ({"category": {"$contains": "RAV"}}, "a"),
        ({"category": {"$contains": "r%l"}}, ""),
        ({"category": {"$contains": "_"}}, ""),
        ({"content": {"$contains": "xt c"}}, "c"),
        ({"tags": {"$in": ["y", "z"]}}, "a"),
        ({"tags": {"$in": ["z", 1, None]}}, "bcd"),
        ({"tags": {"$nin": ["y"]}}, "bcd"),
        ({"tags": {"$size": 2}}, "a"),
        ({"tags": {"$size": 0}}, ""),
        ({"tags": {"$not": {"$size": 2}}}, "bcd"),
        ({"category": {"$size": 6}}, ""),
        ({"tags": {"$elemMatch": {"$eq": "y"}}}, "a"),
        ({"tags": {"$elemMatch": {"$gt": "x", "$lt": "y"}}}, ""),
        ({"tags": {"$elemMatch": {"$in": ["q", "x"]}}}, "a"),
        ({"tags": {"$elemMatch": {"$not": {"$eq": "x"}}}}, "a"),
        ({"items": {"$elemMatch": {"$not": {"count": {"$lt": 3}}}}}, "b"),
        ({"items": {"$elemMatch": {"$not": {"count": {"$lt": 9}}}}}, ""),
        ({"category": {"$elemMatch": {"$eq": "travel"}}}, ""),
        ({"items": {"$elemMatch": {"sku": "b", "count": {"$gte": 2}}}}, "b"),
        ({"items": {"$elemMatch": {"sku": "a", "count": {"$gte": 2}}}}, ""),
        ({"items": {"$elemMatch": {"$or": [{"sku": "c"}, {"count": 1}]}}}, "b"),
        ({"items": {"$elemMatch": {"sizes": {"$elemMatch": {"$gt": 40}}}}}, "b"),
        ({"items": {"$elemMatch": {"sku": "b"}}, "flag": True}, "b"),
        ({"category": {"$regex": "^tr.*l$"}}, "a"),
        ({"category": {"$regex": "oo|ra"}}, "ab"),
        ({"n": {"$regex": "2"}}, "b"),
        ({"deep.er": "down"}, "a"),
        ({"deep": {"er": "down"}}, "a"),
        ({"role": "assistant"}, "b"),
        ({"thread_id": {"$in": ["c", "d"]}}, "cd"),
        ({"message_id": "d"}, "d"),
        ({"resource_id": "bob"}, ""),
        ({"content": "text c"}, "c"),
        ({"created_at": {"$gte": "2024-01-01T00:00:01.000Z"}}, "abcd"),
        ({"created_at": {"$lt": "2024-01-01T00:00:01.000Z"}}, ""),
        ({"a' OR 1=1 --": 1}, ""),
        ({"__proto__": 1}, ""),
        ({"per%cent": None}, "abcd"),
    ],
)
def test_build_condition__operators(given: dict[str, Any], found: str) -> None:
    assert matching(given) == found


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({"n": {"$near": 1}}, "filter.n.$near"),
        ({"$where": "1"}, "filter.$where"),
        ({"$or": {}}, "filter.$or"),
        ({"$or": []}, "filter.$or"),
        ({"$or": [1]}, "filter.$or.0"),
        ({"n": {"$in": "x"}}, "filter.n.$in"),
        ({"n": {"$gt": None}}, "filter.n.$gt"),
        ({"n": {"$gt": True}}, "filter.n.$gt"),
        ({"n": {"$exists": "yes"}}, "filter.n.$exists"),
        ({"n": {"$eq": 1, "x": 2}}, "filter.n.x"),
        ({"n": {"$size": -1}}, "filter.n.$size"),
        ({"n": {"$size": 1.5}}, "filter.n.$size"),
        ({"n": {"$size": 10**30}}, "filter.n.$size"),
        ({"n": {"$elemMatch": 1}}, "filter.n.$elemMatch"),
        ({"n": {"$elemMatch": {"$near": 1}}}, "filter.n.$elemMatch.$near"),
        ({"n": {"$elemMatch": {"a": {"$in": 1}}}}, "filter.n.$elemMatch.a.$in"),
        ({"n": {"$regex": "("}}, "filter.n.$regex"),
        ({"n": {"$regex": 1}}, "filter.n.$regex"),
        ({"n": {"$regex": "a" * 201}}, "filter.n.$regex"),
        ({"n": {"$regex": r"(a*)\1"}}, "filter.n.$regex"),
        ({"n": {"$regex": "((a{1,200}){1,200}){1,200}"}}, "filter.n.$regex"),
        ({"n": {"$options": "i"}}, "filter.n.$options"),
    ],
)
def test_build_condition__names_the_path_of_an_error(given: dict[str, Any], place: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        metadata_filters.build_condition(given)
    assert [issue.field for issue in refused.value.issues] == [place]


def test_build_condition__limits_depth_and_size() -> None:
    deep: dict[str, Any] = {"n": 1}
    for _ in range(30):
        deep = {"$and": [deep]}
    with pytest.raises(InvalidInput, match="levels deep"):
        metadata_filters.build_condition(deep)
    nested: dict[str, Any] = {"$eq": 1}
    for _ in range(30):
        nested = {"$elemMatch": nested}
    with pytest.raises(InvalidInput, match="levels deep"):
        metadata_filters.build_condition({"n": nested})
    with pytest.raises(InvalidInput, match="conditions"):
        metadata_filters.build_condition({f"k{n}": 1 for n in range(1_000)})


def test_build_condition__metadata_counts_as_it_is_now() -> None:
    threads.update_thread("d", metadata={"category": "travel"})
    assert matching({"category": "travel"}) == "ad"
