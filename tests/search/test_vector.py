"""Finding messages by their vectors: exactly, and through the index."""

import random
from typing import Any

import pytest
from django.db import connection

from mastra_memory import messages, threads
from mastra_memory.db import sql
from mastra_memory.embedding.vector_index import VectorIndex
from mastra_memory.exceptions import EmbedderMismatch
from mastra_memory.models import Thread
from mastra_memory.search import vector
from mastra_memory.search.scope import SearchScope
from mastra_memory.search.vector import VectorQuery
from tests.conftest import Statements
from tests.search.vectors import MODEL, at_angle, store
from tests.support.factories import make_thread, moment

pytestmark = pytest.mark.django_db
NEAR = [1.0, 0.0]


def find(
    *, limit: int = 10, use_index: bool | None = None, vectors: Any = (NEAR,), **wanted: Any
) -> list[tuple[str, float]]:
    """Ids and scores, best first; of resource `alice` unless a scope is given."""
    scope = wanted.pop("scope", SearchScope(resource_id="alice"))
    looked_for = VectorQuery(model=MODEL, vectors=vectors, scope=scope, **wanted)
    found = vector.find_by_similarity(looked_for, limit=limit, use_index=use_index)
    return [(scored.id, round(scored.score, 4)) for scored in found]


def build_index(dimensions: int = 2) -> None:
    """The index, built inside the transaction of a test."""
    index = VectorIndex.for_model(MODEL, dimensions)
    with connection.cursor() as cursor:
        cursor.execute(
            f"CREATE INDEX {index.name} ON mastra_memory_messageembedding "
            f"USING hnsw ((embedding::{index.column_type}) {index.operator_class}) "
            f"WHERE {index.condition}"
        )


def test_find_by_similarity__scores_are_similarities_best_first() -> None:
    store(make_thread(), {"far": at_angle(0.1), "same": at_angle(1.0), "near": at_angle(0.6)})
    assert find() == [("same", 1.0), ("near", 0.6), ("far", 0.1)]
    assert find(limit=2) == [("same", 1.0), ("near", 0.6)]


def test_find_by_similarity__threshold_keeps_what_is_similar_enough() -> None:
    store(make_thread(), {"far": at_angle(0.1), "same": at_angle(1.0), "near": at_angle(0.6)})
    assert find(threshold=0.5) == [("same", 1.0), ("near", 0.6)]
    assert find(threshold=0.0) == [("same", 1.0), ("near", 0.6), ("far", 0.1)]
    assert find(threshold=1.1) == []


def test_find_by_similarity__an_opposite_is_not_below_zero() -> None:
    store(make_thread(), {"opposite": at_angle(-0.5)})
    assert find() == [("opposite", 0.0)]


def test_find_by_similarity__scopes() -> None:
    store(make_thread("alice", "t1"), {"one": at_angle(0.9)})
    store(make_thread("alice", "t2"), {"two": at_angle(0.8)})
    store(make_thread("bob", "t3"), {"bobs": at_angle(1.0)})
    assert [key for key, _ in find()] == ["one", "two"]
    assert [key for key, _ in find(scope=SearchScope(thread_id="t2"))] == ["two"]
    assert find(scope=SearchScope(thread_id="t3", resource_id="alice")) == []
    within = SearchScope(within=Thread.objects.exclude(pk="t1"))
    assert [key for key, _ in find(scope=within)] == ["bobs", "two"]


def test_find_by_similarity__filters_on_current_metadata() -> None:
    store(make_thread("alice", "t1", metadata={"topic": "tea"}), {"one": at_angle(0.9)})
    store(make_thread("alice", "t2"), {"two": at_angle(0.8)})
    assert find(filter={"topic": "tea"}) == [("one", 0.9)]
    threads.update_thread("t2", metadata={"topic": "tea"})
    threads.update_thread("t1", metadata={"topic": "milk"})
    assert find(filter={"topic": "tea"}) == [("two", 0.8)]


def test_find_by_similarity__a_deleted_message_makes_room_for_the_next() -> None:
    store(make_thread(), {"blue": at_angle(1.0), "red": at_angle(0.5)})
    messages.delete_messages(["blue"])
    assert find(limit=1) == [("red", 0.5)]


def test_find_by_similarity__a_deleted_thread_makes_room_too() -> None:
    store(make_thread("alice", "t1"), {"blue": at_angle(1.0)})
    store(make_thread("alice", "t2"), {"red": at_angle(0.5)})
    threads.delete_thread("t1")
    assert find(limit=1) == [("red", 0.5)]


def test_find_by_similarity__finds_a_transferred_thread_by_its_new_owner() -> None:
    store(make_thread("alice", "t1"), {"blue": at_angle(1.0)})
    threads.transfer_thread("t1", "bob")
    assert find() == []
    assert find(scope=SearchScope(resource_id="bob")) == [("blue", 1.0)]


def test_find_by_similarity__a_message_with_many_passages_takes_one_place() -> None:
    thread = make_thread()
    store(thread, {"long": at_angle(0.9), "short": at_angle(0.2)})
    sql.execute(
        """INSERT INTO mastra_memory_messageembedding
            (message_id, model, dimensions, passage, thread_id, resource_id, text_hash, embedding)
        SELECT message_id, model, dimensions, n, thread_id, resource_id, text_hash, embedding
        FROM mastra_memory_messageembedding, generate_series(1, 40) AS n
        WHERE message_id = 'long'"""
    )
    assert find(limit=2) == [("long", 0.9), ("short", 0.2)]


def test_find_by_similarity__several_passages_of_a_query_each_count() -> None:
    store(make_thread(), {"one": [1.0, 0.0], "two": [0.0, 1.0], "both": at_angle(0.7)})
    found = find(limit=2, vectors=([1.0, 0.0], [0.0, 1.0]))
    assert {key for key, _ in found} == {"one", "two"}


def test_find_by_similarity__equal_scores_are_newest_first() -> None:
    store(make_thread(), {"old": at_angle(0.5), "new": at_angle(0.5)})
    assert [key for key, _ in find()] == ["new", "old"]


def test_find_by_similarity__the_error_contains_both_lengths() -> None:
    store(make_thread(), {"short": at_angle(1.0)})
    with pytest.raises(EmbedderMismatch, match="of 3 dimensions, but the stored ones have 2"):
        find(vectors=([1.0, 0.0, 0.0],))


def test_find_by_similarity__vectors_of_another_model_are_never_compared() -> None:
    store(make_thread(), {"other": at_angle(1.0)})
    wanted = VectorQuery(
        model="another/model", vectors=[NEAR], scope=SearchScope(resource_id="alice")
    )
    assert vector.find_by_similarity(wanted, limit=5) == []


def test_find_by_similarity__a_zero_vector_finds_nothing() -> None:
    store(make_thread(), {"one": at_angle(1.0)})
    assert find(vectors=([0.0, 0.0],)) == []


def test_find_by_similarity__small_scopes_are_compared_whole(statements: Statements) -> None:
    store(make_thread(), {"one": at_angle(1.0)})
    build_index()
    with statements() as sent:
        find()
    assert len(sent) == 2
    assert not any("hnsw" in statement for statement in sent[1:])


def test_find_by_similarity__large_scopes_ask_the_index(
    memory_settings: Any, statements: Statements, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_settings(EXACT_SEARCH_LIMIT=3)
    monkeypatch.setattr(vector, "INDEX_LOOKUP_COST", 0.1)
    store(make_thread(), {f"m{n}": at_angle(n / 10) for n in range(6)})
    build_index()
    with statements() as sent:
        assert [key for key, _ in find(limit=2)] == ["m5", "m4"]
    assert sum("set_config" in statement for statement in sent) == 2


def test_find_by_similarity__compares_a_scope_that_is_a_small_share_of_the_index(
    memory_settings: Any, statements: Statements
) -> None:
    memory_settings(EXACT_SEARCH_LIMIT=3)
    store(make_thread("bob"), {f"b{n}": at_angle(n / 100) for n in range(60)})
    store(make_thread(), {f"m{n}": at_angle(n / 10) for n in range(6)})
    build_index()
    with statements() as sent:
        assert [key for key, _ in find(limit=2)] == ["m5", "m4"]
    assert not any("set_config" in statement for statement in sent)


def test_find_by_similarity__compares_large_scopes_without_index(
    memory_settings: Any,
) -> None:
    memory_settings(EXACT_SEARCH_LIMIT=3)
    store(make_thread(), {f"m{n}": at_angle(n / 10) for n in range(6)})
    assert [key for key, _ in find(limit=2)] == ["m5", "m4"]


def test_find_by_similarity__the_index_is_really_used() -> None:
    thread = make_thread()
    store(thread, {f"m{n}": at_angle(n / 50) for n in range(50)})
    build_index()
    index = VectorIndex.for_model(MODEL, 2)
    where = SearchScope(resource_id="alice").condition("e", use_index=False)
    with vector._force_index_scan():
        plan = sql.fetch_all(
            f"""EXPLAIN SELECT e.message_id, {index.distance("e", exact=False)} AS distance
            FROM mastra_memory_messageembedding e WHERE {index.condition} AND {where}
            ORDER BY distance LIMIT 40""",
            ["[1,0]", *where.params],
        )
    assert any(index.name in line for (line,) in plan)


def test_find_by_similarity__the_settings_of_a_scan_end_with_it() -> None:
    store(make_thread(), {"one": at_angle(1.0)})
    build_index()
    before = sql.fetch_one("SELECT current_setting('enable_seqscan')")
    find(use_index=True)
    assert sql.fetch_one("SELECT current_setting('enable_seqscan')") == before


def test_find_by_similarity__compares_all_if_index_finds_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    others = {f"b{n}": at_angle(1 - n / 10_000) for n in range(400)}
    store(make_thread("bob", "bobs"), others)
    store(make_thread("alice", "hers"), {"far": at_angle(-0.9), "farther": at_angle(-0.95)})
    build_index()
    monkeypatch.setattr(vector, "EF_SEARCH", 10)
    monkeypatch.setattr(vector, "MAX_SCAN_TUPLES", 10)
    assert [key for key, _ in find(limit=2, use_index=True)] == ["farther", "far"] or [
        key for key, _ in find(limit=2, use_index=True)
    ] == ["far", "farther"]


@pytest.mark.parametrize(
    ("dimensions", "metric"),
    [(16, "cosine"), (16, "inner_product"), (16, "euclidean"), (2_100, "cosine")],
)
def test_find_by_similarity__index_and_comparison_agree(
    memory_settings: Any, dimensions: int, metric: str
) -> None:
    memory_settings(EMBEDDING_METRIC=metric)
    source = random.Random(7)
    count = 400 if dimensions < 2_000 else 60
    vectors = {f"m{n}": [source.gauss(0, 1) for _ in range(dimensions)] for n in range(count)}
    store(make_thread("alice", "t"), vectors)
    build_index(dimensions)
    query = [source.gauss(0, 1) for _ in range(dimensions)]
    exact = dict(find(vectors=[query], use_index=False, limit=10))
    indexed = dict(find(vectors=[query], use_index=True, limit=10))
    assert len(exact.keys() & indexed.keys()) >= 9
    assert all(
        indexed[key] == pytest.approx(exact[key], abs=0.01) for key in exact.keys() & indexed
    )


def test_find_by_similarity__vectors_too_long_for_an_index_are_compared() -> None:
    source = random.Random(7)
    vectors = {f"m{n}": [source.gauss(0, 1) for _ in range(4_100)] for n in range(12)}
    store(make_thread("alice", "t"), vectors)
    assert find(vectors=[vectors["m5"]], limit=1) == [("m5", 1.0)]


@pytest.mark.parametrize(
    ("metric", "score"), [("cosine", 1.0), ("inner_product", 2.0), ("euclidean", 0.5)]
)
def test_find_by_similarity__metrics(memory_settings: Any, metric: str, score: float) -> None:
    memory_settings(EMBEDDING_METRIC=metric)
    store(make_thread(), {"one": [2.0, 0.0]})
    assert find() == [("one", score)]


def test_find_by_similarity__matches_have_the_time_of_the_message() -> None:
    store(make_thread("alice", "t"), {"one": at_angle(1.0)}, at=5)
    wanted = VectorQuery(model=MODEL, vectors=[NEAR], scope=SearchScope(resource_id="alice"))
    (scored,) = vector.find_by_similarity(wanted, limit=1)
    assert scored.created == moment(5).timestamp()
