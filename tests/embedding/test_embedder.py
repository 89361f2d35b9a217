"""The port to embedders."""

import json
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from mastra_memory.embedding import embedder
from mastra_memory.embedding.embedder import Embeddings
from mastra_memory.exceptions import InvalidInput, ProviderRefused, ProviderUnavailable
from mastra_memory.testing import FakeEmbedder


def squares(texts: list[str]) -> list[list[float]]:
    """An embedder that a host could write."""
    return [[float(len(text)), float(len(text) ** 2)] for text in texts]


class Cubes:
    """Another one."""

    passage_bytes = 10
    batch_size = 2
    is_local = True

    def embed(self, texts: Sequence[str], *, query: bool, timeout: float) -> Embeddings:
        return Embeddings([[float(len(text) ** 3)] for text in texts], tokens=len(texts))


class Broken:
    """One that cannot be made."""

    def __init__(self) -> None:
        raise KeyError("OURS_API_KEY")


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts follow each other at once."""
    monkeypatch.setattr(embedder, "RETRY_DELAYS_SECONDS", (0.0, 0.0))


def test_get_embedder__a_function_of_the_host() -> None:
    found = embedder.embed_passages(f"{__name__}.squares", ["a", "bb"])
    assert found == Embeddings([[1.0, 1.0], [2.0, 4.0]])
    assert found.dimensions == 2


def test_get_embedder__a_class_of_the_host_is_made_once() -> None:
    path = f"{__name__}.Cubes"
    assert embedder.get_embedder(path) is embedder.get_embedder(path)
    assert embedder.embed_passages(path, ["a", "bb", "ccc"]) == Embeddings(
        [[1.0], [8.0], [27.0]], tokens=3
    )


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nowhere", "must be provider/model or the dotted path"),
        ("no.such.module", "must be provider/model or the dotted path"),
        ("local/other", "did you mean local/wordllama"),
    ],
)
def test_get_embedder__rejects_an_invalid_name(name: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        embedder.get_embedder(name)


@pytest.mark.parametrize("name", ["fastembed/x", "sentence-transformers/x"])
def test_get_embedder__a_missing_library_names_its_extra(name: str) -> None:
    with pytest.raises(ProviderRefused, match=r"pip install 'django-mastra-memory\["):
        embedder.get_embedder(name)


def test_get_embedder__gives_the_reason_if_loading_fails() -> None:
    with pytest.raises(ProviderRefused, match="Broken cannot be loaded: 'OURS_API_KEY'"):
        embedder.get_embedder(f"{__name__}.Broken")


def test_embed_passages__tries_again_when_that_may_help() -> None:
    class Shaky(FakeEmbedder):
        failures = 2

        def embed(self, texts: Sequence[str], *, query: bool, timeout: float) -> Embeddings:
            if self.failures:
                self.failures -= 1
                raise ProviderUnavailable("overloaded")
            return super().embed(texts, query=query, timeout=timeout)

    with Shaky() as model:
        embedder.embed_passages("any/model", ["tea"])
        assert model.texts == ["tea"]


def test_embed_passages__gives_up_after_the_last_attempt() -> None:
    with (
        FakeEmbedder(error=ProviderUnavailable("overloaded")),
        pytest.raises(ProviderUnavailable, match="overloaded"),
    ):
        embedder.embed_passages("any/model", ["tea"])


def test_embed_passages__a_refusal_is_not_tried_again() -> None:
    calls = []

    class Strict(FakeEmbedder):
        def embed(self, texts: Sequence[str], *, query: bool, timeout: float) -> Embeddings:
            calls.append(texts)
            raise ProviderRefused("bad key")

    with Strict(), pytest.raises(ProviderRefused):
        embedder.embed_passages("any/model", ["tea"])
    assert len(calls) == 1


def test_embed_passages__in_batches() -> None:
    sizes = []

    class Counting(FakeEmbedder):
        batch_size = 3

        def embed(self, texts: Sequence[str], *, query: bool, timeout: float) -> Embeddings:
            sizes.append(len(texts))
            return super().embed(texts, query=query, timeout=timeout)

    with Counting(tokens_each=2):
        made = embedder.embed_passages("any/model", [str(n) for n in range(8)])
    assert sizes == [3, 3, 2]
    assert (len(made.vectors), made.tokens) == (8, 16)


@pytest.mark.parametrize("vectors", [[], [[1.0]], [[1.0], [1.0, 2.0]], [[], []]])
def test_embed_passages__refuses_vectors_of_the_wrong_shape(
    vectors: list[list[float]],
) -> None:
    class Odd(FakeEmbedder):
        def embed(self, texts: Sequence[str], *, query: bool, timeout: float) -> Embeddings:
            return Embeddings(vectors)

    with Odd(), pytest.raises(ProviderRefused, match="for 2 texts"):
        embedder.embed_passages("any/model", ["a", "b"])


@pytest.mark.parametrize(
    "wrong",
    [
        [1.0, math.nan],
        [1.0, math.inf],
        [-math.inf, 1.0],
        [1e39, 1.0],
        ["a", "b"],
        [None, 1.0],
        [0.5] * 16_001,
        np.array([1.0, np.nan], dtype=np.float32),
    ],
)
def test_embed_passages__numbers_that_no_vector_is_made_of_are_refused(wrong: Any) -> None:
    class Odd(FakeEmbedder):
        def embed(self, texts: Sequence[str], *, query: bool, timeout: float) -> Embeddings:
            return Embeddings([[0.5] * len(wrong), wrong])

    with Odd(), pytest.raises(ProviderRefused, match="any/model"):
        embedder.embed_passages("any/model", ["a", "b"])


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("no such tensor"), ProviderRefused),
        (KeyError("vectors"), ProviderRefused),
        (ConnectionResetError("reset"), ProviderUnavailable),
        (TimeoutError("too slow"), ProviderUnavailable),
    ],
)
def test_embed_query__converts_any_error(
    error: Exception, told: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedder, "RETRY_DELAYS_SECONDS", ())
    with FakeEmbedder(error=error), pytest.raises(told, match=type(error).__name__):
        embedder.embed_query("any/model", ["tea"])


@pytest.mark.parametrize(
    "vector",
    [
        [1, 2.5],
        (1.0, 2.5),
        np.array([1.0, 2.5]),
        np.array([1.0, 9.0, 2.5, 9.0], dtype=np.float32)[::2],
        [np.float32(1.0), Decimal("2.5")],
    ],
)
def test_format_vector__takes_the_vectors_of_every_library(vector: Any) -> None:
    assert [float(part) for part in json.loads(embedder.format_vector(vector))] == [1.0, 2.5]


def test_embed_query__asked_again_costs_nothing() -> None:
    with FakeEmbedder(tokens_each=5) as model:
        first = embedder.embed_query("any/model", ["tea"])
        again = embedder.embed_query("any/model", ["tea"])
        embedder.embed_query("other/model", ["tea"])
    assert first.vectors == again.vectors
    assert (first.tokens, again.tokens) == (5, 0)
    assert model.queries == ["tea", "tea"]


def test_embed_query__the_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedder, "MAX_CACHED_QUERIES", 3)
    with FakeEmbedder() as model:
        for text in ("a", "b", "c", "d", "b", "a"):
            embedder.embed_query("any/model", [text])
        assert model.queries == ["a", "b", "c", "d", "a"]
        assert len(embedder._query_cache) == 3


def test_embed_query__distinguishes_texts_with_the_same_join() -> None:
    with FakeEmbedder() as model:
        embedder.embed_query("any/model", ["ab", "c"])
        embedder.embed_query("any/model", ["a", "bc"])
        embedder.embed_query("any/mode", ["lab", "c"])
        assert len(model.queries) == 6
