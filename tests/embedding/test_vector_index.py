"""The HNSW index of a model."""

from typing import Any

import pytest
from django.db import connection

from mastra_memory.db import sql
from mastra_memory.embedding import stats
from mastra_memory.embedding.vector_index import VectorIndex
from mastra_memory.exceptions import InvalidInput
from tests.search.vectors import MODEL, at_angle, store
from tests.support.factories import make_thread


def definition(index: VectorIndex) -> str:
    """How the database describes it."""
    found = sql.fetch_one("SELECT indexdef FROM pg_indexes WHERE indexname = %s", [index.name])
    return found[0] if found else ""


@pytest.mark.django_db(transaction=True)
def test_build__with_the_parameters_of_the_settings(memory_settings: Any) -> None:
    memory_settings(EMBEDDING_INDEX={"m": 8, "ef_construction": 32})
    store(make_thread(), {"one": at_angle(1.0)})
    index = VectorIndex.for_model(MODEL, 2)
    assert not index.is_ready()
    index.build()
    index.build()
    assert index.is_ready()
    assert "m='8', ef_construction='32'" in definition(index)
    assert "vector_cosine_ops" in definition(index)
    index.drop()
    index.drop()
    assert definition(index) == ""


@pytest.mark.django_db(transaction=True)
def test_build__rebuilds_an_incomplete_index() -> None:
    store(make_thread(), {"one": at_angle(1.0)})
    index = VectorIndex.for_model(MODEL, 2)
    index.build()
    sql.execute(
        "UPDATE pg_index SET indisvalid = FALSE WHERE indexrelid = to_regclass(%s)", [index.name]
    )
    assert not index.is_ready()
    index.build()
    assert index.is_ready()
    index.drop()


@pytest.mark.django_db(transaction=True)
def test_build__long_vectors_are_indexed_in_half_precision() -> None:
    index = VectorIndex.for_model(MODEL, 3_072)
    index.build()
    assert "halfvec(3072)" in definition(index) and "halfvec_cosine_ops" in definition(index)
    index.drop()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("metric", "operator_class"),
    [("inner_product", "vector_ip_ops"), ("euclidean", "vector_l2_ops")],
)
def test_build__metrics(memory_settings: Any, metric: str, operator_class: str) -> None:
    memory_settings(EMBEDDING_METRIC=metric)
    index = VectorIndex.for_model("it's 100% new", 3)
    index.build()
    assert operator_class in definition(index)
    assert index.is_ready()
    index.drop()


def test_build__vectors_too_long_for_any_index() -> None:
    index = VectorIndex("m", 5_000)
    with pytest.raises(InvalidInput, match="5000 dimensions"):
        index.build()
    assert index.distance("e", exact=False) == index.distance("e", exact=True)


def test_for_model__an_unknown_metric(memory_settings: Any) -> None:
    memory_settings(EMBEDDING_METRIC="manhattan")
    with pytest.raises(InvalidInput, match="cosine"):
        VectorIndex.for_model("m", 3)


def test_name__tells_models_lengths_and_metrics_apart() -> None:
    indexes = [VectorIndex("m", 3), VectorIndex("n", 3), VectorIndex("m", 4)]
    indexes.append(VectorIndex("m", 3, "euclidean"))
    assert len({index.name for index in indexes}) == 4
    assert all(len(index.name) < 63 for index in indexes)


@pytest.mark.django_db(transaction=True)
def test_delete_model__takes_vectors_requests_and_index_along() -> None:
    store(make_thread(), {"one": at_angle(1.0), "two": at_angle(0.5)})
    index = VectorIndex.for_model(MODEL, 2)
    index.build()
    assert stats.list_dimensions() == {MODEL: [2]}
    assert stats.delete_model(MODEL) == 2
    assert (stats.list_dimensions(), stats.list_vector_counts(), definition(index)) == ({}, [], "")
    connection.close()
